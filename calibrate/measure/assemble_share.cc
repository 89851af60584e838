// SPDX-License-Identifier: Apache-2.0
// Fields specific to the profile of a GPU partition.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/quantiles.h"
#include "calibrate/measure/assemble.h"
#include "calibrate/measure/assembler.h"
#include "calibrate/profile/partition_slowdown.h"

namespace weir::calibrate {

absl::Status CheckStart(const DeviceProfile& start) {
  if (!start.has_partition_slowdown()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the start profile ", start.name(), " describes one of ",
                   start.partition_slowdown().num_partitions(),
                   " partitions of a GPU, expected a profile of a whole GPU"));
}

// Scales the peak rates of the GPU by the partition's share of multiprocessors.
void Assembler::SetPartition() {
  const auto parts = journal_.num_partitions();
  const auto processors = journal_.part_multiprocessors();
  const auto of_card = journal_.provenance().num_multiprocessors();
  profile_.set_name(absl::StrCat(profile_.name(), " 1/", parts));
  if (processors == 0 || of_card == 0) return;
  for (MatrixRate& rate : *profile_.mutable_matrix_rates()) {
    Figure& peak = *rate.mutable_peak_flops();
    peak.set_value(peak.value() * processors / of_card);
    peak.set_source(absl::StrCat(processors, " of ", of_card,
                                 " multiprocessors of: ", peak.source()));
  }
}

void Assembler::AddPartitionSlowdown() {
  PartitionSlowdown* share = profile_.mutable_partition_slowdown();
  share->set_num_partitions(journal_.num_partitions());
  share->set_multiprocessors(journal_.part_multiprocessors());
  std::map<std::pair<std::string, int>, std::vector<double>> ratios;
  for (const PlannedLoad& load : plan_.loads) {
    const PlannedPass& pass = plan_.passes[load.pass];
    const WorkloadResult* alone = Find(pass.key);
    const WorkloadResult* loaded = Find(load.key);
    if (alone == nullptr || loaded == nullptr) continue;
    ratios[{Name(pass.pass), load.active}].push_back(loaded->seconds().p50() /
                                                     alone->seconds().p50());
  }
  for (const absl::string_view pass : kSharedPasses) {
    for (const auto& [key, factors] : ratios) {
      if (key.first != pass) continue;
      PartitionSlowdown::Slowdown* slowdown = share->add_slowdowns();
      slowdown->set_pass(key.first);
      slowdown->set_active(key.second);
      std::vector<double> sorted = factors;
      std::sort(sorted.begin(), sorted.end());
      slowdown->set_factor(QuantileOfSorted(sorted, 0.5));
    }
  }
}

}  // namespace weir::calibrate
