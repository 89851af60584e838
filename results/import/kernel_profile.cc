// SPDX-License-Identifier: Apache-2.0
#include "results/import/kernel_profile.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/intervals.h"
#include "base/text_table.h"

namespace weir::results {
namespace {

constexpr double kMillisecond = 1e-3;  // in microseconds: multiply by it

bool IsExchange(const std::string& part) {
  return part == "dispatch" || part == "combine";
}

RecordedKind KindOf(const std::string& part, char direction, bool has_weight) {
  if (part == "dispatch") return RecordedKind::kDispatch;
  if (part == "combine") return RecordedKind::kCombine;
  if (direction == 'F') return RecordedKind::kForward;
  if (direction == 'W') return RecordedKind::kBackwardWeight;
  return has_weight ? RecordedKind::kBackwardInput : RecordedKind::kBackward;
}

double TotalOf(std::vector<Interval> intervals, double end) {
  std::vector<Interval> all = {{0, end}};
  return TakeOut(std::move(intervals), &all);
}

}  // namespace

void KernelProfile::Take(const ChromeEvent& event) {
  if (event.phase != 'X') return;
  const double start = event.start_microseconds;
  const double end = start + event.microseconds;
  if (event.category == "user_annotation") {
    const std::string& name = event.name;
    const size_t size = name.size();
    if (size < 4 || name[size - 3] != '(' || name[size - 1] != ')' ||
        !absl::StrContains("FBW", name[size - 2])) {
      return;
    }
    const std::string part = name.substr(0, size - 3);
    if (part == "attn" || part == "mlp" || IsExchange(part)) {
      ranges_.push_back({part, name[size - 2], start, end});
    }
    return;
  }
  const int64_t correlation = event.Integer("correlation", -1);
  if (correlation < 0) return;
  if (event.category == "cuda_runtime" || event.category == "cuda_driver") {
    launches_.push_back({correlation, start});
  } else if (event.category == "kernel" || event.category == "gpu_memcpy" ||
             event.category == "gpu_memset") {
    kernels_.push_back({correlation, start, end, -1});
  }
}

void KernelProfile::AssignRanges() {
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.start < b.start; });
  std::sort(launches_.begin(), launches_.end(),
            [](const Launch& a, const Launch& b) {
              return a.correlation < b.correlation;
            });
  for (Kernel& kernel : kernels_) {
    const auto launch = std::lower_bound(
        launches_.begin(), launches_.end(), kernel.correlation,
        [](const Launch& a, int64_t b) { return a.correlation < b; });
    if (launch == launches_.end() ||
        launch->correlation != kernel.correlation) {
      continue;
    }
    const double when = launch->microseconds;
    auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), when,
                         [](double a, const Range& b) { return a < b.start; });
    // The latest to begin of those that have not ended; ranges of a host
    // thread are nested, and few.
    constexpr int kMaxNested = 16;
    for (int i = 0; i < kMaxNested && after != ranges_.begin(); ++i) {
      --after;
      if (after->end < when) continue;
      kernel.range = static_cast<int32_t>(after - ranges_.begin());
      break;
    }
  }
}

std::string KernelProfile::Summary() const {
  double base = std::numeric_limits<double>::infinity(), last = 0;
  for (const Kernel& kernel : kernels_) {
    base = std::min(base, kernel.start);
    last = std::max(last, kernel.end);
  }
  const double window = last - base;
  std::vector<Interval> compute, exchange, all;
  struct Total {
    int num_ranges = 0, num_kernels = 0;
    double microseconds = 0;
  };
  std::map<std::string, Total> totals;
  for (const Range& range : ranges_) {
    ++totals[absl::StrFormat("%s(%c)", range.part, range.direction)].num_ranges;
  }
  Total others;
  for (const Kernel& kernel : kernels_) {
    const Interval interval = {kernel.start - base, kernel.end - base};
    all.push_back(interval);
    Total* total = &others;
    if (kernel.range >= 0) {
      const Range& range = ranges_[kernel.range];
      total = &totals[absl::StrFormat("%s(%c)", range.part, range.direction)];
      (IsExchange(range.part) ? exchange : compute).push_back(interval);
    }
    ++total->num_kernels;
    total->microseconds += kernel.end - kernel.start;
  }
  const double exchanged = TotalOf(exchange, window);
  std::vector<Interval> exposed;
  {
    // What is left of the exchanges after removing computation.
    std::vector<Interval> idle = {{0, window}};
    TakeOut(compute, &idle);
    const double busy_or_idle = LengthOf(idle);
    TakeOut(exchange, &idle);
    exposed.push_back({0, busy_or_idle - LengthOf(idle)});
  }
  const double shown = exposed[0].length();
  TextTable table;
  table.header = {"range", "ranges", "kernels", "GPU time"};
  for (const auto& [name, total] : totals) {
    table.rows.push_back(
        {name, absl::StrCat(total.num_ranges), absl::StrCat(total.num_kernels),
         absl::StrFormat("%.3f ms", kMillisecond * total.microseconds)});
  }
  table.rows.push_back(
      {"outside", "", absl::StrCat(others.num_kernels),
       absl::StrFormat("%.3f ms", kMillisecond * others.microseconds)});
  return absl::StrCat(
      PrintTable(table),
      absl::StrFormat(
          "\nGPU: %.3f ms from the first kernel to the last, %.3f ms busy\n"
          "dispatch and combine: %.3f ms, of which computation hides %.3f ms "
          "(%.1f %%)\n",
          kMillisecond * window, kMillisecond * TotalOf(all, window),
          kMillisecond * exchanged, kMillisecond * (exchanged - shown),
          exchanged > 0 ? 100 * (exchanged - shown) / exchanged : 0));
}

absl::StatusOr<RecordedRun> KernelProfile::Finish(absl::string_view label) {
  AssignRanges();
  struct Span {
    double start = std::numeric_limits<double>::infinity(), end = 0;
  };
  std::vector<Span> spans(ranges_.size());
  double base = std::numeric_limits<double>::infinity();
  for (const Kernel& kernel : kernels_) {
    if (kernel.range < 0) continue;
    Span& span = spans[kernel.range];
    span.start = std::min(span.start, kernel.start);
    span.end = std::max(span.end, kernel.end);
    base = std::min(base, kernel.start);
  }
  const bool has_weight =
      std::any_of(ranges_.begin(), ranges_.end(),
                  [](const Range& range) { return range.direction == 'W'; });
  RecordedRun run;
  run.label = std::string(label);
  run.format = "profile of one GPU";
  run.num_replicas = run.num_ranks = 1;
  run.in_parts = true;
  std::map<std::string, int> layers;
  int num_empty = 0;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const Range& range = ranges_[i];
    const int layer =
        layers[absl::StrFormat("%s(%c)", range.part, range.direction)]++;
    if (spans[i].end == 0) {
      ++num_empty;
      continue;
    }
    RecordedOperation o;
    o.kind = KindOf(range.part, range.direction, has_weight);
    o.stage = layer;
    o.microbatch = range.direction == 'F' ? 0 : 1;
    o.start_seconds = (spans[i].start - base) * kSecondsPerMicrosecond;
    o.end_seconds = (spans[i].end - base) * kSecondsPerMicrosecond;
    run.num_stages = std::max(run.num_stages, layer + 1);
    run.operations.push_back(o);
  }
  if (run.operations.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        label, ": has ", ranges_.size(),
        " ranges such as attn(F), but none of ", kernels_.size(),
        " kernels was launched in one, expected launches (cuda_runtime) with "
        "the correlation of their kernels"));
  }
  if (num_empty > 0) {
    run.notes.push_back(absl::StrCat(num_empty, " of ", ranges_.size(),
                                     " ranges launched no kernel"));
  }
  run.summary = Summary();
  return run;
}

}  // namespace weir::results
