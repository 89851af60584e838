// SPDX-License-Identifier: Apache-2.0
#include "plan/stragglers/recorded_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace weir::plan {
namespace {

using results::RecordedKind;
using results::RecordedOperation;
using Indices = std::vector<int32_t>;

// Kinds that follow the last pass, in their order.
constexpr RecordedKind kAfterPasses[] = {
    RecordedKind::kGarbageCollection, RecordedKind::kNormReduction,
    RecordedKind::kTiedReduction,     RecordedKind::kGradientReduction,
    RecordedKind::kGradientClip,      RecordedKind::kOptimizerStep};

bool IsForward(RecordedKind kind) {
  return kind == RecordedKind::kForward || kind == RecordedKind::kSendForward ||
         kind == RecordedKind::kReceiveForward;
}
// Passes that messages serve: not backward-weight.
bool IsServed(RecordedKind kind) {
  return results::IsPass(kind) && kind != RecordedKind::kBackwardWeight;
}

class Builder {
 public:
  Builder(const results::RecordedStep& step,
          const results::OperationGroups& groups)
      : step_(step),
        groups_(groups),
        graph_(static_cast<int32_t>(step.size())) {}

  absl::StatusOr<OperationGraph> Build() {
    for (int32_t first = 0, last = 0; first < size(); first = last) {
      while (last < size() && IsSameWorker(first, last)) ++last;
      AddWorker(first, last);
    }
    AddDirectPasses();
    for (const Indices& members : groups_.members) graph_.AddGroup(members);
    if (const absl::Status status = graph_.Finish(); !status.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("step ", step_.step, ": ", status.message()));
    }
    return std::move(graph_);
  }

 private:
  // (replica, direction, stage, microbatch)
  using PassKey = std::tuple<int, bool, int, int>;

  int32_t size() const { return static_cast<int32_t>(step_.size()); }
  const RecordedOperation& At(int32_t i) const { return step_.begin[i]; }
  bool IsSameWorker(int32_t a, int32_t b) const {
    return At(a).replica == At(b).replica && At(a).rank == At(b).rank;
  }

  void AddChain(const Indices& chain) {
    for (size_t i = 1; i < chain.size(); ++i) {
      graph_.AddDependency(chain[i - 1], chain[i]);
    }
  }

  // Operations [first, last) of a worker, by start.
  void AddWorker(int32_t first, int32_t last) {
    Indices passes;
    std::map<RecordedKind, Indices> of_kind;
    for (int32_t i = first; i < last; ++i) {
      if (results::IsPass(At(i).kind)) passes.push_back(i);
      of_kind[At(i).kind].push_back(i);
    }
    AddChain(passes);
    for (const RecordedKind kind :
         {RecordedKind::kSendForward, RecordedKind::kReceiveForward,
          RecordedKind::kSendBackward, RecordedKind::kReceiveBackward}) {
      AddMessages(of_kind[kind], passes);
    }
    AddGathers(of_kind[RecordedKind::kWeightGather], passes);
    AddExchanges(of_kind, passes);
    AddEnd(of_kind, passes);
  }

  void AddMessages(const Indices& messages, const Indices& passes) {
    AddChain(messages);
    if (messages.empty()) return;
    const RecordedKind kind = At(messages[0]).kind;
    std::map<PassKey, int32_t> found;     // passes of the direction
    std::map<PassKey, int32_t> previous;  // the pass before them
    int32_t before = -1;
    for (const int32_t i : passes) {
      if (!IsServed(At(i).kind) || IsForward(At(i).kind) != IsForward(kind)) {
        continue;
      }
      found[KeyOf(i)] = i;
      previous[KeyOf(i)] = before;
      before = i;
    }
    for (const int32_t message : messages) {
      const auto pass = found.find(KeyOf(message));
      if (pass == found.end()) continue;
      served_.insert({KeyOf(message), IsReceive(kind)});
      if (!IsReceive(kind)) {
        graph_.AddDependency(pass->second, message);
        continue;
      }
      graph_.AddDependency(message, pass->second);
      if (previous[KeyOf(message)] >= 0) {
        graph_.AddDependency(previous[KeyOf(message)], message);
      }
    }
    if (!IsForward(kind)) AddFirstBackward(messages[0], passes);
  }

  void AddFirstBackward(int32_t message, const Indices& passes) {
    for (size_t i = 2; i < passes.size(); ++i) {
      if (IsForward(At(passes[i]).kind)) continue;
      graph_.AddDependency(passes[i - 2], message);
      return;
    }
  }

  void AddGathers(const Indices& gathers, const Indices& passes) {
    AddChain(gathers);
    if (gathers.empty()) return;
    // Gathers of later chunks may overlap with passes.
    for (size_t g = 0; g < gathers.size(); ++g) {
      for (const int32_t pass : passes) {
        if (At(pass).start_seconds < At(gathers[g]).end_seconds) continue;
        graph_.AddDependency(gathers[g], pass);
        break;
      }
    }
  }

  // Exchanges of tokens run concurrently with passes: each waits for the passes
  // that ended before it started, and the passes that started after it ended
  // wait for it.
  void AddExchanges(std::map<RecordedKind, Indices>& of_kind,
                    const Indices& passes) {
    for (const RecordedKind kind :
         {RecordedKind::kDispatch, RecordedKind::kCombine}) {
      for (const int32_t i : of_kind[kind]) {
        int32_t before = -1, after = -1;
        for (const int32_t pass : passes) {
          if (At(pass).end_seconds <= At(i).start_seconds) before = pass;
          if (after < 0 && At(pass).start_seconds >= At(i).end_seconds) {
            after = pass;
          }
        }
        if (before >= 0) graph_.AddDependency(before, i);
        if (after >= 0) graph_.AddDependency(i, after);
      }
    }
  }

  void AddEnd(std::map<RecordedKind, Indices>& of_kind, const Indices& passes) {
    int32_t last = -1;
    for (const int32_t i : passes) {
      if (last < 0 || At(i).end_seconds > At(last).end_seconds) last = i;
    }
    Indices overlapped = of_kind[RecordedKind::kGradientReduction];
    std::erase_if(overlapped, [&](int32_t i) {
      return last < 0 || At(i).start_seconds >= At(last).end_seconds;
    });
    AddOverlapped(overlapped, passes);
    Indices chain;
    if (last >= 0) chain.push_back(last);
    for (const RecordedKind kind : kAfterPasses) {
      for (const int32_t i : of_kind[kind]) {
        const bool is_overlapped = kind == RecordedKind::kGradientReduction &&
                                   last >= 0 &&
                                   At(i).start_seconds < At(last).end_seconds;
        if (is_overlapped) continue;
        // What follows the passes also waits for the overlapped reductions.
        if (!overlapped.empty() && kind != RecordedKind::kGarbageCollection) {
          graph_.AddDependency(overlapped.back(), i);
        }
        chain.push_back(i);
      }
    }
    AddChain(chain);
  }

  void AddOverlapped(const Indices& reductions, const Indices& passes) {
    AddChain(reductions);
    for (const int32_t reduction : reductions) {
      int32_t before = -1;
      for (const int32_t i : passes) {
        const bool ended = At(i).end_seconds <= At(reduction).start_seconds;
        if (ended && !IsForward(At(i).kind)) before = i;
      }
      if (before >= 0) graph_.AddDependency(before, reduction);
    }
  }

  PassKey KeyOf(int32_t i) const {
    const RecordedOperation& o = At(i);
    return {o.replica, IsForward(o.kind), o.stage, o.microbatch};
  }

  // Connects passes of neighboring stages between which no message was
  // recorded.
  void AddDirectPasses() {
    std::map<PassKey, int32_t> passes;
    int last_stage = 0;
    for (int32_t i = 0; i < size(); ++i) {
      if (!IsServed(At(i).kind)) continue;
      passes[KeyOf(i)] = i;
      last_stage = std::max(last_stage, At(i).stage);
    }
    for (const auto& [key, pass] : passes) {
      if (served_.contains({key, true})) continue;
      auto [replica, forward, stage, microbatch] = key;
      PassKey before = {replica, forward, stage + (forward ? -1 : 1),
                        microbatch};
      // The last stage's backward follows its own forward.
      if (!forward && stage == last_stage) {
        before = {replica, true, stage, microbatch};
      }
      const auto found = passes.find(before);
      if (found != passes.end() && !Precedes(pass, found->second)) {
        graph_.AddDependency(found->second, pass);
      }
    }
  }

  // True if clocks say that `a` ended before `b` began, so that it cannot have
  // waited for it.
  bool Precedes(int32_t a, int32_t b) const {
    return IsSameWorker(a, b) && a < b;
  }

  const results::RecordedStep& step_;
  const results::OperationGroups& groups_;
  OperationGraph graph_;
  std::set<std::pair<PassKey, bool>> served_;  // by a send (false), receive
};

}  // namespace

absl::StatusOr<OperationGraph> GraphOfStep(
    const results::RecordedStep& step, const results::OperationGroups& groups) {
  return Builder(step, groups).Build();
}

}  // namespace weir::plan
