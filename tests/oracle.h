// SPDX-License-Identifier: Apache-2.0
// When every action of a schedule runs, by the longest path through an explicit
// graph. Slow, obvious and independent: it shares no code with the simulator
// that it judges. There is no bandwidth to share: a transfer is a time.
#ifndef WEIR_TESTS_ORACLE_H_
#define WEIR_TESTS_ORACLE_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "schedules/schedule.h"

namespace weir::oracle {

// Seconds of everything; vectors are [stage], an empty one means 0 everywhere.
struct Costs {
  std::vector<double> forward_seconds;
  std::vector<double> backward_seconds;
  std::vector<double> backward_input_seconds;
  std::vector<double> backward_weight_seconds;
  // A forward beside a B or I, by the forward's stage; empty: F + B (or I).
  std::vector<double> overlapped_seconds;
  std::vector<double> offload_seconds;     // one way
  std::vector<double> prediction_seconds;  // of one estimate of the weights
  std::vector<double> codec_seconds;  // packing or unpacking a stage's output
  // The optimizer after the last backward of an update (with a flush: after
  // all actions of the rank), on every copy of the stage once all of them have
  // got there: the rank's next action waits for it, and so do all later readers
  // of the version it makes, which are on the same rank.
  std::vector<double> update_seconds;

  // A transfer between ranks takes the sum of these three; between stages of
  // one rank there is none. Its producer is a forward (to the next stage) or
  // an input gradient (to the stage before).
  double latency_seconds = 0;
  std::function<double(int from_stage, int to_stage)> hop_seconds;
  std::function<double(const Action& producer)> transfer_seconds;

  // Of a pipeline that infers, one stage per rank: inputs that may be on their
  // way to a rank or wait there beside the one at work, and outputs that may
  // wait to be sent when the next is made. 0: any number.
  int queued_microbatches = 0;
};

// The same forward and backward for every stage; I and W are half a backward.
Costs EqualStages(const Schedule& schedule, double forward_seconds,
                  double backward_seconds);

enum class Transfers {
  // Starts when its producer ends and holds up only its consumer.
  kBuffered,
  // Ranks exchange between actions: a transfer starts when the sender has come
  // to the exchange after its producer and the receiver to the one before its
  // consumer; both go on when it has ended. There is an exchange after every
  // action, but none inside an overlapped pair, and with several stages per
  // rank none between the forward and the backward of a pair, once forwards and
  // backwards alternate. Offloads and reloads know of no exchanges.
  kBlocking,
};

struct Timing {
  // [rank][position]
  std::vector<std::vector<double>> start_seconds;
  std::vector<std::vector<double>> end_seconds;
  double makespan_seconds = 0;  // end of the last action, transfer or update

  // [rank]
  std::vector<double> busy_seconds;    // in passes, an overlapped pair once
  std::vector<double> update_seconds;  // in optimizer updates
  std::vector<double> idle_seconds;    // the rest of the makespan
  std::vector<double> span_seconds;    // first start to last end of an action
  // Most microbatches between the start of their forward and the end of their
  // backward (of I where it is split), less those on the host; a stage counts
  // 1/n where a microbatch passes n stages of the rank.
  std::vector<double> peak_microbatches;
};

// FailedPrecondition "deadlock: ..." when not everything can run.
// REQUIRES: every (stage, microbatch) is complete and on its rank.
absl::StatusOr<Timing> Evaluate(const Schedule& schedule, const Costs& costs,
                                Transfers transfers = Transfers::kBuffered);

}  // namespace weir::oracle

#endif  // WEIR_TESTS_ORACLE_H_
