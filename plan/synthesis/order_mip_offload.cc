// SPDX-License-Identifier: Apache-2.0
// OptPipe's transfers to and from the host in the program of an order.
#include <algorithm>
#include <cmath>

#include "plan/synthesis/order_mip.h"

namespace weir::plan {

// Returns the duration of a transfer in one direction, in multiples of unit_
// and at most the horizon: the excuses of AddUnless cover no more, and an
// activation whose transfer takes that long cannot return in time.
double OrderMip::TransferSeconds(int stage) const {
  return std::min(problem_.costs.of(stage).offload / unit_, horizon_);
}

// Each activation may be offloaded (moved) and is then reloaded before its
// gradient. A rank offloads one activation and reloads one at a time.
void OrderMip::AddOffloads() {
  const int m = problem_.num_microbatches;
  for (int stage = 0; stage < problem_.num_stages(); ++stage) {
    const double seconds = TransferSeconds(stage);
    for (int k = 0; k < m; ++k) {
      moved_.push_back(model_.AddBoolean());
      offload_.push_back(model_.AddVariable({0, horizon_, false, 0}));
      reload_.push_back(model_.AddVariable({0, horizon_, false, 0}));
      const Sum stays = Sum{{}, 1}.Plus(Variable(moved_.back(), -1));
      const Sum out = Variable(offload_.back()), in = Variable(reload_.back());
      AddUnless(out, End(table_.Number(stage, k, schedules::Op::kForward)),
                stays);
      AddUnless(in, Sum(out).Plus({{}, seconds}), stays);
      AddUnless(Start(table_.Number(stage, k, schedules::Op::kBackwardInput)),
                Sum(in).Plus({{}, seconds}), stays);
    }
    for (int j = 0; j < m; ++j) {
      for (int k = j + 1; k < m; ++k) {
        const size_t one = stage * m + j, other = stage * m + k;
        for (const std::vector<int>* channel : {&offload_, &reload_}) {
          const Sum first = Variable(model_.AddBoolean());  // j before k
          Sum excuse = {{}, 2};
          excuse.Plus(Variable(moved_[one], -1))
              .Plus(Variable(moved_[other], -1));
          const Sum a = Variable((*channel)[one]);
          const Sum b = Variable((*channel)[other]);
          AddUnless(b, Sum(a).Plus({{}, seconds}),
                    Sum(excuse).Plus({{}, 1}).Plus(first, -1));
          AddUnless(a, Sum(b).Plus({{}, seconds}), Sum(excuse).Plus(first));
        }
      }
    }
  }
}

// Limits what the rank holds at the start of each forward and reload. If two
// may start at the same time, at least one counts the other.
void OrderMip::AddOffloadMemory(int rank) {
  const double unit = HeldByMicrobatch(problem_);
  if (!(unit > 0) || !std::isfinite(problem_.memory_limit)) return;
  const int stage = rank, m = problem_.num_microbatches;  // one per rank
  const schedules::StagePassCosts& costs = problem_.costs.of(stage);
  const double activation = costs.activation / unit;
  const double deferred = costs.weight_gradient_inputs / unit;
  const double seconds = TransferSeconds(stage);
  const double limit = problem_.memory_limit / unit * (1 + 1e-9);
  const auto cell = [&](int k) { return stage * m + k; };
  const auto number = [&](int k, schedules::Op pass) {
    return table_.Number(stage, k, pass);
  };
  const auto negation = [](int boolean) {
    return Sum{{}, 1}.Plus(Variable(boolean, -1));
  };
  // Adds a boolean that can be 1 only if `left` >= `right`.
  const auto only_if = [&](const Sum& left, const Sum& right) {
    const int boolean = model_.AddBoolean();
    AddUnless(left, right, negation(boolean));
    return boolean;
  };
  // reload_first[j][k]: reload k has begun when forward j begins.
  // forward_first[j][k]: forward k has begun when reload j begins.
  std::vector<std::vector<int>> reload_first(m), forward_first(m),
      other_first(m);
  for (int j = 0; j < m; ++j) {
    for (int k = 0; k < m; ++k) {
      const Sum start = Start(number(j, schedules::Op::kForward));
      const Sum in = Variable(reload_[cell(k)]);
      const int a = model_.AddBoolean(), b = model_.AddBoolean();
      const Sum stays = negation(moved_[cell(k)]);
      AddUnless(in, start, Sum(stays).Plus(Variable(a)));
      AddUnless(start, in, Sum(stays).Plus(Variable(b)));
      AddAtLeast(Variable(a).Plus(Variable(b)).Plus(stays), 1);
      reload_first[j].push_back(a);
      forward_first[k].push_back(b);  // [reload k][forward j]
      other_first[j].push_back(j == k ? -1 : model_.AddBoolean());
    }
  }
  for (int j = 0; j < m; ++j) {
    for (int k = 0; k < m; ++k) {
      if (j == k) continue;
      // other_first[j][k]: reload k has begun when reload j begins.
      const Sum excuse =
          negation(moved_[cell(j)]).Plus(negation(moved_[cell(k)]));
      AddUnless(Variable(reload_[cell(k)]), Variable(reload_[cell(j)]),
                Sum(excuse).Plus(Variable(other_first[j][k])));
      if (j < k) {
        AddAtLeast(Variable(other_first[j][k])
                       .Plus(Variable(other_first[k][j]))
                       .Plus(excuse),
                   1);
      }
    }
  }
  // Limits at the forwards.
  for (int j = 0; j < m; ++j) {
    const int32_t forward = number(j, schedules::Op::kForward);
    const Sum start = Start(forward);
    Sum held = {{}, activation};
    for (int k = 0; k < m; ++k) {
      if (k != j) {
        held.Plus(Before(number(k, schedules::Op::kForward), forward),
                  activation);
      }
      held.Plus(Before(number(k, schedules::Op::kBackwardInput), forward),
                deferred - activation);
      if (problem_.can_split) {
        held.Plus(Before(number(k, schedules::Op::kBackwardWeight), forward),
                  -deferred);
      } else {
        held.Plus(Before(number(k, schedules::Op::kBackwardInput), forward),
                  -deferred);
      }
      if (k >= j) continue;  // only earlier ones can be on the host
      const int away =
          only_if(start, Variable(offload_[cell(k)]).Plus({{}, seconds}));
      AddAtLeast(Variable(moved_[cell(k)]).Plus(Variable(away), -1), 0);
      held.Plus(Variable(away), -activation);
      // Without an offload there is no reload.
      const int back = reload_first[j][k];
      AddAtLeast(Variable(moved_[cell(k)]).Plus(Variable(back), -1), 0);
      held.Plus(Variable(back), activation);
    }
    if (held.terms.empty()) continue;
    model_.AddRow(held.terms, -kInfinity, limit - held.constant);
  }
  // Limits at the reloads of offloaded activations.
  for (int j = 0; j < m; ++j) {
    const Sum start = Variable(reload_[cell(j)]);
    Sum held;  // its own is on the host and returns
    for (int k = 0; k < m; ++k) {
      held.Plus(Variable(forward_first[j][k]), activation);
      const int ended =
          only_if(start, End(number(k, schedules::Op::kBackwardInput)));
      held.Plus(Variable(ended),
                (problem_.can_split ? deferred : 0) - activation);
      if (problem_.can_split) {
        const int done =
            only_if(start, End(number(k, schedules::Op::kBackwardWeight)));
        held.Plus(Variable(done), -deferred);
        // W ends after I: its release counts only with the change of I.
        AddAtLeast(Variable(ended).Plus(Variable(done), -1), 0);
      }
      if (k == j) continue;
      const int away =
          only_if(start, Variable(offload_[cell(k)]).Plus({{}, seconds}));
      AddAtLeast(Variable(moved_[cell(k)]).Plus(Variable(away), -1), 0);
      held.Plus(Variable(away), -activation);
      AddAtLeast(
          Variable(moved_[cell(k)]).Plus(Variable(other_first[j][k]), -1), 0);
      held.Plus(Variable(other_first[j][k]), activation);
    }
    // No limit if it is not offloaded.
    const double all = 2 * m * (activation + deferred) + limit;
    held.Plus(Variable(moved_[cell(j)]), all);
    model_.AddRow(held.terms, -kInfinity, limit + all - held.constant);
  }
}

}  // namespace weir::plan
