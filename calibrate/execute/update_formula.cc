// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/update_formula.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "schedules/options.h"
#include "schedules/registry.h"

namespace weir::calibrate {
namespace {

using Options = std::map<std::string, std::string>;
using Reads = std::function<WeightsRead(int stage, int microbatch)>;

bool Has(const Options& options, const std::string& name,
         absl::string_view value) {
  const auto found = options.find(name);
  return found != options.end() && found->second == value;
}

// Reads version floor((k - delay(s)) / n): gradients of delay(s) microbatches
// before k are not applied yet, and n microbatches are one update. Versions
// start at 0.
Reads After(int n, std::function<int(int stage)> delay) {
  return [n, delay = std::move(delay)](int stage, int k) {
    return WeightsRead{std::max(k - delay(stage), 0) / n};
  };
}

// Reads the newest weights that do not include the microbatch's own gradient.
Reads Newest(int n) {
  return After(n, [](int) { return 0; });
}

Reads Ahead(Reads reads, std::function<double(int stage)> distance) {
  return [reads = std::move(reads), distance = std::move(distance)](int stage,
                                                                    int k) {
    return WeightsRead{reads(stage, k).version, distance(stage)};
  };
}

std::vector<int> Everywhere(const FormulaShape& shape, int n) {
  return std::vector<int>(shape.num_stages, n);
}

// Narayanan et al., SOSP 2019, section 3.3. For minibatch t, from 0, stage s of
// p, from 0, reads w_s^(t-(p-1-s)).
UpdateFormula PipeDream(const FormulaShape& shape) {
  const int p = shape.num_stages;
  UpdateFormula formula;
  formula.text =
      "w(t+1) = w(t) - eta grad f(w_0(t-p+1), w_1(t-p+2), ..., w_{p-1}(t)); "
      "Narayanan et al., SOSP 2019, section 3.3";
  formula.microbatches_per_update = Everywhere(shape, 1);
  formula.forward = After(1, [p](int stage) { return p - 1 - stage; });
  formula.backward = formula.forward;
  return formula;
}

// The same section: every stage reads the version that the first stage read.
UpdateFormula VerticalSync(const FormulaShape& shape) {
  const int p = shape.num_stages;
  UpdateFormula formula = PipeDream(shape);
  formula.text =
      "w(t+1) = w(t) - eta grad f(w_0(t-p+1), ..., w_{p-1}(t-p+1)); Narayanan "
      "et "
      "al., SOSP 2019, section 3.3, vertical sync";
  formula.forward = After(1, [p](int) { return p - 1; });
  formula.backward = formula.forward;
  return formula;
}

// Returns the formula of 1F1B-RR (section 3.2, and the artifact's
// runtime/runtime.py). In a stage with r replicas, replica k mod r runs
// microbatch k and is floor((N - 1 - ranks before) / r) of its own forwards
// ahead of its backward. Replicas average their gradients, so r microbatches
// are one update, and microbatch k belongs to update floor(k / r).
UpdateFormula RoundRobin(const std::vector<int>& replicas, bool vertical_sync) {
  const int num_ranks = std::accumulate(replicas.begin(), replicas.end(), 0);
  std::vector<int> delays;
  int before = 0;
  for (const int count : replicas) {
    delays.push_back((num_ranks - 1 - before) / count);
    before += count;
  }
  if (vertical_sync) {
    delays.assign(delays.size(), delays.front());
  }
  UpdateFormula formula;
  formula.text = absl::StrCat(
      "w_s(u+1) = w_s(u) - eta grad f(.., w_s(u-d_s), ..), u = floor(k/r_s) "
      "for "
      "microbatch k and r_s replicas, d_s = floor((N-1-ranks before)/r_s) with "
      "N ranks",
      vertical_sync ? " of the first stage" : "",
      "; Narayanan et al., SOSP 2019, section 3.2");
  formula.microbatches_per_update = replicas;
  formula.forward = [replicas, delays](int stage, int k) {
    return WeightsRead{std::max(k / replicas[stage] - delays[stage], 0)};
  };
  formula.backward = formula.forward;
  return formula;
}

absl::StatusOr<UpdateFormula> PipeDreamOf(const FormulaShape& shape,
                                          const Options& options) {
  const bool vertical_sync = Has(options, "vertical-sync", "yes");
  const auto given = options.find("replicas");
  if (given == options.end()) {
    return vertical_sync ? VerticalSync(shape) : PipeDream(shape);
  }
  std::vector<int> replicas;
  for (const absl::string_view text : absl::StrSplit(given->second, '-')) {
    int count = 0;
    if (!absl::SimpleAtoi(text, &count) || count < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("replicas is ", given->second,
                       ", expected numbers above 0, as in 2-1"));
    }
    replicas.push_back(count);
  }
  return RoundRobin(replicas, vertical_sync);
}

// Narayanan et al., ICML 2021, section 3.1: max(floor((k-1)/m) - 1, 0) for k
// from 1, in all stages.
UpdateFormula TwoBufferedWeights(const FormulaShape& shape) {
  const int m = shape.num_microbatches;
  UpdateFormula formula;
  formula.text =
      "w(t+1) = w(t) - eta grad f(w(t-1)); Narayanan et al., ICML 2021, "
      "section "
      "3.1";
  formula.microbatches_per_update = Everywhere(shape, m);
  formula.forward = [m](int, int k) {
    return WeightsRead{std::max(k / m - 1, 0)};
  };
  formula.backward = formula.forward;
  return formula;
}

// Yang et al., MLSys 2021, section 2: between the forward and the backward of a
// microbatch in stage i, from 1, there are 2(p-i)+1 other backwards; a batch of
// m is one update: tau = (2(p-i)+1)/m on average. Section 3.2, T2: the
// backward, whose own delay is 0, computes at w - tau delta.
UpdateFormula PipeMare(const FormulaShape& shape, const Options& options) {
  const int p = shape.num_stages, m = shape.num_microbatches;
  const bool is_1f1b = Has(options, "order", "1f1b");
  const auto others = [p, is_1f1b](int stage) {
    return is_1f1b ? p - 1 - stage : 2 * (p - 1 - stage) + 1;
  };
  UpdateFormula formula;
  formula.text = absl::StrCat(
      "w(t+1) = w(t) - eta grad f(forward w_s(t-tau_s), backward w_s(t)",
      Has(options, "correction", "none") ? "" : " - tau_s delta_s(t)",
      "), tau_s = ", is_1f1b ? "(p-1-s)/m" : "(2(p-1-s)+1)/m",
      Has(options, "correction", "none")
          ? ""
          : ", delta_s: moving average of the weight changes",
      "; Yang et al., MLSys 2021, sections 2 and 3.2");
  formula.microbatches_per_update = Everywhere(shape, m);
  formula.forward = After(m, others);
  formula.backward = Newest(m);
  if (Has(options, "correction", "none")) return formula;
  formula.by_average = true;
  formula.backward = Ahead(formula.backward, [others, m](int stage) {
    return -static_cast<double>(others(stage)) / m;
  });
  return formula;
}

// Chen et al., 2018, section 3.3: W - s eta v with s_F = floor(g/2) + N-g-1 and
// s_B = floor(g/2) on GPU g of N, from the newest weights of PipeDream's order.
UpdateFormula SpecTrain(const FormulaShape& shape) {
  const int p = shape.num_stages;
  UpdateFormula formula;
  formula.text =
      "w(t+1) = w(t) - eta grad f(forward w_s(t-(p-1-s)) - s_F eta v, backward "
      "w_s(t) - s_B eta v), s_F = floor(s/2)+p-1-s, s_B = floor(s/2), "
      "v: velocity; Chen et al., 2018, section 3.3";
  formula.microbatches_per_update = Everywhere(shape, 1);
  formula.forward = Ahead(After(1, [p](int stage) { return p - 1 - stage; }),
                          [p](int stage) { return stage / 2 + p - stage - 1; });
  formula.backward = Ahead(Newest(1), [](int stage) { return stage / 2; });
  return formula;
}

// Guan et al., 2019, section 3: the bellwether, microbatch uT of minibatch u,
// predicts for all T microbatches from the newest weights of PipeDream's order.
// It predicts the weights of the stage when GPU 0 ends the minibatch
// (docs/decisions/0011): as with SpecTrain, floor(g/2) backwards after its own
// of microbatch uT + T-1.
UpdateFormula XPipe(const FormulaShape& shape) {
  const int p = shape.num_stages, n = shape.num_microbatches;
  const auto versions_ahead = [p, n](int stage) {
    const int found = -((p - 1 - stage + n - 1) / n);  // version read, minus u
    const int aimed_at = (n - 1 + stage / 2) / n;
    return static_cast<double>(aimed_at - found);
  };
  UpdateFormula formula;
  formula.text =
      "w(t+1) = w(t) - eta grad f(w_s(b) + d_s step(b)) in both passes, b = "
      "max(t - ceil((p-1-s)/m), 0), d_s = ceil((p-1-s)/m) + "
      "floor((m-1+floor(s/2))/m), step(b): the optimizer's step from w_s(b); "
      "Guan et al., 2019, section 3";
  formula.microbatches_per_update = Everywhere(shape, n);
  const Reads at_bellwether =
      After(n, [p](int stage) { return p - 1 - stage; });
  formula.forward =
      Ahead([at_bellwether, n](
                int stage, int k) { return at_bellwether(stage, k / n * n); },
            versions_ahead);
  formula.backward = formula.forward;
  return formula;
}

// Kosson et al., MLSys 2021, section 3: D_s = 2(S-1-s), without stash. Spike
// compensation is in the optimizer (execution_plan.cc); linear weight
// prediction uses T = D, from the forward's weights.
UpdateFormula PipelinedBackprop(const FormulaShape& shape,
                                const Options& options) {
  const int p = shape.num_stages;
  const bool predicts = Has(options, "mitigation", "linear-prediction");
  const auto delay = [p](int stage) { return 2 * (p - 1 - stage); };
  UpdateFormula formula;
  formula.text = absl::StrCat(
      "w(t+1) = w(t) - eta grad f(forward w_s(t-D_s)",
      predicts ? " - eta D_s v(t-D_s)" : "",
      ", backward w_s(t)), D_s = 2(p-1-s)", predicts ? ", v: velocity" : "",
      Has(options, "mitigation", "spike-compensation")
          ? ", step a v + b g, v: velocity, g: gradient, a = mu^D_s, "
            "b = (1-mu^D_s)/(1-mu), mu: momentum"
          : "",
      "; Kosson et al., MLSys 2021, section 3");
  formula.microbatches_per_update = Everywhere(shape, 1);
  formula.forward = After(1, delay);
  formula.backward = Newest(1);
  if (predicts) formula.forward = Ahead(formula.forward, delay);
  return formula;
}

// Dutta et al., 2024: N microbatches forward, one backward for the minibatch
// with the newest weights. A stage runs (W-1-s) microbatches ahead of the last
// (docs/decisions/0011), or that many minibatches.
UpdateFormula TiMePReSt(const FormulaShape& shape, const Options& options) {
  const int p = shape.num_stages, n = shape.num_microbatches;
  const int step = Has(options, "ahead", "minibatch") ? n : 1;
  UpdateFormula formula;
  formula.text = absl::StrCat(
      "w(t+1) = w(t) - eta grad f(forward w_s(floor((k-a_s)/m)), backward "
      "w_s(t)), t = floor(k/m) for microbatch k, a_s = ",
      step == 1 ? "" : "m", "(p-1-s); Dutta et al., 2024");
  formula.microbatches_per_update = Everywhere(shape, n);
  formula.forward =
      After(n, [p, step](int stage) { return step * (p - 1 - stage); });
  formula.backward = Newest(n);
  return formula;
}

}  // namespace

absl::StatusOr<UpdateFormula> FormulaOf(absl::string_view schedule_name,
                                        const FormulaShape& shape) {
  const absl::Status unknown = absl::NotFoundError(absl::StrCat(
      schedule_name, ": no formula for training without a flush is known"));
  const auto found = schedules::FindScheduleKind(schedule_name);
  if (!found.ok()) return unknown;  // a file
  const schedules::ScheduleKind* const kind = *found;
  ASSIGN_OR_RETURN(const schedules::ScheduleSpec spec,
                   schedules::WithOptionsOf(schedule_name, *kind,
                                            schedules::ScheduleSpec()));
  const Options& options = spec.options;
  if (kind->name == "pipedream") return PipeDreamOf(shape, options);
  if (kind->name == "pipedream-2bw") return TwoBufferedWeights(shape);
  if (kind->name == "pipemare") return PipeMare(shape, options);
  if (kind->name == "spectrain") return SpecTrain(shape);
  if (kind->name == "xpipe") return XPipe(shape);
  if (kind->name == "pipelined-backprop") {
    return PipelinedBackprop(shape, options);
  }
  if (kind->name == "timeprest") return TiMePReSt(shape, options);
  return unknown;
}

UpdateFormula SynchronousFormula(const FormulaShape& shape) {
  const int m = shape.num_microbatches;
  UpdateFormula formula;
  formula.text = "w(t+1) = w(t) - eta grad f(w(t)), minibatch SGD";
  formula.microbatches_per_update = Everywhere(shape, m);
  formula.forward = formula.backward = Newest(m);
  return formula;
}

}  // namespace weir::calibrate
