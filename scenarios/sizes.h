// SPDX-License-Identifier: Apache-2.0
// Sizes of a scenario that follow from others: its schedule, chunks, nodes and
// data-parallel size.
#ifndef WEIR_SCENARIOS_SIZES_H_
#define WEIR_SCENARIOS_SIZES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "scenarios/cluster/cluster.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Moves the chunks of a schedule's name, "interleaved-1f1b:v=4", to the chunks
// of the scenario, which they replace. If it is the scenario's costs that are
// given, once for all stages, they are scaled so that a rank's work does not
// change. Returns InvalidArgument if the number is not one.
absl::Status TakeScheduleChunks(Scenario* scenario);

// Returns the schedule of a scenario that names none: 1f1b, or interleaved-1f1b
// if there are several chunks.
const char* DefaultSchedule(const Parallelism& parallelism);

// Fills in what the scenario does not say, before anything else is checked:
// - the schedule;
// - the nodes, from the number of GPUs to use (parallelism.num_gpus);
// - the data-parallel size: GPUs / (tensor x pipeline), if the tensor- and
//   pipeline-parallel ranks divide the GPUs.
// Returns errors of the schedule's name and file, and InvalidArgument if the
// sizes do not divide.
absl::Status FillSizes(absl::string_view label, Scenario* scenario);

// The data-parallel size of a scenario file applies to the other sizes of that
// file. Returns true if `changes` to the file set the tensor- or
// pipeline-parallel size, the GPUs or the nodes, but not the data-parallel
// size, which must then follow from the GPUs again.
bool SetsGroups(const Scenario& changes);
// Removes the data-parallel size, so that FillSizes determines it, unless there
// are no GPUs: given costs, or one GPU that plays the ranks of a replay.
void ClearReplicas(Scenario* scenario);

// Returns a warning if the scenario leaves GPUs of the cluster idle without
// saying so; empty: none.
std::string IdleWarning(const Scenario& scenario, const Cluster& cluster);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_SIZES_H_
