// SPDX-License-Identifier: Apache-2.0
// The kernels of a scenario's passes, with their times, for rooflines.
#ifndef WEIR_SIM_KERNEL_LIST_H_
#define WEIR_SIM_KERNEL_LIST_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "scenarios/scenario.h"

namespace weir::sim {

struct ListedKernel {
  std::string part;  // models::Name(KernelPart)
  // FLOP, device memory traffic and time of one kernel.
  double flops = 0, bytes = 0, seconds = 0;
  double count = 0;  // in one microbatch, over all stages
};

struct KernelList {
  std::string device;
  // Peak FLOP per second: of 16-bit GEMMs, and of the recipe's forward GEMMs if
  // it has another format.
  std::vector<std::pair<std::string, double>> peak_flops;
  double memory_bytes_per_second = 0;  // peak
  // Kernels of the forward and backward passes of one microbatch, priced for
  // the first device. Equal kernels of all stages are one entry.
  std::vector<ListedKernel> kernels;
};

// Returns InvalidArgument for given costs and measured models, which have no
// kernels.
absl::StatusOr<KernelList> ListKernels(
    const scenarios::ResolvedScenario& scenario);

}  // namespace weir::sim

#endif  // WEIR_SIM_KERNEL_LIST_H_
