// SPDX-License-Identifier: Apache-2.0
#include "tests/results/import/sample_trace.h"

#include <zlib.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace weir::results {
namespace {

// The names of Megatron-LM's timers.
const std::map<RecordedKind, std::string>& Names() {
  static const auto& names = *new std::map<RecordedKind, std::string>{
      {RecordedKind::kForward, "forward-compute"},
      {RecordedKind::kBackward, "backward-compute"},
      {RecordedKind::kSendForward, "forward-send"},
      {RecordedKind::kReceiveForward, "forward-recv"},
      {RecordedKind::kSendBackward, "backward-send"},
      {RecordedKind::kReceiveBackward, "backward-recv"},
      {RecordedKind::kWeightGather, "params-all-gather"},
      {RecordedKind::kGradientReduction, "grads-reduce-scatter"},
      {RecordedKind::kGradientClip, "optimizer-clip-main-grad"},
      {RecordedKind::kOptimizerStep, "optimizer"}};
  return names;
}

// One step of all workers, all forwards before all backwards.
class Step {
 public:
  Step(const SampleShape& shape, int step) : shape_(shape), step_(step) {}

  std::vector<RecordedOperation> Run() {
    for (int rank = 0; rank < shape_.num_ranks; ++rank) {
      Collective(RecordedKind::kWeightGather, rank, rank + 1,
                 shape_.gather_seconds);
    }
    for (int replica = 0; replica < shape_.num_replicas; ++replica) {
      Passes(replica, true);
      Passes(replica, false);
    }
    for (int rank = 0; rank < shape_.num_ranks; ++rank) {
      Collective(RecordedKind::kGradientReduction, rank, rank + 1,
                 shape_.reduction_seconds);
    }
    Collective(RecordedKind::kGradientClip, 0, shape_.num_ranks,
               shape_.clip_seconds);
    for (int replica = 0; replica < shape_.num_replicas; ++replica) {
      for (int rank = 0; rank < shape_.num_ranks; ++rank) {
        double& free = Free(replica, rank);
        Add(RecordedKind::kOptimizerStep, replica, rank, -1, free,
            free + shape_.optimizer_seconds);
        free += shape_.optimizer_seconds;
      }
    }
    return std::move(operations_);
  }

 private:
  double& Free(int replica, int rank) { return free_[{replica, rank}]; }

  void Add(RecordedKind kind, int replica, int rank, int microbatch,
           double start, double end) {
    RecordedOperation o;
    o.step = step_;
    o.replica = replica;
    o.rank = o.stage = rank;
    o.microbatch = microbatch;
    o.kind = kind;
    o.start_seconds = start;
    o.end_seconds = end;
    operations_.push_back(o);
  }

  void Collective(RecordedKind kind, int first, int last, double seconds) {
    double start = 0;
    for (int replica = 0; replica < shape_.num_replicas; ++replica) {
      for (int rank = first; rank < last; ++rank) {
        start = std::max(start, Free(replica, rank));
      }
    }
    for (int replica = 0; replica < shape_.num_replicas; ++replica) {
      for (int rank = first; rank < last; ++rank) {
        Add(kind, replica, rank, -1, Free(replica, rank), start + seconds);
        Free(replica, rank) = start + seconds;
      }
    }
  }

  // A receive is posted when the previous pass of its direction has ended, the
  // first backward one when the second last forward has. A transfer begins when
  // it is posted, its pass has ended, and the previous transfer has.
  void Passes(int replica, bool forward) {
    const int count = shape_.num_ranks;
    std::map<int, double> channel, posted;  // [rank]
    for (int rank = 0; !forward && rank < count; ++rank) {
      posted[rank] = second_last_[{replica, rank}];
    }
    for (int m = 0; m < shape_.num_microbatches; ++m) {
      double ready = 0;  // when the previous rank of the route has computed
      for (int i = 0; i < count; ++i) {
        const int rank = forward ? i : count - 1 - i;
        const int before = forward ? rank - 1 : rank + 1;
        double& free = Free(replica, rank);
        double start = free;
        if (i > 0) {
          const double begin = std::max({ready, channel[rank], posted[rank]});
          const double end = begin + shape_.message_seconds;
          channel[rank] = end;
          Add(forward ? RecordedKind::kSendForward
                      : RecordedKind::kSendBackward,
              replica, before, -1, ready, end);
          Add(forward ? RecordedKind::kReceiveForward
                      : RecordedKind::kReceiveBackward,
              replica, rank, -1, posted[rank], end);
          start = std::max(start, end);
        }
        RecordedOperation pass;
        pass.step = step_;
        pass.replica = replica;
        pass.rank = rank;
        pass.microbatch = m;
        pass.kind = forward ? RecordedKind::kForward : RecordedKind::kBackward;
        double seconds =
            forward ? shape_.forward_seconds : shape_.backward_seconds;
        if (shape_.factor) seconds *= shape_.factor(pass);
        free = start + seconds;
        ready = free;
        posted[rank] = free;
        if (forward && m == shape_.num_microbatches - 2) {
          second_last_[{replica, rank}] = free;
        }
        Add(pass.kind, replica, rank, m, start, free);
      }
    }
  }

  const SampleShape& shape_;
  const int step_;
  std::map<std::pair<int, int>, double> free_;
  std::map<std::pair<int, int>, double> second_last_;
  std::vector<RecordedOperation> operations_;
};

}  // namespace

std::vector<RecordedOperation> SampleOperations(const SampleShape& shape) {
  std::vector<RecordedOperation> all;
  for (int step = 1; step <= shape.num_steps; ++step) {
    const auto one = Step(shape, 10 * step).Run();
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

double SampleStepSeconds(const SampleShape& shape, int step) {
  double last = 0;
  for (const RecordedOperation& o : Step(shape, step).Run()) {
    last = std::max(last, o.end_seconds);
  }
  return last;
}

std::string SampleJson(const std::vector<RecordedOperation>& operations) {
  std::vector<std::string> events;
  std::map<std::pair<int, int>, bool> workers;
  for (const RecordedOperation& o : operations) {
    workers[{o.replica, o.rank}] = true;
  }
  for (const auto& [worker, unused] : workers) {
    events.push_back(
        absl::StrFormat(R"({"name":"thread_name","pid":%d,"tid":%d,"ph":"M",)"
                        R"("args":{"name":"PP rank %d, TP rank 0, compute"}})",
                        worker.first, worker.second, worker.second));
  }
  for (const RecordedOperation& o : operations) {
    events.push_back(absl::StrFormat(
        R"({"name":"%s","pid":%d,"tid":%d,"ts":%.17g,"dur":%.17g,"ph":"X",)"
        R"("args":{"step":%d,"model_chunk":%d,"mb_id":%d,"seq_id":0}})",
        Names().at(o.kind), o.replica, o.rank, 1e6 * o.start_seconds,
        1e6 * o.seconds(), o.step, IsPass(o.kind) ? 0 : -1, o.microbatch));
  }
  return absl::StrCat("[", absl::StrJoin(events, ",\n"), "]\n");
}

std::string SampleCsv(const std::vector<RecordedOperation>& operations) {
  std::string text =
      "step,rank,dp_rank,stage,optype,seq_id,mc,gmc,mb_id,start_ts,duration\n";
  for (const RecordedOperation& o : operations) {
    absl::StrAppendFormat(&text, "%d,0,%d,%d,%s,0,%d,-1,%d,%.17g,%.17g\n",
                          o.step, o.replica, o.rank, Names().at(o.kind),
                          IsPass(o.kind) ? 0 : -1, o.microbatch,
                          o.start_seconds, o.seconds());
  }
  return text;
}

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 16 + MAX_WBITS, 8,
               Z_DEFAULT_STRATEGY);
  std::vector<Bytef> packed(deflateBound(&stream, text.size()));
  stream.next_in =
      reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // NOLINT
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  deflateEnd(&stream);
  return std::string(packed.begin(), packed.end() - stream.avail_out);
}

}  // namespace weir::results
