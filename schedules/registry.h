// SPDX-License-Identifier: Apache-2.0
// Every named schedule, by its name and by the names other tools give it.
#ifndef WEIR_SCHEDULES_REGISTRY_H_
#define WEIR_SCHEDULES_REGISTRY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedules/schedule.h"

namespace weir {

// A choice beyond the shape, as in "chimera:pipelines=4".
struct ScheduleOption {
  absl::string_view name;      // "pipelines"
  absl::string_view standard;  // what it is unless given, "2"
  absl::string_view summary;   // "bidirectional pipelines, an even number"
};

struct ScheduleKind {
  absl::string_view name;                  // "pipedream-2bw"
  std::vector<absl::string_view> aliases;  // "2bw", PyTorch's, Megatron's
  absl::string_view paper;
  absl::string_view constraints;  // "num_microbatches >= num_ranks"
  absl::string_view summary;      // semantics in one line
  bool flush;                     // see Schedule::flush
  // Orders by ScheduleSpec::costs.
  bool uses_costs = false;
  // The algorithm is defined for microbatches of one sample only.
  bool single_samples = false;
  std::vector<ScheduleOption> options = {};
  // Everything illegal about a spec, as one InvalidArgument.
  absl::Status (*check)(const ScheduleSpec&);
  // REQUIRES: check(spec) is OK.
  Schedule (*generate)(const ScheduleSpec&);
};

const std::vector<ScheduleKind>& AllScheduleKinds();

// Finds by name or alias, without regard to case, '_' or '-', to options behind
// a colon, and to the "Schedule" before PyTorch's names of classes. NotFound
// names a near spelling and lists all.
absl::StatusOr<const ScheduleKind*> FindScheduleKind(absl::string_view name);

// Finds, checks and generates. `name` may bring options, each once and known to
// the kind: "chimera:pipelines=4:concatenation=forward-doubling". They are
// added to those of the spec.
absl::StatusOr<Schedule> GenerateSchedule(absl::string_view name,
                                          const ScheduleSpec& spec);

}  // namespace weir

#endif  // WEIR_SCHEDULES_REGISTRY_H_
