// SPDX-License-Identifier: Apache-2.0
#include "scenarios/describe_scenario.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace weir::scenarios {

std::string DescribeSizes(const Scenario& scenario) {
  std::vector<std::string> parts;
  const auto add = [&](absl::string_view what, uint32_t value) {
    if (value > 0) parts.push_back(absl::StrCat(what, " ", value));
  };
  add("layers", scenario.transformer().num_layers());
  add("hidden", scenario.transformer().hidden_size());
  add("seq", scenario.batch().sequence_length());
  add("tp", scenario.parallelism().tensor());
  if (scenario.parallelism().context() > 1) {
    add("cp", scenario.parallelism().context());
  }
  add("pp", scenario.parallelism().pipeline());
  add("dp", scenario.parallelism().data());
  add("mbs", scenario.batch().microbatch_size());
  add("gbs", scenario.batch().global_batch_size());
  return absl::StrJoin(parts, ", ");
}

}  // namespace weir::scenarios
