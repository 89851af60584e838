// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/host/partition_size.h"

#include <algorithm>
#include <cmath>

namespace weir::calibrate {

int MinCopyMultiprocessors(int num_partitions) {
  const double bytes_per_second =
      2.0 * num_partitions * kPartitionLinkBytesPerSecond;
  return std::max(
      static_cast<int>(std::ceil(bytes_per_second / kCopyBytesPerSecond)), 1);
}

PartitionSize SizeOfPartitions(int num_multiprocessors, int num_partitions,
                               int step) {
  const int shared =
      num_multiprocessors - MinCopyMultiprocessors(num_partitions);
  const int each = std::max(shared, 0) / num_partitions / step * step;
  if (each == 0) return {};
  return {each, num_multiprocessors - num_partitions * each};
}

}  // namespace weir::calibrate
