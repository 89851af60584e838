// SPDX-License-Identifier: Apache-2.0
#include "results/import/worker_ranges.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace weir::results {
namespace {

// Returns true if the passes have numbers, and some ran more often than others.
bool AreUneven(const std::vector<NamedOperation>& passes) {
  std::map<RangeKey, int> times;
  for (const NamedOperation& pass : passes) ++times[KeyOf(pass)];
  return std::any_of(times.begin(), times.end(), [&](const auto& time) {
    return time.second != times.begin()->second;
  });
}

// Leaves out starts after which no pass starts before the next one.
void KeepStartsOfPasses(const std::vector<NamedRange>& ranges,
                        std::vector<double>* starts) {
  std::vector<double> passes;
  for (const NamedRange& range : ranges) {
    if (IsPass(range.operation.kind)) {
      passes.push_back(range.start_microseconds);
    }
  }
  std::vector<double> kept;
  for (size_t i = 0; i < starts->size(); ++i) {
    const auto pass =
        std::lower_bound(passes.begin(), passes.end(), (*starts)[i]);
    const bool is_last = i + 1 == starts->size();
    if (pass != passes.end() && (is_last || *pass < (*starts)[i + 1])) {
      kept.push_back((*starts)[i]);
    }
  }
  *starts = std::move(kept);
}

// The passes of the current step.
struct CurrentStep {
  std::map<std::pair<int, int>, int> largest;  // (stage, chunk): microbatch
  std::set<RangeKey> seen;

  void Add(const NamedOperation& o) {
    const auto [at, is_new] =
        largest.try_emplace({o.stage, o.chunk}, o.microbatch);
    at->second = std::max(at->second, o.microbatch);
    seen.insert(KeyOf(o));
  }
};

// Returns true if a forward, whose microbatch the step has passed, is one too
// many in it: the stage goes on after it, or begins again with another forward
// before a pass runs again.
bool IsExtra(const std::vector<NamedRange>& ranges, size_t i, int largest,
             const std::set<RangeKey>& seen) {
  const NamedOperation& extra = ranges[i].operation;
  for (size_t k = i + 1; k < ranges.size(); ++k) {
    const NamedOperation& o = ranges[k].operation;
    if (!IsPass(o.kind)) continue;
    const bool is_next = o.kind == RecordedKind::kForward &&
                         o.stage == extra.stage && o.chunk == extra.chunk;
    if (is_next)
      return o.microbatch > largest || o.microbatch < extra.microbatch;
    if (seen.contains(KeyOf(o))) return false;
  }
  return false;
}

// The forwards of a stage run in the order of their microbatches, so that a
// lower number starts a step, whichever passes are missing.
std::vector<double> StartsOfForwards(const std::vector<NamedRange>& ranges) {
  std::vector<double> starts = {-std::numeric_limits<double>::infinity()};
  CurrentStep step;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const NamedOperation& o = ranges[i].operation;
    if (!IsPass(o.kind)) continue;
    const auto largest = step.largest.find({o.stage, o.chunk});
    if (o.kind == RecordedKind::kForward && largest != step.largest.end() &&
        o.microbatch <= largest->second &&
        !IsExtra(ranges, i, largest->second, step.seen)) {
      starts.push_back(ranges[i].start_microseconds);
      step = {};
    }
    step.Add(o);
  }
  return starts;
}

}  // namespace

bool HasUnnumbered(const std::vector<NamedRange>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [](const NamedRange& range) {
    return IsPass(range.operation.kind) && range.operation.microbatch < 0;
  });
}

RangeSteps FindSteps(const WorkerRanges& worker) {
  const double first = -std::numeric_limits<double>::infinity();
  std::vector<NamedOperation> passes;
  std::vector<double> optimizer_ends = {first};
  const bool is_numbered = !HasUnnumbered(worker.ranges);
  for (const NamedRange& range : worker.ranges) {
    const NamedOperation& o = range.operation;
    if (IsPass(o.kind)) passes.push_back(o);
    if (o.kind == RecordedKind::kOptimizerStep) {
      optimizer_ends.push_back(range.start_microseconds + range.microseconds);
    }
  }
  if (is_numbered && !AreUneven(passes)) return {};
  const std::set<double>& marks =
      worker.on_gpu ? worker.gpu_steps : worker.host_steps;
  RangeSteps steps = {{marks.begin(), marks.end()}, true};
  if (!is_numbered && optimizer_ends.size() > 1) {
    steps.start_microseconds = std::move(optimizer_ends);
  } else if (!is_numbered && marks.empty()) {
    steps.start_microseconds.assign(worker.host_steps.begin(),
                                    worker.host_steps.end());
  } else if (is_numbered && marks.empty()) {
    return {StartsOfForwards(worker.ranges), false};
  }
  KeepStartsOfPasses(worker.ranges, &steps.start_microseconds);
  return steps;
}

size_t DropCopies(std::vector<NamedRange>* ranges) {
  const size_t count = ranges->size();
  std::set<std::pair<RangeKey, double>> seen;  // with the same start
  double start = 0;
  std::erase_if(*ranges, [&](const NamedRange& range) {
    if (range.start_microseconds != start) seen.clear();
    start = range.start_microseconds;
    return !seen.emplace(KeyOf(range.operation), range.microseconds).second;
  });
  return count - ranges->size();
}

size_t MergeStreams(std::vector<NamedRange>* ranges) {
  std::map<RangeKey, size_t> last;  // index of its last range
  std::vector<NamedRange> merged;
  for (const NamedRange& range : *ranges) {
    const auto [at, is_new] =
        last.try_emplace(KeyOf(range.operation), merged.size());
    if (!is_new) {
      NamedRange& before = merged[at->second];
      const double end = before.start_microseconds + before.microseconds;
      if (range.start_microseconds < end) {
        before.microseconds =
            std::max(end, range.start_microseconds + range.microseconds) -
            before.start_microseconds;
        continue;
      }
      at->second = merged.size();
    }
    merged.push_back(range);
  }
  const size_t count = ranges->size() - merged.size();
  *ranges = std::move(merged);
  return count;
}

}  // namespace weir::results
