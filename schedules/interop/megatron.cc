// SPDX-License-Identifier: Apache-2.0
#include "schedules/interop/megatron.h"

#include <algorithm>
#include <vector>

namespace weir::schedules {
namespace {

// The phases of a rank's order: num_warmup forwards, then pairs of a forward
// and a backward, then the remaining backwards.
struct Phases {
  std::vector<Action> forwards, backwards;
  size_t num_warmup = 0;
};

// Returns the phases of an order F...F FB...FB B...B, and nothing for any other
// order.
std::optional<Phases> PhasesOf(const std::vector<Action>& actions,
                               size_t usual_warmup) {
  Phases phases;
  size_t leading = 0;
  for (size_t i = 0; i < actions.size(); ++i) {
    const Action& action = actions[i];
    if (action.overlaps_next || action.num_microbatches > 1) return {};
    if (action.op == Op::kForward) {
      if (phases.backwards.empty()) ++leading;
      phases.forwards.push_back(action);
    } else if (action.op == Op::kBackward) {
      phases.backwards.push_back(action);
    } else {
      return {};
    }
  }
  const size_t total = phases.forwards.size();
  if (leading == 0) return {};
  // If every forward comes first, the last one may be part of the warm-up or of
  // the first pair. Follows Megatron's count.
  phases.num_warmup =
      leading == total && usual_warmup + 1 != total ? total : leading - 1;
  for (size_t i = phases.num_warmup; i < actions.size(); ++i) {
    const size_t paired = 2 * (total - phases.num_warmup);
    const size_t k = i - phases.num_warmup;
    const bool forward = k < paired && k % 2 == 0;
    if ((actions[i].op == Op::kForward) != forward) return {};
  }
  return phases;
}

class Builder {
 public:
  explicit Builder(const Schedule& schedule)
      : last_stage_(schedule.num_stages - 1) {}

  // Returns the program of 1F1B. Warm-up passes send and receive separately; a
  // pair of passes sends to and receives from the same neighbor in one batch.
  std::vector<CommAction> Plain(const Phases& phases) {
    const size_t warmup = phases.num_warmup;
    const size_t total = phases.forwards.size();
    for (size_t i = 0; i < warmup; ++i) {
      Batch({ReceiveFor(phases.forwards[i])});
      Pass(phases.forwards[i]);
      Batch({SendOf(phases.forwards[i])});
    }
    if (warmup < total) Batch({ReceiveFor(phases.forwards[warmup])});
    for (size_t i = warmup; i < total; ++i) {
      const Action& backward = phases.backwards[i - warmup];
      Pass(phases.forwards[i]);
      Batch({SendOf(phases.forwards[i]), ReceiveFor(backward)});
      Pass(backward);
      if (i + 1 == total) {
        Batch({SendOf(backward)});
      } else {
        Batch({SendOf(backward), ReceiveFor(phases.forwards[i + 1])});
      }
    }
    for (size_t i = total - warmup; i < total; ++i) {
      Batch({ReceiveFor(phases.backwards[i])});
      Pass(phases.backwards[i]);
      Batch({SendOf(phases.backwards[i])});
    }
    return std::move(row_);
  }

  // Returns the program of interleaved 1F1B. All sends of a step and all
  // receives of the next are one batch.
  std::vector<CommAction> Interleaved(const Phases& phases) {
    const size_t warmup = phases.num_warmup;
    const size_t total = phases.forwards.size();
    const bool all_warmup = warmup == total;
    Batch({ReceiveFor(phases.forwards[0])});
    for (size_t i = 0; i < warmup; ++i) {
      Pass(phases.forwards[i]);
      Transfers batch = {SendOf(phases.forwards[i])};
      if (i + 1 < total) batch.push_back(ReceiveFor(phases.forwards[i + 1]));
      if (i + 1 == warmup && !all_warmup) {
        batch.push_back(ReceiveFor(phases.backwards[0]));
      }
      Batch(batch);
    }
    if (all_warmup) Batch({ReceiveFor(phases.backwards[0])});
    for (size_t i = warmup; i < total; ++i) {
      const size_t back = i - warmup;
      Pass(phases.forwards[i]);
      Pass(phases.backwards[back]);
      Transfers batch = {SendOf(phases.forwards[i]),
                         SendOf(phases.backwards[back])};
      if (i + 1 < total) batch.push_back(ReceiveFor(phases.forwards[i + 1]));
      if (back + 1 < total) {
        batch.push_back(ReceiveFor(phases.backwards[back + 1]));
      }
      Batch(batch);
    }
    for (size_t i = total - warmup; i < total; ++i) {
      Pass(phases.backwards[i]);
      Transfers batch = {SendOf(phases.backwards[i])};
      if (i + 1 < total) batch.push_back(ReceiveFor(phases.backwards[i + 1]));
      Batch(batch);
    }
    return std::move(row_);
  }

 private:
  using Transfers = std::vector<std::optional<CommAction>>;

  void Pass(const Action& action) { row_.push_back(FromAction(action)); }

  std::optional<CommAction> SendOf(const Action& action) const {
    const bool forward = action.op == Op::kForward;
    if (action.stage == (forward ? last_stage_ : 0)) return {};
    CommAction send = FromAction(action);
    send.op = forward ? Op::kSendForward : Op::kSendBackward;
    return send;
  }

  std::optional<CommAction> ReceiveFor(const Action& action) const {
    const bool forward = action.op == Op::kForward;
    if (action.stage == (forward ? 0 : last_stage_)) return {};
    CommAction receive = FromAction(action);
    receive.op = forward ? Op::kReceiveForward : Op::kReceiveBackward;
    return receive;
  }

  void Batch(const Transfers& transfers) {
    size_t begin = row_.size();
    for (Op op : {Op::kSendBackward, Op::kReceiveForward, Op::kSendForward,
                  Op::kReceiveBackward}) {
      for (const std::optional<CommAction>& transfer : transfers) {
        if (transfer && transfer->op == op) row_.push_back(*transfer);
      }
    }
    for (; begin + 1 < row_.size(); ++begin) row_[begin].with_next = true;
  }

  const int last_stage_;
  std::vector<CommAction> row_;
};

}  // namespace

std::optional<CommProgram> MegatronProgram(const Schedule& schedule) {
  if (schedule.num_ranks < 2 || schedule.num_routes() > 1 ||
      schedule.forward_only) {
    return {};
  }
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    if (schedule.routes[0][stage] != stage % schedule.num_ranks) return {};
  }
  const bool plain = schedule.num_stages == schedule.num_ranks;
  CommProgram program;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const std::optional<Phases> phases = PhasesOf(
        schedule.rank_actions[rank], plain ? schedule.num_ranks - 1 - rank : 0);
    if (!phases) return {};
    Builder builder(schedule);
    program.ranks.push_back(plain ? builder.Plain(*phases)
                                  : builder.Interleaved(*phases));
  }
  return program;
}

}  // namespace weir::schedules
