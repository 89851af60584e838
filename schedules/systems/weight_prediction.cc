// SPDX-License-Identifier: Apache-2.0
// 1F1B without flush and without stashed weights: the passes compute with
// weights predicted for a common time, the end of the microbatch on the first
// rank. SpecTrain (Chen et al., 2018, section 3.3) predicts for every pass.
// XPipe (Guan et al., 2019, section 3) updates once per minibatch and predicts
// once for all its microbatches, at the first one, the bellwether.
#include "schedules/limits.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kSpecTrain = "spectrain";
constexpr absl::string_view kXPipe = "xpipe";

absl::Status CheckSpecTrain(const ScheduleSpec& spec) {
  return CheckWithoutFlush(kSpecTrain, spec).ToStatus();
}

absl::Status CheckXPipe(const ScheduleSpec& spec) {
  return CheckWithoutFlush(kXPipe, spec).ToStatus();
}

Schedule GenerateSpecTrain(const ScheduleSpec& spec) {
  Schedule schedule = OneFOneBSchedule(kSpecTrain, spec);
  schedule.flush = false;
  schedule.weights = {
      .microbatches_per_update = 1,
      .forward = WeightPolicy::ForwardRead::kLatest,
      .backward = WeightPolicy::BackwardRead::kLatest,
      .prediction = WeightPolicy::Prediction::kForwardAndBackward,
      .predicted_copies = 1};
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    // Number of backwards on this rank between a microbatch's backward here and
    // its backward on rank 0.
    const int after = rank / 2;
    schedule.weights.forward_distance.push_back(spec.num_ranks - 1 - rank +
                                                after);
    schedule.weights.backward_distance.push_back(after);
  }
  return schedule;
}

// Returns the stage's number of updates between the forward of the bellwether
// and the backward of the minibatch's last microbatch on rank 0. In backwards
// these are N-1-g before the bellwether's, T-1 of its minibatch, and floor(g/2)
// more. The paper rounds (N+T-2-ceil(g/2))/T; this function counts the
// minibatches that these backwards complete.
int XPipeDistance(int rank, const ScheduleSpec& spec) {
  const int minibatch = spec.num_microbatches;
  const int ahead = spec.num_ranks - 1 - rank;
  const int before = ahead / minibatch + (ahead % minibatch == 0 ? 0 : 1);
  const int64_t after = int64_t{minibatch} - 1 + rank / 2;
  return before + static_cast<int>(after / minibatch);
}

Schedule GenerateXPipe(const ScheduleSpec& spec) {
  Schedule schedule = OneFOneBSchedule(kXPipe, spec);
  schedule.flush = false;
  schedule.weights = {
      .microbatches_per_update = spec.num_microbatches,
      .forward = WeightPolicy::ForwardRead::kFirstOfUpdate,
      .backward = WeightPolicy::BackwardRead::kSameAsForward,
      .prediction = WeightPolicy::Prediction::kFirstForwardOfUpdate,
      .predicted_copies = 1};
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    schedule.weights.forward_distance.push_back(XPipeDistance(rank, spec));
  }
  // The backwards use the bellwether's prediction.
  schedule.weights.backward_distance = schedule.weights.forward_distance;
  return schedule;
}

}  // namespace

ScheduleKind SpecTrainKind() {
  return {.name = kSpecTrain,
          .aliases = {"spec-train"},
          .paper =
              "Chen et al., Efficient and Robust Parallel DNN Training through "
              "Model Parallelism on Multi-GPU Platform, 2018",
          .constraints = "chunks is 1",
          .summary =
              "1F1B without flush or stash, update after every microbatch; F "
              "and B use weights predicted for the same version",
          .flush = false,
          .repeats_microbatches = true,
          .check = CheckSpecTrain,
          .generate = GenerateSpecTrain};
}

ScheduleKind XPipeKind() {
  return {.name = kXPipe,
          .aliases = {"bellwether"},
          .paper =
              "Guan et al., XPipe: Efficient Pipeline Model Parallelism for "
              "Multi-GPU DNN Training, 2019",
          .constraints = "chunks is 1",
          .summary =
              "1F1B without flush, update after every minibatch, whose first "
              "microbatch predicts the weights used by all its microbatches",
          .flush = false,
          .repeats_microbatches = true,
          .check = CheckXPipe,
          .generate = GenerateXPipe};
}

}  // namespace weir::schedules
