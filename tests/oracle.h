// SPDX-License-Identifier: Apache-2.0
// Computes the start and end of every action of a schedule as the longest path
// through an explicit graph. The oracle is slow and simple, and shares no code
// with the simulator that it checks. It does not model bandwidth sharing: every
// transfer has a fixed duration.
#ifndef WEIR_TESTS_ORACLE_H_
#define WEIR_TESTS_ORACLE_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "schedules/schedule.h"

namespace weir::oracle {

// Durations in seconds. Vectors are indexed by stage; an empty vector means 0
// for every stage.
struct Costs {
  std::vector<double> forward_seconds;
  std::vector<double> backward_seconds;
  std::vector<double> backward_input_seconds;
  std::vector<double> backward_weight_seconds;
  // A forward overlapped with a B or I, by the forward's stage. If empty, the
  // pair takes F + B (or F + I).
  std::vector<double> overlapped_seconds;
  std::vector<double> offload_seconds;     // one direction
  std::vector<double> prediction_seconds;  // per prediction of the weights
  std::vector<double> codec_seconds;  // packing or unpacking a stage's output
  // The optimizer step after the last backward of an update (with a flush:
  // after all actions of the rank). It runs on every copy of the stage once all
  // copies have finished that backward. The rank's next action waits for it,
  // and so do all later readers of the new weight version, which are on the
  // same rank.
  std::vector<double> update_seconds;

  // A transfer between ranks takes the sum of these three. There is no transfer
  // between stages of the same rank. The producer is a forward (sending to the
  // next stage) or an input gradient (sending to the previous stage).
  double latency_seconds = 0;
  std::function<double(int from_stage, int to_stage)> hop_seconds;
  std::function<double(const schedules::Action& producer)> transfer_seconds;

  // For an inference pipeline with one stage per rank: the number of inputs
  // that may be in transit to a rank or waiting there in addition to the input
  // being processed, and the number of outputs that may wait to be sent when
  // the next pass starts. 0 means unlimited.
  int queued_microbatches = 0;
};

// Returns equal forward and backward costs for every stage; I and W take half a
// backward each.
Costs EqualStages(const schedules::Schedule& schedule, double forward_seconds,
                  double backward_seconds);

enum class Transfers {
  // A transfer starts when its producer ends and delays only its consumer.
  kBuffered,
  // Ranks exchange data between actions. A transfer starts once the sender has
  // reached the exchange after the producer and the receiver has reached the
  // exchange before the consumer; both continue when it has ended. There is an
  // exchange after every action except inside an overlapped pair and, with
  // several stages per rank, between the forward and the backward of a pair
  // while forwards and backwards alternate. Offloads and reloads are
  // independent of exchanges.
  kBlocking,
};

struct Timing {
  // By [rank][position].
  std::vector<std::vector<double>> start_seconds;
  std::vector<std::vector<double>> end_seconds;
  double makespan_seconds = 0;  // end of the last action, transfer or update

  // By rank.
  std::vector<double> busy_seconds;    // in passes; overlapped pairs count once
  std::vector<double> update_seconds;  // in optimizer updates
  std::vector<double> idle_seconds;    // the rest of the makespan
  std::vector<double> span_seconds;    // first start to last end of an action
  // The largest number of microbatches between the start of their forward and
  // the end of their backward (of I where the backward is split), not counting
  // those on the host. A stage counts 1/n if a microbatch passes n stages of
  // the rank.
  std::vector<double> peak_microbatches;
};

// Computes the timing of `schedule`. Returns FailedPrecondition "deadlock: ..."
// if some action can never run. Requires: every (stage, microbatch) is complete
// and on its rank.
absl::StatusOr<Timing> Evaluate(const schedules::Schedule& schedule,
                                const Costs& costs,
                                Transfers transfers = Transfers::kBuffered);

}  // namespace weir::oracle

#endif  // WEIR_TESTS_ORACLE_H_
