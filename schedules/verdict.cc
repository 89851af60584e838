// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "schedules/semantics.h"

namespace weir {
namespace {

// What the version table says, over all stages and microbatches.
struct Delay {
  int least = 0;  // of max_staleness over the stages
  int most = 0;
  bool is_steady = true;  // a stage keeps its delay once it has reached it
  bool is_rank_distance = true;     // stage s of p has delay p-1-s
  bool reads_two_versions = false;  // some backward reads another than forward
};

Delay MeasureDelay(const Semantics& semantics) {
  const std::vector<int>& staleness = semantics.max_staleness;
  const int num_stages = static_cast<int>(staleness.size());
  Delay delay;
  delay.least = *std::min_element(staleness.begin(), staleness.end());
  delay.most = *std::max_element(staleness.begin(), staleness.end());
  for (int stage = 0; stage < num_stages; ++stage) {
    if (staleness[stage] != num_stages - 1 - stage) {
      delay.is_rank_distance = false;
    }
    for (const VersionUse& use : semantics.uses[stage]) {
      const int steady = std::min(use.update, staleness[stage]);
      if (use.staleness() != steady) delay.is_steady = false;
      if (use.forward_version != use.backward_version) {
        delay.reads_two_versions = true;
      }
    }
  }
  return delay;
}

std::string DescribeDelay(const Schedule& schedule, const Delay& delay) {
  const bool may_delay =
      schedule.num_ranks > 1 ||
      schedule.weights.forward == WeightPolicy::ForwardRead::kDelayed;
  if (delay.most == 0 && !schedule.flush && may_delay) {
    return absl::StrCat("no delay within ", schedule.total_microbatches(),
                        " microbatches, too few to show one");
  }
  if (delay.most == 0) return "equal to minibatch SGD";
  if (!delay.is_steady) {
    return absl::StrCat("delay changes between microbatches, at most ",
                        delay.most);
  }
  if (delay.least == delay.most) {
    return absl::StrCat("delay ", delay.most,
                        ", constant: W(t+1) = W(t) - v grad f(W(t-", delay.most,
                        "))");
  }
  if (delay.is_rank_distance) {
    return absl::StrCat(
        "stage-dependent delay p-1-s: W(t+1) = W(t) - v grad "
        "f(W_0(t-",
        delay.most, "), ..., W_", delay.most, "(t))");
  }
  return absl::StrCat("stage-dependent delay, ", delay.least, " to ",
                      delay.most);
}

}  // namespace

std::string Verdict(const Schedule& schedule, const Semantics& semantics) {
  const Delay delay = MeasureDelay(semantics);
  return absl::StrCat(DescribeDelay(schedule, delay),
                      delay.reads_two_versions
                          ? "; a backward reads other weights than its forward"
                          : "");
}

}  // namespace weir
