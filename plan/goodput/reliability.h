// SPDX-License-Identifier: Apache-2.0
// How often a job of a given size fails.
#ifndef WEIR_PLAN_GOODPUT_RELIABILITY_H_
#define WEIR_PLAN_GOODPUT_RELIABILITY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/goodput/reliability.pb.h"

namespace weir::plan {

// Presets of weir.Reliability.
inline constexpr absl::string_view kReliabilityFolder = "plan/goodput/presets";

// Loads a preset or a textproto, and checks it. Returns NotFound if there is
// neither, InvalidArgument if it is invalid.
absl::StatusOr<Reliability> LoadReliability(const std::string& name_or_path);

// Reports all problems at once, each with its field. Returns InvalidArgument
// with them.
absl::Status ValidateReliability(absl::string_view label,
                                 const Reliability& reliability);

// Replaces the mean hours between failures of one unit of some classes:
// "gpu=50000h,switch=0.5y"; units h, d and y, hours without one. A class that
// does not exist is added: gpu and nic per GPU, host per node, switch per
// switch, software per job. Returns InvalidArgument for other names.
absl::Status OverrideRates(absl::string_view text, Reliability* reliability);

struct JobSize {
  int num_gpus = 1;
  int num_nodes = 1;
  int gpus_per_node() const { return (num_gpus + num_nodes - 1) / num_nodes; }
};

// One class of failures of a job.
struct JobFailures {
  std::string name;
  double mean_seconds_between = 0;  // of all units together
  bool replaces_node = false;
  double repair_seconds = 0;
};

// Requires: ValidateReliability(reliability).
std::vector<JobFailures> FailuresOfJob(const Reliability& reliability,
                                       const JobSize& job);

// Returns the mean time between failures of any class.
double MeanSecondsBetween(const std::vector<JobFailures>& failures);

}  // namespace weir::plan

#endif  // WEIR_PLAN_GOODPUT_RELIABILITY_H_
