// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/generate_recording.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace weir::fuzz {
namespace {

struct Pass {
  bool forward = true;
  int microbatch = 0;
};

class RecordingDraw {
 public:
  explicit RecordingDraw(RandomSource* random) : random_(*random) {}

  Recording Draw() {
    recording_.num_replicas = random_.Int(1, 3);
    recording_.num_ranks = random_.Int(1, 4);
    num_microbatches_ = random_.Int(1, 5);
    is_gpipe_ = random_.OneIn(2);
    has_messages_ = random_.OneIn(2);
    has_reductions_ = random_.OneIn(2);
    varies_ = random_.OneIn(2);
    forward_ = random_.Int(1'000, 20'000);
    backward_ = random_.Int(1'000, 40'000);
    for (int rank = 0; rank < recording_.num_ranks; ++rank) {
      hops_.push_back(random_.Int(1, 5'000));
    }
    recording_.workers.resize(recording_.num_replicas * recording_.num_ranks);
    const int num_steps = random_.Int(1, 3);
    for (int step = 0; step < num_steps; ++step) DrawStep();
    if (!has_messages_) recording_.is_symmetric = AreFastestEqual();
    return recording_;
  }

 private:
  // (replica, rank, is forward, microbatch)
  using Key = std::tuple<int, int, bool, int>;

  // Replicas differ: with the same times, their files would be copies.
  int64_t Duration(int replica, bool forward) {
    const int64_t usual = (forward ? forward_ : backward_) + replica;
    return varies_ ? random_.Int(1, 2 * static_cast<int>(usual)) : usual;
  }

  std::vector<Pass> OrderOf(int rank) const {
    const int warmup =
        is_gpipe_ ? num_microbatches_
                  : std::min(num_microbatches_, recording_.num_ranks - rank);
    std::vector<Pass> order;
    for (int m = 0; m < warmup; ++m) order.push_back({true, m});
    for (int m = 0; m < num_microbatches_; ++m) {
      order.push_back({false, m});
      if (m + warmup < num_microbatches_) order.push_back({true, m + warmup});
    }
    return order;
  }

  void DrawStep() {
    ends_.clear();
    std::vector<int64_t> free(recording_.workers.size(), recording_.end);
    for (int replica = 0; replica < recording_.num_replicas; ++replica) {
      RunReplica(replica, &free);
    }
    if (has_reductions_) Reduce(&free);
    recording_.end = *std::max_element(free.begin(), free.end());
  }

  void RunReplica(int replica, std::vector<int64_t>* free) {
    const int num_ranks = recording_.num_ranks;
    std::vector<std::vector<Pass>> orders;
    for (int rank = 0; rank < num_ranks; ++rank) {
      orders.push_back(OrderOf(rank));
    }
    std::vector<size_t> next(num_ranks);
    for (int left = 2 * num_ranks * num_microbatches_; left > 0;) {
      for (int rank = 0; rank < num_ranks; ++rank) {
        while (next[rank] < orders[rank].size() &&
               Run(replica, rank, orders[rank][next[rank]], free)) {
          ++next[rank];
          --left;
        }
      }
    }
  }

  // Returns false if the pass has to wait for another rank's.
  bool Run(int replica, int rank, const Pass& pass,
           std::vector<int64_t>* free) {
    const int worker = replica * recording_.num_ranks + rank;
    const int before = pass.forward ? rank - 1 : rank + 1;
    int64_t start = (*free)[worker];
    if (before >= 0 && before < recording_.num_ranks) {
      const auto found =
          ends_.find({replica, before, pass.forward, pass.microbatch});
      if (found == ends_.end()) return false;
      const int link = std::min(rank, before);
      const int64_t sent = found->second, arrived = sent + hops_[link];
      start = std::max(start, arrived);
      if (has_messages_) {
        const std::string number =
            absl::StrCat(pass.forward ? "F" : "B", pass.microbatch);
        Add(worker - rank + before, absl::StrCat(before, "SEND_", number), sent,
            arrived);
        Add(worker, absl::StrCat(rank, "RECV_", number), sent, arrived);
      }
      int64_t& fastest = fastest_[{replica, link, pass.forward}];
      if (fastest == 0) fastest = std::numeric_limits<int64_t>::max();
      fastest = std::min(fastest, start - sent);
    }
    const int64_t end = start + Duration(replica, pass.forward);
    Add(worker, absl::StrCat(rank, pass.forward ? "F" : "B", pass.microbatch),
        start, end);
    ends_[{replica, rank, pass.forward, pass.microbatch}] = end;
    (*free)[worker] = end;
    return true;
  }

  // A reduction over the replicas of each rank ends everywhere at once.
  void Reduce(std::vector<int64_t>* free) {
    for (int rank = 0; rank < recording_.num_ranks; ++rank) {
      int64_t last = 0;
      for (size_t w = rank; w < free->size(); w += recording_.num_ranks) {
        last = std::max(last, (*free)[w]);
      }
      const int64_t end = last + random_.Int(1, 10'000);
      for (size_t w = rank; w < free->size(); w += recording_.num_ranks) {
        Add(static_cast<int>(w), absl::StrCat(rank, "REDUCE_GRAD"), (*free)[w],
            end);
        (*free)[w] = end;
      }
    }
  }

  void Add(int worker, const std::string& action, int64_t start, int64_t end) {
    recording_.workers[worker].push_back(
        {absl::StrCat("PP:", action), start, end});
  }

  bool AreFastestEqual() const {
    return std::all_of(
        fastest_.begin(), fastest_.end(), [&](const auto& fastest) {
          const auto& [replica, link, forward] = fastest.first;
          return fastest_.at({replica, link, !forward}) == fastest.second;
        });
  }

  RandomSource& random_;
  Recording recording_;
  int num_microbatches_ = 1;
  bool is_gpipe_ = false, has_messages_ = false, has_reductions_ = false;
  bool varies_ = false;
  int64_t forward_ = 1, backward_ = 1;
  std::vector<int64_t> hops_;    // [rank]: to the next one
  std::map<Key, int64_t> ends_;  // of passes
  // (replica, link, is forward): from the end of a pass to the next one's start
  std::map<std::tuple<int, int, bool>, int64_t> fastest_;
};

}  // namespace

Recording DrawRecording(RandomSource* random) {
  return RecordingDraw(random).Draw();
}

ClockOffsets DrawOffsets(const Recording& recording, RandomSource* random) {
  std::vector<int> order(recording.workers.size());
  std::iota(order.begin(), order.end(), -static_cast<int>(order.size() / 2));
  random->Shuffle(&order);
  ClockOffsets offsets;
  for (const int place : order) {
    offsets.push_back(20 * recording.end * place + random->Int(-1000, 1000));
  }
  return offsets;
}

std::vector<std::string> KinetoFiles(const Recording& recording,
                                     const ClockOffsets& offsets,
                                     bool uses_base) {
  std::vector<std::string> files;
  for (size_t w = 0; w < recording.workers.size(); ++w) {
    const int64_t base = uses_base ? offsets[w] / 2 : 0;
    const int64_t offset = offsets[w] - base;
    std::string text = absl::StrCat(
        "{\"baseTimeNanoseconds\":", 1000 * base,
        ",\"distributedInfo\":{\"rank\":", w,
        ",\"world_size\":", recording.workers.size(), "},\"traceEvents\":[");
    const char* separator = "";
    for (const RecordingRange& range : recording.workers[w]) {
      absl::StrAppend(&text, separator,
                      "\n{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\","
                      "\"pid\":0,\"tid\":7,\"name\":\"",
                      range.name, "\",\"ts\":", range.start + offset,
                      ",\"dur\":", range.end - range.start, "}");
      separator = ",";
    }
    files.push_back(absl::StrCat(text, "]}\n"));
  }
  return files;
}

}  // namespace weir::fuzz
