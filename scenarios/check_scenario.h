// SPDX-License-Identifier: Apache-2.0
// Parts of ResolveScenario: checks of the fields alone, and of the fields
// against the model and the schedule. Each check reports all problems it finds.
#ifndef WEIR_SCENARIOS_CHECK_SCENARIO_H_
#define WEIR_SCENARIOS_CHECK_SCENARIO_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "models/model.pb.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// The most actions that a simulation may have (about 160 bytes each).
inline constexpr double kMaxActions = 2e8;

// The most GPUs that may share a sequence.
inline constexpr uint32_t kMaxContext = 1024;

// Returns a degree of parallelism, where 0 means 1.
double Degree(uint32_t value);

// Returns true if the schedule has options. An option may change the number of
// stages from pipeline x chunks (replicated stages); the numbers of stage costs
// are then checked when the costs are computed.
bool HasOptions(const Scenario& scenario);

// Adds a problem with the number `value` unless it is a `valid` value of the
// field's enum.
void CheckEnum(Problems& problems, const char* field, int value, bool valid);

// Checks the fields alone: ranges, fields that exclude each other, given costs.
void CheckFields(Problems& problems, const Scenario& scenario);

// Check Megatron-LM's layout of layers: its syntax and number of stages, and
// that it contains the model's layers.
void CheckLayout(Problems& problems, const Parallelism& parallelism);
void CheckLayoutAgainst(Problems& problems, const Parallelism& parallelism,
                        int num_blocks, int num_mtp_modules);

// Checks that the microbatches and data-parallel ranks divide the batch.
// Requires: CheckFields found no problem; also for the functions below.
void CheckBatchDivides(Problems& problems, const Scenario& scenario);

// Fills fields that are not given from the shape of a schedule file. Adds a
// problem with both values for each given field that differs. Returns errors of
// the file unchanged.
absl::Status FillFromScheduleFile(Problems& problems, Scenario& scenario);

// Checks that the schedule exists and, if `with_shape`, that it supports the
// scenario's shape. Returns NotFound if there is no such schedule,
// InvalidArgument if it does not support the options or the shape.
absl::Status CheckSchedule(absl::string_view label, const Scenario& scenario,
                           bool with_shape);

// How the number of stages is checked against the model.
enum class StageCheck {
  kNone,  // not at all: another error already suggests their number
  kAny,
  // Suggests only numbers that also divide the GPUs, from which the
  // data-parallel size follows.
  kDividesGpus,
};

// Checks the scenario against the model: degrees must divide it, and it must
// have enough positions for the sequences and enough blocks for the stages.
void CheckAgainstModel(Problems& problems, const Scenario& scenario,
                       const Model& model,
                       StageCheck stages = StageCheck::kAny);

// Checks that the tensor-parallel ranks divide every size that they split.
// `own_expert_size`: experts have a tensor-parallel size of their own.
void CheckTensorDegree(Problems& problems, uint32_t tensor,
                       const Transformer& transformer,
                       bool own_expert_size = false);

// Returns the number of microbatches per batch and pipeline. Requires:
// CheckFields found no problem.
int NumMicrobatches(const Scenario& scenario);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_CHECK_SCENARIO_H_
