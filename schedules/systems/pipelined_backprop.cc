// SPDX-License-Identifier: Apache-2.0
// Pipelined Backpropagation at Scale (Kosson et al., 2021): one layer per
// stage, one sample per microbatch, an update for every sample and no stash. In
// each step a stage runs one forward and one backward, so stage s of S has a
// delay of D = 2(S-1-s) updates (section 3).
#include "schedules/limits.h"
#include "schedules/options.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kPipelinedBackpropName = "pipelined-backprop";
constexpr absl::string_view kMitigation = "mitigation";

std::string MitigationOf(const ScheduleSpec& spec, Problems* problems) {
  return ChoiceOption(spec, kMitigation,
                      {"none", "spike-compensation", "linear-prediction"},
                      problems);
}

absl::Status CheckPipelinedBackprop(const ScheduleSpec& spec) {
  Problems problems = CheckWithoutFlush(kPipelinedBackpropName, spec);
  MitigationOf(spec, &problems);
  return problems.ToStatus();
}

Schedule GeneratePipelinedBackprop(const ScheduleSpec& spec) {
  const auto delay = [&](int stage) {
    return 2 * (spec.num_ranks - 1 - stage);
  };
  Schedule schedule = OneFOneBSchedule(kPipelinedBackpropName, spec, delay);
  schedule.flush = false;
  schedule.weights = {.microbatches_per_update = 1,
                      .forward = WeightPolicy::ForwardRead::kLatest,
                      .backward = WeightPolicy::BackwardRead::kLatest};
  Problems none(kPipelinedBackpropName);
  if (MitigationOf(spec, &none) != "linear-prediction") return schedule;
  // w - eta T v with T = D: a prediction of the backward's weights.
  schedule.weights.prediction = WeightPolicy::Prediction::kForward;
  schedule.weights.predicted_copies = 1;
  for (int stage = 0; stage < spec.num_ranks; ++stage) {
    schedule.weights.forward_distance.push_back(delay(stage));
  }
  return schedule;
}

}  // namespace

ScheduleKind PipelinedBackpropKind() {
  return {.name = kPipelinedBackpropName,
          .aliases = {"pb", "pipelined-backpropagation"},
          .paper =
              "Kosson et al., Pipelined Backpropagation at Scale: Training "
              "Large Models without Batches, MLSys 2021",
          .constraints = "chunks is 1; microbatches are single samples",
          .summary =
              "no flush, no stash, update after every sample; one weight "
              "version, delay 2(p-1-s)",
          .flush = false,
          .repeats_microbatches = true,
          .single_samples = true,
          .options =
              {{kMitigation, "none",
                "none, spike-compensation (in the optimizer; needs no time or "
                "memory), or linear-prediction of the forward's weights"}},
          .check = CheckPipelinedBackprop,
          .generate = GeneratePipelinedBackprop};
}

}  // namespace weir::schedules
