// SPDX-License-Identifier: Apache-2.0
#include "results/import/pass_times.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/units.h"
#include "results/import/clocks.h"
#include "results/import/worker_names.h"
#include "results/import/worst_pair.h"

namespace weir::results {
namespace {

bool IsSameWorker(const RecordedOperation& a, const RecordedOperation& b) {
  return a.replica == b.replica && a.rank == b.rank;
}

class PassTimes {
 public:
  explicit PassTimes(RecordedRun* run) : run_(*run) {}

  absl::Status Check() {
    for (const RecordedStep& step : StepsOf(run_)) {
      const double allowed = AllowedSeconds(step);
      const RecordedOperation* begin = step.begin;
      while (begin != step.end) {
        const RecordedOperation* end = begin;
        while (end != step.end && IsSameWorker(*begin, *end)) ++end;
        CheckOrder(begin, end, allowed);
        CheckOverlap(begin, end, allowed);
        begin = end;
      }
    }
    if (early_.count > 0 && !run_.has_early_passes) {
      return absl::InvalidArgumentError(
          absl::StrCat(run_.label, ": ", EarlyText(),
                       ", expected a forward before its backward"));
    }
    if (early_.count > 0) run_.notes.push_back(EarlyText());
    if (overlaps_.count > 0) run_.notes.push_back(OverlapText());
    return absl::OkStatus();
  }

 private:
  // Of one worker in one step, as CheckOverlap.
  void CheckOrder(const RecordedOperation* begin, const RecordedOperation* end,
                  double allowed) {
    std::map<std::pair<int, int>, const RecordedOperation*> forwards;
    for (const auto* o = begin; o != end; ++o) {
      if (o->kind == RecordedKind::kForward) {
        forwards[{o->stage, o->microbatch}] = o;
      }
    }
    for (const auto* o = begin; o != end; ++o) {
      if (!IsPass(o->kind) || o->kind == RecordedKind::kForward) continue;
      const auto found = forwards.find({o->stage, o->microbatch});
      if (found == forwards.end()) continue;
      const RecordedOperation& forward = *found->second;
      const double early = forward.end_seconds - o->start_seconds;
      if (early > allowed && o->start_seconds <= forward.start_seconds) {
        early_.Add(forward, *o, early);
      }
    }
  }

  void CheckOverlap(const RecordedOperation* begin,
                    const RecordedOperation* end, double allowed) {
    const RecordedOperation* last = nullptr;  // the one that ends last
    for (const auto* o = begin; o != end; ++o) {
      if (!IsPass(o->kind)) continue;
      ++num_passes_;
      if (last != nullptr) {
        const double overlap =
            std::min(last->end_seconds, o->end_seconds) - o->start_seconds;
        if (overlap > allowed) overlaps_.Add(*last, *o, overlap);
      }
      if (last == nullptr || o->end_seconds > last->end_seconds) last = o;
    }
  }

  static std::string PassText(const RecordedOperation& o) {
    return absl::StrCat(NameOf(o.kind), " of microbatch ", o.microbatch);
  }

  std::string EarlyText() const {
    const RecordedOperation& backward = early_.second;
    return absl::StrFormat(
        "%s, step %d: the %s in stage %d starts at %s, but its forward lasts "
        "from %s to %s (%d of %d passes of all workers do so, this one most)",
        NameOfWorker(run_, backward.replica, backward.rank), backward.step,
        PassText(backward), backward.stage,
        FormatSeconds(backward.start_seconds),
        FormatSeconds(early_.first.start_seconds),
        FormatSeconds(early_.first.end_seconds), early_.count, num_passes_);
  }

  std::string OverlapText() const {
    const RecordedOperation& second = overlaps_.second;
    return absl::StrFormat(
        "%d of %d passes overlap an earlier one of the same worker, by up to "
        "%s (the %s and the %s on %s, in step %d): busy times count this once. "
        "Unless the runtime overlaps passes, as DualPipe does, their times are "
        "wrong",
        overlaps_.count, num_passes_, FormatSeconds(overlaps_.seconds),
        PassText(overlaps_.first), PassText(second),
        NameOfWorker(run_, second.replica, second.rank), second.step);
  }

  RecordedRun& run_;
  int64_t num_passes_ = 0;
  WorstPair early_, overlaps_;
};

}  // namespace

absl::Status CheckPassTimes(RecordedRun* run) {
  if (run->in_parts) return absl::OkStatus();
  return PassTimes(run).Check();
}

}  // namespace weir::results
