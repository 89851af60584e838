// SPDX-License-Identifier: Apache-2.0
#include "results/import/recorded_run.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "results/import/clocks.h"
#include "results/import/messages.h"
#include "results/import/pass_times.h"

namespace weir::results {
namespace {

constexpr size_t kMaxNamed = 5;

auto OrderOf(const RecordedOperation& o) {
  return std::make_tuple(o.step, o.replica, o.rank, o.start_seconds, o.kind,
                         o.microbatch, o.stage, o.end_seconds);
}

void DropDuplicates(RecordedRun* run) {
  auto& all = run->operations;
  const auto end = std::unique(
      all.begin(), all.end(),
      [](const auto& a, const auto& b) { return OrderOf(a) == OrderOf(b); });
  const auto count = all.end() - end;
  if (count == 0) return;
  all.erase(end, all.end());
  run->notes.push_back(
      absl::StrCat(count, count == 1 ? " operation is" : " operations are",
                   " recorded twice with the same times; one of each is kept"));
}

std::string Numbers(const std::vector<int32_t>& steps) {
  std::vector<int32_t> named(steps.begin(),
                             steps.begin() + std::min(steps.size(), kMaxNamed));
  return absl::StrCat(absl::StrJoin(named, ", "),
                      steps.size() > kMaxNamed ? ", ..." : "");
}

// What a worker does in a step, without times.
using Counts = std::map<std::tuple<int32_t, int32_t, RecordedKind>, int>;

Counts CountsOf(const RecordedStep& step) {
  Counts counts;
  for (const auto* o = step.begin; o != step.end; ++o) {
    ++counts[{o->replica, o->rank, o->kind}];
  }
  return counts;
}

// Returns the counts of most steps; of equally frequent ones the largest.
Counts UsualCounts(const std::vector<Counts>& all) {
  std::map<Counts, int> frequency;
  for (const Counts& counts : all) ++frequency[counts];
  const auto total = [](const Counts& counts) {
    return std::accumulate(
        counts.begin(), counts.end(), 0,
        [](int sum, const auto& c) { return sum + c.second; });
  };
  const auto best = std::max_element(
      frequency.begin(), frequency.end(), [&](const auto& a, const auto& b) {
        return std::make_pair(a.second, total(a.first)) <
               std::make_pair(b.second, total(b.first));
      });
  return best->first;
}

void DropPartialSteps(RecordedRun* run) {
  const std::vector<RecordedStep> steps = StepsOf(*run);
  std::vector<Counts> counts;
  for (const RecordedStep& step : steps) counts.push_back(CountsOf(step));
  const Counts usual = UsualCounts(counts);
  std::vector<RecordedOperation> kept;
  std::vector<int32_t> dropped;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (counts[i] == usual) {
      kept.insert(kept.end(), steps[i].begin, steps[i].end);
    } else {
      dropped.push_back(steps[i].step);
    }
  }
  if (dropped.empty()) return;
  run->operations = std::move(kept);
  run->notes.push_back(absl::StrCat(
      dropped.size() == 1 ? "step " : "steps ", Numbers(dropped), " (",
      dropped.size(), " of ", steps.size(),
      ") left out: not the same operations of all workers as in most steps"));
}

absl::Status CheckWorkers(const RecordedRun& run) {
  std::set<std::pair<int32_t, int32_t>> found;
  for (const auto& o : run.operations) found.insert({o.replica, o.rank});
  std::vector<std::string> missing;
  // Ends after the first missing ones, whatever numbers the file has.
  for (int replica = 0;
       replica < run.num_replicas && missing.size() < kMaxNamed; ++replica) {
    for (int rank = 0; rank < run.num_ranks && missing.size() < kMaxNamed;
         ++rank) {
      if (!found.contains({replica, rank})) {
        missing.push_back(
            absl::StrCat("pipeline rank ", rank, " of replica ", replica));
      }
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      run.label, ": has no operations of ", absl::StrJoin(missing, ", "),
      ", expected all workers of ", run.num_replicas,
      run.num_replicas == 1 ? " replica x " : " replicas x ", run.num_ranks,
      run.num_ranks == 1 ? " pipeline rank" : " pipeline ranks"));
}

// Returns which pass a step has twice, or "".
std::string RepeatedIn(const RecordedStep& step) {
  std::set<std::tuple<int, int, int, int, RecordedKind>> seen;
  for (const auto* o = step.begin; o != step.end; ++o) {
    if (!IsPass(o->kind) || o->microbatch < 0) continue;
    if (seen.emplace(o->replica, o->rank, o->stage, o->microbatch, o->kind)
            .second) {
      continue;
    }
    return absl::StrCat("has two ", NameOf(o->kind), " passes of microbatch ",
                        o->microbatch, " with different times in stage ",
                        o->stage, " of replica ", o->replica);
  }
  return "";
}

// Returns what is missing in a step: every stage of a replica runs as many
// forwards as its first, and as many backwards, and the replicas of a pipeline
// rank do the same after them. Returns "" for a complete step.
std::string MissingIn(const RecordedRun& run, const RecordedStep& step,
                      bool has_backward) {
  struct Passes {
    int forward = 0, backward = 0;
  };
  std::map<std::pair<int32_t, int32_t>, Passes> by_stage;  // replica, stage
  std::map<int32_t, int> num_stages;                       // by replica
  for (const auto* o = step.begin; o != step.end; ++o) {
    const bool forward = o->kind == RecordedKind::kForward;
    if (!forward && o->kind != RecordedKind::kBackward &&
        o->kind != RecordedKind::kBackwardInput) {
      continue;
    }
    const auto [at, is_new] = by_stage.try_emplace({o->replica, o->stage});
    num_stages[o->replica] += is_new ? 1 : 0;
    ++(forward ? at->second.forward : at->second.backward);
  }
  if (static_cast<int>(num_stages.size()) != run.num_replicas) {
    return absl::StrCat("has passes of ", num_stages.size(), " of ",
                        run.num_replicas, " replicas");
  }
  for (const auto& [replica, count] : num_stages) {
    if (count == run.num_stages) continue;
    return absl::StrCat("has passes of ", count, " of ", run.num_stages,
                        " stages in replica ", replica);
  }
  for (const auto& [key, passes] : by_stage) {
    const auto& [replica, stage] = key;
    const int first = by_stage.lower_bound({replica, 0})->second.forward;
    if (passes.forward != first) {
      return absl::StrCat("has ", passes.forward, " forward passes in stage ",
                          stage, " of replica ", replica, " but ", first,
                          " in its first stage");
    }
    if (has_backward && passes.backward != passes.forward) {
      return absl::StrCat("has ", passes.forward, " forward passes but ",
                          passes.backward, " backward passes in stage ", stage,
                          " of replica ", replica);
    }
  }
  std::map<std::pair<int32_t, RecordedKind>, std::map<int32_t, int>> others;
  for (const auto* o = step.begin; o != step.end; ++o) {
    if (!IsPass(o->kind) && !IsMessage(o->kind)) {
      ++others[{o->rank, o->kind}][o->replica];
    }
  }
  for (const auto& [key, counts] : others) {
    const int count = counts.begin()->second;
    const bool same =
        static_cast<int>(counts.size()) == run.num_replicas &&
        std::all_of(counts.begin(), counts.end(),
                    [&](const auto& c) { return c.second == count; });
    if (same) continue;
    return absl::StrCat("has unequal numbers of operations \"",
                        NameOf(key.second),
                        "\" in the replicas of pipeline rank ", key.first);
  }
  return "";
}

absl::Status DropIncompleteSteps(RecordedRun* run) {
  const bool has_backward = std::any_of(
      run->operations.begin(), run->operations.end(), [](const auto& o) {
        return o.kind == RecordedKind::kBackward ||
               o.kind == RecordedKind::kBackwardInput;
      });
  std::vector<RecordedOperation> kept;
  std::vector<int32_t> dropped;
  std::string why;
  const std::vector<RecordedStep> steps = StepsOf(*run);
  for (const RecordedStep& step : steps) {
    std::string wrong = RepeatedIn(step);
    if (wrong.empty()) wrong = MissingIn(*run, step, has_backward);
    if (wrong.empty()) {
      kept.insert(kept.end(), step.begin, step.end);
      continue;
    }
    if (why.empty()) why = absl::StrCat("step ", step.step, " ", wrong);
    dropped.push_back(step.step);
  }
  if (kept.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(run->label, ": no step is complete; ", why));
  }
  if (dropped.empty()) return absl::OkStatus();
  run->operations = std::move(kept);
  run->notes.push_back(absl::StrCat(
      dropped.size() == 1 ? "step " : "steps ", Numbers(dropped), " (",
      dropped.size(), " of ", steps.size(), ") left out as incomplete: ", why));
  return absl::OkStatus();
}

absl::Status CheckDurations(const RecordedRun& run) {
  int64_t num_passes = 0;
  for (const RecordedOperation& o : run.operations) {
    if (!IsPass(o.kind)) continue;
    if (o.seconds() > 0) return absl::OkStatus();
    ++num_passes;
  }
  if (num_passes == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(run.label, ": all of ", num_passes,
                   " passes last 0 s, expected passes with their durations"));
}

void StartStepsAtZero(RecordedRun* run) {
  auto& all = run->operations;
  for (size_t first = 0, last = 0; first < all.size(); first = last) {
    double start = all[first].start_seconds;
    for (last = first; last < all.size() && all[last].step == all[first].step;
         ++last) {
      start = std::min(start, all[last].start_seconds);
    }
    for (size_t i = first; i < last; ++i) {
      all[i].start_seconds -= start;
      all[i].end_seconds -= start;
    }
  }
}

}  // namespace

absl::string_view NameOf(RecordedKind kind) {
  switch (kind) {
    case RecordedKind::kForward:
      return "forward";
    case RecordedKind::kBackward:
      return "backward";
    case RecordedKind::kBackwardInput:
      return "backward-input";
    case RecordedKind::kBackwardWeight:
      return "backward-weight";
    case RecordedKind::kSendForward:
      return "forward send";
    case RecordedKind::kReceiveForward:
      return "forward receive";
    case RecordedKind::kSendBackward:
      return "backward send";
    case RecordedKind::kReceiveBackward:
      return "backward receive";
    case RecordedKind::kWeightGather:
      return "weight gather";
    case RecordedKind::kGradientReduction:
      return "gradient reduction";
    case RecordedKind::kNormReduction:
      return "norm reduction";
    case RecordedKind::kTiedReduction:
      return "tied reduction";
    case RecordedKind::kGradientClip:
      return "gradient clip";
    case RecordedKind::kOptimizerStep:
      return "optimizer step";
    case RecordedKind::kGarbageCollection:
      return "garbage collection";
    case RecordedKind::kDispatch:
      return "dispatch";
    case RecordedKind::kCombine:
      return "combine";
  }
  return "";
}

double RecordedStep::seconds() const {
  if (begin == end) return 0;
  double first = begin->start_seconds, last = begin->end_seconds;
  for (const auto* o = begin; o != end; ++o) {
    first = std::min(first, o->start_seconds);
    last = std::max(last, o->end_seconds);
  }
  return last - first;
}

std::vector<RecordedStep> StepsOf(const RecordedRun& run) {
  std::vector<RecordedStep> steps;
  for (const RecordedOperation& o : run.operations) {
    if (steps.empty() || steps.back().step != o.step) {
      steps.push_back({o.step, &o, &o});
    }
    steps.back().end = &o + 1;
  }
  return steps;
}

int MedianStep(const std::vector<RecordedStep>& steps) {
  std::vector<int> order(steps.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> seconds;
  for (const RecordedStep& step : steps) seconds.push_back(step.seconds());
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return seconds[a] < seconds[b]; });
  return order[(order.size() - 1) / 2];
}

std::string MissingNumbers(const std::set<int64_t>& found, int64_t end) {
  std::vector<std::string> missing;
  for (int64_t i = 0; i < end && missing.size() <= kMaxNamed; ++i) {
    if (!found.contains(i)) missing.push_back(absl::StrCat(i));
  }
  if (missing.size() > kMaxNamed) missing.back() = "...";
  return absl::StrJoin(missing, ", ");
}

absl::Status CleanRun(RecordedRun* run) {
  auto& all = run->operations;
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return OrderOf(a) < OrderOf(b);
  });
  DropDuplicates(run);
  if (all.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(run->label,
                     ": has no operations of training, expected forward and "
                     "backward passes (docs/traces.md)"));
  }
  RETURN_IF_ERROR(CheckWorkers(*run));
  if (!run->in_parts) RETURN_IF_ERROR(DropIncompleteSteps(run));
  DropPartialSteps(run);
  RETURN_IF_ERROR(CheckDurations(*run));
  RETURN_IF_ERROR(AssignMessages(run));
  NoteLoneMessages(run);
  StartStepsAtZero(run);
  RETURN_IF_ERROR(CheckPassTimes(run));
  RETURN_IF_ERROR(RepairClocks(run));
  // The first operation may have been moved.
  StartStepsAtZero(run);
  return absl::OkStatus();
}

}  // namespace weir::results
