// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "schedules/semantics.h"
#include "schedules/stage_semantics.h"

namespace weir::schedules {
namespace {

constexpr double kExact = 1e-9;

// Summary of the version table over all stages and microbatches.
struct Delay {
  std::vector<StageSemantics> stages;
  int least = 0;  // minimum of max_staleness over the stages
  int most = 0;
  double least_mean = 0;
  double most_mean = 0;
  bool is_steady = true;  // a stage's delay is constant once reached
  // Every backward reads the weights that its gradient then updates.
  bool backward_reads_newest = true;
  int max_disagreement = 0;    // between F and B
  bool is_start_only = false;  // on some stage
};

Delay MeasureDelay(const Schedule& schedule, const Semantics& semantics) {
  Delay delay;
  delay.stages = SummarizeStages(schedule, semantics);
  delay.least = delay.stages[0].max_staleness;
  delay.least_mean = delay.stages[0].mean_staleness;
  for (const StageSemantics& stage : delay.stages) {
    delay.least = std::min(delay.least, stage.max_staleness);
    delay.most = std::max(delay.most, stage.max_staleness);
    delay.least_mean = std::min(delay.least_mean, stage.mean_staleness);
    delay.most_mean = std::max(delay.most_mean, stage.mean_staleness);
    delay.max_disagreement =
        std::max(delay.max_disagreement, stage.max_disagreement);
    delay.is_start_only |= stage.is_start_only;
    for (const VersionUse& use : semantics.uses[stage.stage]) {
      const int steady = std::min(use.update, stage.max_staleness);
      if (use.staleness() != steady) delay.is_steady = false;
      if (use.backward_version != use.update) {
        delay.backward_reads_newest = false;
      }
    }
  }
  return delay;
}

// A delay that decreases evenly from stage to stage, in microbatches: slope *
// (p-1-s) + last. FitEvenFall returns std::nullopt if the delays do not.
struct EvenFall {
  int slope = 0;
  int last = 0;
};

std::optional<EvenFall> FitEvenFall(const Delay& delay, bool steady) {
  const int num_stages = static_cast<int>(delay.stages.size());
  if (num_stages < 2) return std::nullopt;
  const auto in_microbatches = [&](int s) {
    const StageSemantics& stage = delay.stages[s];
    return steady ? stage.max_staleness
                  : stage.mean_staleness * stage.microbatches_per_update;
  };
  const double last = in_microbatches(num_stages - 1);
  const double slope = in_microbatches(num_stages - 2) - last;
  if (std::abs(last - std::round(last)) > kExact ||
      std::abs(slope - std::round(slope)) > kExact) {
    return std::nullopt;
  }
  for (int s = 0; s < num_stages; ++s) {
    const double even = last + slope * (num_stages - 1 - s);
    if (std::abs(in_microbatches(s) - even) > kExact * (1 + even)) {
      return std::nullopt;
    }
  }
  return EvenFall{static_cast<int>(std::lround(slope)),
                  static_cast<int>(std::lround(last))};
}

// Returns a text such as "p-1-s" or "2(p-1-s)+1".
std::string ToString(const EvenFall& fall) {
  std::string text = "p-1-s";
  if (fall.slope != 1) text = absl::StrCat(fall.slope, "(p-1-s)");
  if (fall.last != 0) absl::StrAppend(&text, "+", fall.last);
  return text;
}

std::string Number(double value) { return absl::StrFormat("%.4g", value); }

// Returns a text such as "w(t)" or "w_0(t-3)".
std::string Version(absl::string_view name, int delay) {
  return delay == 0 ? absl::StrCat(name, "(t)")
                    : absl::StrCat(name, "(t-", delay, ")");
}

// Returns the weights that the forwards read, as the argument of f.
std::string ForwardWeights(const Delay& delay) {
  if (!delay.is_steady) return "w_s(t-tau_s)";
  if (delay.least == delay.most) return Version("w", delay.most);
  const StageSemantics& first = delay.stages.front();
  const StageSemantics& last = delay.stages.back();
  return absl::StrCat(
      Version("w_0", first.max_staleness),
      delay.stages.size() > 2 ? ", ..., " : ", ",
      Version(absl::StrCat("w_", last.stage), last.max_staleness));
}

std::string RuleOf(const Delay& delay) {
  std::string weights = ForwardWeights(delay);
  if (delay.max_disagreement > 0) {
    absl::StrAppend(&weights, "; ",
                    delay.backward_reads_newest ? "w(t)" : "w_s(t-sigma_s)");
  }
  return absl::StrCat("w(t+1) = w(t) - eta grad f(", weights, ")");
}

// Returns a text such as "(2(p-1-s)+1)/m on average, at most 1".
std::string MeanDelay(const Delay& delay) {
  const std::optional<EvenFall> fall = FitEvenFall(delay, /*steady=*/false);
  const std::string mean = fall ? absl::StrCat("(", ToString(*fall), ")/m")
                           : delay.most_mean - delay.least_mean < kExact
                               ? Number(delay.most_mean)
                               : absl::StrCat(Number(delay.least_mean), " to ",
                                              Number(delay.most_mean));
  return absl::StrCat(mean, " on average, at most ", delay.most);
}

std::string DescribeDelay(const Schedule& schedule, const Delay& delay) {
  const bool may_delay =
      schedule.num_ranks > 1 ||
      schedule.weights.forward == WeightPolicy::ForwardRead::kDelayed;
  if (delay.most == 0 && !schedule.flush && may_delay) {
    return absl::StrCat("no delay within ", schedule.total_microbatches(),
                        " microbatches, which are too few to detect one");
  }
  if (delay.most == 0) return "equal to minibatch SGD";
  if (!delay.is_steady) {
    return absl::StrCat("delay changes between microbatches, ",
                        MeanDelay(delay),
                        delay.most == 1 ? " update" : " updates");
  }
  if (delay.least == delay.most) {
    return absl::StrCat("delay ", delay.most, ", constant: ", RuleOf(delay));
  }
  const std::optional<EvenFall> fall = FitEvenFall(delay, /*steady=*/true);
  if (fall) {
    return absl::StrCat("stage-dependent delay ", ToString(*fall), ": ",
                        RuleOf(delay));
  }
  return absl::StrCat("stage-dependent delay, ", delay.least, " to ",
                      delay.most, ": ", RuleOf(delay));
}

// Describes the disagreement between the weights that F and B read, and between
// their predictions.
std::string DescribeAgreement(const Schedule& schedule, const Delay& delay) {
  std::string text;
  if (delay.max_disagreement > 0) {
    absl::StrAppend(&text, "; F and B disagree by up to ",
                    delay.max_disagreement,
                    delay.max_disagreement == 1 ? " update" : " updates");
  }
  if (schedule.weights.prediction == WeightPolicy::Prediction::kNone) {
    return text;
  }
  double most = 0;
  double most_mean = 0;
  for (const StageSemantics& stage : delay.stages) {
    most = std::max(most, stage.max_predicted_disagreement);
    most_mean =
        std::max(most_mean, std::abs(stage.mean_predicted_disagreement));
  }
  if (most < kExact) return text + "; after prediction F and B agree";
  if (most_mean < kExact) {
    return text + "; after prediction F and B agree on average";
  }
  return absl::StrCat(text, "; after prediction F and B disagree by up to ",
                      Number(most));
}

}  // namespace

std::string Verdict(const Schedule& schedule, const Semantics& semantics) {
  if (schedule.forward_only) return "inference: no gradient, no update";
  const Delay delay = MeasureDelay(schedule, semantics);
  const bool syncs =
      schedule.weights.forward == WeightPolicy::ForwardRead::kFirstStage;
  return absl::StrCat(
      DescribeDelay(schedule, delay),
      syncs ? "; vertical sync: all stages read the same version as stage 0"
            : "",
      DescribeAgreement(schedule, delay),
      delay.most > 0 && delay.is_start_only
          ? "; too few batches to leave the start-up phase"
          : "");
}

std::string UpdateRule(const Schedule& schedule, const Semantics& semantics) {
  if (schedule.forward_only) return "none";
  const Delay delay = MeasureDelay(schedule, semantics);
  std::string rule = RuleOf(delay);
  if (!delay.is_steady) {
    absl::StrAppend(&rule, ", tau_s = ", MeanDelay(delay));
  }
  if (schedule.weights.prediction != WeightPolicy::Prediction::kNone) {
    absl::StrAppend(&rule, ", with weights predicted from these");
  }
  return rule;
}

}  // namespace weir::schedules
