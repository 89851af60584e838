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

// The stage of a rank, and which transfers and passes precede others there.
struct OrderMip::OffloadedStage {
  int stage = 0;
  // In multiples of what the rank holds for a microbatch.
  double activation = 0, deferred = 0, limit = 0;
  double seconds = 0;  // of a transfer in one direction, in multiples of unit_
  // Booleans. reload_first[j][k]: reload k has begun when forward j begins.
  // forward_first[j][k]: forward k has begun when reload j begins.
  // other_first[j][k]: reload k has begun when reload j begins; -1: j is k.
  std::vector<std::vector<int>> reload_first, forward_first, other_first;
};

OrderMip::Sum OrderMip::Negation(int boolean) {
  return Sum{{}, 1}.Plus(Variable(boolean, -1));
}

// Adds a boolean that can be 1 only if `left` >= `right`.
int OrderMip::AddOnlyIf(const Sum& left, const Sum& right) {
  const int boolean = model_.AddBoolean();
  AddUnless(left, right, Negation(boolean));
  return boolean;
}

// Limits what the rank holds at the start of each forward and reload. If two
// may start at the same time, at least one counts the other.
void OrderMip::AddOffloadMemory(int rank) {
  const double unit = HeldByMicrobatch(problem_);
  if (!(unit > 0) || !std::isfinite(problem_.memory_limit)) return;
  const schedules::StagePassCosts& costs = problem_.costs.of(rank);
  OffloadedStage on;
  on.stage = rank;  // one per rank
  on.activation = costs.activation / unit;
  on.deferred = costs.weight_gradient_inputs / unit;
  on.seconds = TransferSeconds(on.stage);
  on.limit = problem_.memory_limit / unit * (1 + 1e-9);
  AddOrdersOfReloads(&on);
  LimitAtForwards(on);
  LimitAtReloads(on);
}

// Adds the booleans of `on`, and what they mean for reloads that happen.
void OrderMip::AddOrdersOfReloads(OffloadedStage* on) {
  const int m = problem_.num_microbatches;
  const auto cell = [&](int k) { return on->stage * m + k; };
  on->reload_first.resize(m);
  on->forward_first.resize(m);
  on->other_first.resize(m);
  for (int j = 0; j < m; ++j) {
    for (int k = 0; k < m; ++k) {
      const Sum start =
          Start(table_.Number(on->stage, j, schedules::Op::kForward));
      const Sum in = Variable(reload_[cell(k)]);
      const int a = model_.AddBoolean(), b = model_.AddBoolean();
      const Sum stays = Negation(moved_[cell(k)]);
      AddUnless(in, start, Sum(stays).Plus(Variable(a)));
      AddUnless(start, in, Sum(stays).Plus(Variable(b)));
      AddAtLeast(Variable(a).Plus(Variable(b)).Plus(stays), 1);
      on->reload_first[j].push_back(a);
      on->forward_first[k].push_back(b);  // [reload k][forward j]
      on->other_first[j].push_back(j == k ? -1 : model_.AddBoolean());
    }
  }
  for (int j = 0; j < m; ++j) {
    for (int k = 0; k < m; ++k) {
      if (j == k) continue;
      const Sum excuse =
          Negation(moved_[cell(j)]).Plus(Negation(moved_[cell(k)]));
      const int first = on->other_first[j][k];
      AddUnless(Variable(reload_[cell(k)]), Variable(reload_[cell(j)]),
                Sum(excuse).Plus(Variable(first)));
      if (j < k) {
        AddAtLeast(
            Variable(first).Plus(Variable(on->other_first[k][j])).Plus(excuse),
            1);
      }
    }
  }
}

// Adds to what is held at `start` that activation k may be away, or back if the
// boolean `back` is 1.
void OrderMip::CountTransfers(const OffloadedStage& on, const Sum& start, int k,
                              int back, Sum* held) {
  const int cell = on.stage * problem_.num_microbatches + k;
  const int away =
      AddOnlyIf(start, Variable(offload_[cell]).Plus({{}, on.seconds}));
  AddAtLeast(Variable(moved_[cell]).Plus(Variable(away), -1), 0);
  held->Plus(Variable(away), -on.activation);
  // Without an offload there is no reload.
  AddAtLeast(Variable(moved_[cell]).Plus(Variable(back), -1), 0);
  held->Plus(Variable(back), on.activation);
}

// Limits what is held at the forwards.
void OrderMip::LimitAtForwards(const OffloadedStage& on) {
  const int m = problem_.num_microbatches;
  const auto number = [&](int k, schedules::Op pass) {
    return table_.Number(on.stage, k, pass);
  };
  for (int j = 0; j < m; ++j) {
    const int32_t forward = number(j, schedules::Op::kForward);
    const Sum start = Start(forward);
    Sum held = {{}, on.activation};
    for (int k = 0; k < m; ++k) {
      if (k != j) {
        held.Plus(Before(number(k, schedules::Op::kForward), forward),
                  on.activation);
      }
      held.Plus(Before(number(k, schedules::Op::kBackwardInput), forward),
                on.deferred - on.activation);
      if (problem_.can_split) {
        held.Plus(Before(number(k, schedules::Op::kBackwardWeight), forward),
                  -on.deferred);
      } else {
        held.Plus(Before(number(k, schedules::Op::kBackwardInput), forward),
                  -on.deferred);
      }
      if (k >= j) continue;  // only earlier ones can be on the host
      CountTransfers(on, start, k, on.reload_first[j][k], &held);
    }
    if (held.terms.empty()) continue;
    model_.AddRow(held.terms, -kInfinity, on.limit - held.constant);
  }
}

// Limits what is held at the reloads of activations that are offloaded.
void OrderMip::LimitAtReloads(const OffloadedStage& on) {
  const int m = problem_.num_microbatches;
  const auto number = [&](int k, schedules::Op pass) {
    return table_.Number(on.stage, k, pass);
  };
  for (int j = 0; j < m; ++j) {
    const int cell = on.stage * m + j;
    const Sum start = Variable(reload_[cell]);
    Sum held;  // its own is on the host and returns
    for (int k = 0; k < m; ++k) {
      held.Plus(Variable(on.forward_first[j][k]), on.activation);
      const int ended =
          AddOnlyIf(start, End(number(k, schedules::Op::kBackwardInput)));
      held.Plus(Variable(ended),
                (problem_.can_split ? on.deferred : 0) - on.activation);
      if (problem_.can_split) {
        const int done =
            AddOnlyIf(start, End(number(k, schedules::Op::kBackwardWeight)));
        held.Plus(Variable(done), -on.deferred);
        // W ends after I: its release counts only with the change of I.
        AddAtLeast(Variable(ended).Plus(Variable(done), -1), 0);
      }
      if (k == j) continue;
      CountTransfers(on, start, k, on.other_first[j][k], &held);
    }
    // No limit if it is not offloaded.
    const double all = 2 * m * (on.activation + on.deferred) + on.limit;
    held.Plus(Variable(moved_[cell]), all);
    model_.AddRow(held.terms, -kInfinity, on.limit + all - held.constant);
  }
}

}  // namespace weir::plan
