// SPDX-License-Identifier: Apache-2.0
// DualPipe (DeepSeek-AI, 2024, section 3.2.1) feeds microbatches from both ends
// and overlaps forwards with backwards, so each hides the other's transfers.
// Every rank stores the weights of two stages, one for each direction.
// DualPipeV is one half of that: a single stream of microbatches in a V, so
// each rank has two different stages and no weights are replicated.
#include <array>

#include "absl/strings/str_cat.h"
#include "schedules/limits.h"
#include "schedules/systems/generators.h"
#include "schedules/systems/slots.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kDualPipe = "dualpipe";
constexpr absl::string_view kDualPipeV = "dualpipe-v";
constexpr absl::string_view kDualPipePaper =
    "DeepSeek-AI, DeepSeek-V3 Technical Report, 2024";

// The microbatches that a rank processes in one of its two stages.
struct Stream {
  int stage;
  int next_forward;   // microbatch
  int next_backward;  // microbatch
};

// The position of a rank in its half of a DualPipe or on a V.
struct Position {
  int from_start;        // ranks before it
  int to_turn;           // ranks after it
  int num_microbatches;  // in each stream
};

// Builds the order of a rank. Stream 0 enters at this end of the pipeline,
// stream 1 comes from the other.
class RankOrder {
 public:
  RankOrder(Stream zero, Stream one) : streams_{zero, one} {}

  // Returns the eight steps of DualPipe's step().
  std::vector<Action> Run(const Position& at) &&;

 private:
  void Forward(int stream) {
    Stream& of = streams_[stream];
    actions_.push_back({Op::kForward, of.stage, of.next_forward++});
  }
  void Backward(int stream) {
    Stream& of = streams_[stream];
    actions_.push_back({Op::kBackward, of.stage, of.next_backward++});
  }
  void BackwardInput(int stream) {
    Stream& of = streams_[stream];
    actions_.push_back({Op::kBackwardInput, of.stage, of.next_backward++});
    weights_.push_back(actions_.back());
  }
  // Adds the weight gradient of the oldest input gradient without one.
  void BackwardWeight() {
    actions_.push_back(weights_[num_weights_done_++]);
    actions_.back().op = Op::kBackwardWeight;
  }
  void ForwardBesideBackward(int forward, int backward) {
    Forward(forward);
    actions_.back().overlaps_next = true;
    Backward(backward);
  }

  std::array<Stream, 2> streams_;
  std::vector<Action> actions_;
  std::vector<Action> weights_;  // input gradients, oldest first
  size_t num_weights_done_ = 0;
};

std::vector<Action> RankOrder::Run(const Position& at) && {
  const int near = at.to_turn;
  const int far = at.from_start + 1;
  for (int i = 0; i < 2 * near; ++i) Forward(0);
  for (int i = 0; i < far; ++i) {
    Forward(0);
    Forward(1);
  }
  for (int i = 0; i < near; ++i) {
    BackwardInput(1);
    BackwardWeight();
    Forward(1);
  }
  const int num_pairs = at.num_microbatches - 2 * near - far;
  for (int i = 0; i < num_pairs; ++i) {
    if (i == 0 && near == 0) {  // waiting for both would add a bubble
      Forward(0);
      Backward(1);
    } else {
      ForwardBesideBackward(0, 1);
    }
    ForwardBesideBackward(1, 0);
  }
  for (int i = 0; i < near; ++i) {
    Backward(1);
    ForwardBesideBackward(1, 0);
  }
  for (int i = 0; i < 2 * far; ++i) {
    const int stream = 1 - i % 2;
    i < far ? Backward(stream) : BackwardInput(stream);
  }
  for (int i = 0; i < near; ++i) {
    BackwardWeight();
    BackwardInput(0);
  }
  for (int i = 0; i < far; ++i) BackwardWeight();
  return std::move(actions_);
}

void CheckEnoughMicrobatches(const ScheduleSpec& spec, Problems* problems) {
  if (spec.num_ranks < 1 || spec.num_ranks > kMaxRanks) return;
  if (spec.num_microbatches < 1) return;
  if (spec.num_microbatches >= 2 * spec.num_ranks) return;
  problems->Add(
      "num_microbatches",
      absl::StrCat("is ", spec.num_microbatches, ", expected at least ",
                   2 * spec.num_ranks, ", twice pipeline"));
}

absl::Status CheckDualPipe(const ScheduleSpec& spec) {
  Problems problems(kDualPipe);
  CheckLimits(spec, &problems);
  CheckOneChunk(spec, &problems);
  CheckOneBatch(spec, &problems);
  CheckEnoughMicrobatches(spec, &problems);
  for (const auto& [field, value] :
       {std::pair{"pipeline", spec.num_ranks},
        std::pair{"num_microbatches", spec.num_microbatches}}) {
    if (value < 1 || value % 2 == 0) continue;
    problems.Add(field,
                 absl::StrCat("is ", value, ", expected an even number"));
  }
  return problems.ToStatus();
}

absl::Status CheckDualPipeV(const ScheduleSpec& spec) {
  Problems problems(kDualPipeV);
  CheckLimits(spec, &problems);
  CheckOneBatch(spec, &problems);
  CheckEnoughMicrobatches(spec, &problems);
  if (spec.num_chunks >= 1 && spec.num_chunks != 2) {
    problems.Add(
        "chunks",
        absl::StrCat("is ", spec.num_chunks,
                     ", expected 2: one stage in each direction of the V"));
  }
  return problems.ToStatus();
}

Schedule GenerateDualPipe(const ScheduleSpec& spec) {
  Schedule schedule = EmptySchedule(kDualPipe, spec);
  schedule.routes.push_back(Reversed(schedule.routes[0]));
  const int n = spec.num_microbatches / 2;
  schedule.microbatches_per_route_turn = n;
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    const int opposite = spec.num_ranks - 1 - rank;
    const Stream down = {rank, 0, 0};
    const Stream up = {opposite, n, n};
    const bool in_first_half = rank < opposite;
    const int from_start = std::min(rank, opposite);
    schedule.rank_actions[rank] =
        RankOrder(in_first_half ? down : up, in_first_half ? up : down)
            .Run({.from_start = from_start,
                  .to_turn = spec.num_ranks / 2 - 1 - from_start,
                  .num_microbatches = n});
  }
  return schedule;
}

Schedule GenerateDualPipeV(const ScheduleSpec& spec) {
  Schedule schedule = EmptySchedule(kDualPipeV, spec);
  schedule.routes = {ZigZagRoute(spec)};
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    schedule.rank_actions[rank] =
        RankOrder({rank, 0, 0}, {2 * spec.num_ranks - 1 - rank, 0, 0})
            .Run({.from_start = rank,
                  .to_turn = spec.num_ranks - 1 - rank,
                  .num_microbatches = spec.num_microbatches});
  }
  return schedule;
}

}  // namespace

ScheduleKind DualPipeKind() {
  return {.name = kDualPipe,
          .aliases = {"dual-pipe"},
          .paper = kDualPipePaper,
          .constraints =
              "pipeline even, num_microbatches even and at least twice "
              "pipeline, chunks is 1, num_batches is 1",
          .summary =
              "two pipelines from both ends, each with its own copy of the "
              "weights, forwards overlapped with backwards, gradients reduced "
              "between the copies, flush; one weight version",
          .flush = true,
          .splits_backward = true,
          .check = CheckDualPipe,
          .generate = GenerateDualPipe};
}

ScheduleKind DualPipeVKind() {
  return {.name = kDualPipeV,
          .aliases = {"cut-in-half"},
          .paper = kDualPipePaper,
          .constraints =
              "chunks is 2, num_microbatches at least twice pipeline, "
              "num_batches is 1",
          .summary =
              "two stages per rank in a V, forwards overlapped with backwards, "
              "flush; one weight version",
          .flush = true,
          .splits_backward = true,
          .check = CheckDualPipeV,
          .generate = GenerateDualPipeV};
}

}  // namespace weir::schedules
