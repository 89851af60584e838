// SPDX-License-Identifier: Apache-2.0
// Registry of named schedules. They can also be found by the names that other
// tools use.
#ifndef WEIR_SCHEDULES_REGISTRY_H_
#define WEIR_SCHEDULES_REGISTRY_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedules/schedule.h"

namespace weir::schedules {

// An option beyond the shape, as in "chimera:pipelines=4".
struct ScheduleOption {
  absl::string_view name;      // "pipelines"
  absl::string_view standard;  // default value, "2"
  absl::string_view summary;   // "number of pipelines, ..."
};

struct ScheduleKind {
  absl::string_view name;                  // "pipedream-2bw"
  std::vector<absl::string_view> aliases;  // "2bw", PyTorch's, Megatron's
  absl::string_view paper;
  absl::string_view constraints;  // "num_microbatches >= pipeline"
  absl::string_view summary;      // semantics in one line
  bool flush;                     // see Schedule::flush
  // Backwards are split into input and weight gradients.
  bool splits_backward = false;
  // Without flush: the order depends only on the total number of microbatches
  // of all batches, and additional ones repeat its steady part.
  bool repeats_microbatches = false;
  // The order depends on ScheduleSpec::costs.
  bool uses_costs = false;
  // The algorithm is defined for microbatches of one sample only.
  bool single_samples = false;
  std::vector<ScheduleOption> options = {};
  // Reports all problems of a spec as one InvalidArgument.
  std::function<absl::Status(const ScheduleSpec&)> check;
  // Requires: check(spec) is OK. Returns the same schedule for equal specs.
  std::function<Schedule(const ScheduleSpec&)> generate;
};

const std::vector<ScheduleKind>& AllScheduleKinds();

// Adds a kind of a program that embeds weir; copies the texts. Its schedules
// are validated: `check` also reports the problems of what `generate` returns.
// Returns InvalidArgument for a name that is no identifier of letters, digits,
// '-' and '_', AlreadyExists if a kind has the name or an alias, and
// ResourceExhausted after a few hundred kinds. Must not run at the same time as
// any other function of weir.
absl::Status RegisterScheduleKind(ScheduleKind kind);

// Finds a kind by name or alias. Ignores case, '_', '-', options after a colon,
// and the "Schedule" at the beginning of PyTorch's class names. Returns
// NotFound, with the most similar name and all names, if there is none.
absl::StatusOr<const ScheduleKind*> FindScheduleKind(absl::string_view name);

// Finds a kind, checks the spec and generates the schedule. `name` may contain
// options, each known to the kind and given once:
// "chimera:pipelines=4:concatenation=forward-doubling". They are added to those
// of the spec. Returns the errors of FindScheduleKind, and InvalidArgument with
// the problems of the options or, if they are valid, of the spec.
absl::StatusOr<Schedule> GenerateSchedule(absl::string_view name,
                                          const ScheduleSpec& spec);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_REGISTRY_H_
