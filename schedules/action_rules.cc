// SPDX-License-Identifier: Apache-2.0
#include "schedules/action_rules.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace weir::schedules {
namespace {

bool IsInRange(const Schedule& schedule, const Action& action) {
  return action.stage >= 0 && action.stage < schedule.num_stages &&
         action.num_microbatches > 0 && action.microbatch >= 0 &&
         action.last_microbatch() < schedule.total_microbatches();
}

}  // namespace

std::string PlaceProblem(const Schedule& schedule, int rank,
                         const Action& action) {
  if (!IsInRange(schedule, action)) {
    return absl::StrCat("is outside the ", schedule.num_stages, " stages x ",
                        schedule.total_microbatches(), " microbatches");
  }
  if (schedule.forward_only && action.op != Op::kForward) {
    return "is not a forward, expected only forwards in a forward-only "
           "pipeline";
  }
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    const int holder = schedule.rank_of(action.stage, k);
    if (holder == rank) continue;
    return absl::StrCat("is of stage ", action.stage, ", which rank ", holder,
                        schedule.num_routes() > 1
                            ? absl::StrCat(" runs for microbatch ", k)
                            : " holds");
  }
  return "";
}

absl::string_view OrderProblem(Op op, uint8_t seen) {
  if (seen & BitOf(op)) return "appears a second time";
  if (op != Op::kForward && !(seen & BitOf(Op::kForward))) {
    return "comes before its forward";
  }
  if (op == Op::kBackwardWeight && !(seen & BitOf(Op::kBackwardInput))) {
    return "comes before its input gradient (I)";
  }
  const bool is_half = op == Op::kBackwardInput || op == Op::kBackwardWeight;
  const uint8_t halves = BitOf(Op::kBackwardInput) | BitOf(Op::kBackwardWeight);
  if ((is_half && (seen & BitOf(Op::kBackward))) ||
      (op == Op::kBackward && (seen & halves))) {
    return "repeats a backward that a B or I has already computed";
  }
  if (op == Op::kOffload && (seen & (halves | BitOf(Op::kBackward)))) {
    return "offloads activations that its backward has already freed";
  }
  if (op == Op::kReload && !(seen & BitOf(Op::kOffload))) {
    return "comes before its offload (O)";
  }
  if (MakesInputGradient(op) && (seen & BitOf(Op::kOffload)) &&
      !(seen & BitOf(Op::kReload))) {
    return "needs activations that were offloaded and not yet reloaded (R)";
  }
  return "";
}

absl::string_view PairProblem(const std::vector<Action>& actions,
                              size_t position) {
  if (!actions[position].overlaps_next) return "";
  if (position + 1 == actions.size())
    return "is marked to overlap the next action, but is the last";
  const Action& one = actions[position];
  const Action& other = actions[position + 1];
  const bool is_pair =
      (one.op == Op::kForward && MakesInputGradient(other.op)) ||
      (other.op == Op::kForward && MakesInputGradient(one.op));
  if (!is_pair)
    return "overlaps the next action, expected a forward with a B or I";
  if (other.overlaps_next) return "overlaps two other actions, expected one";
  const bool same_microbatch = one.stage == other.stage &&
                               one.microbatch <= other.last_microbatch() &&
                               other.microbatch <= one.last_microbatch();
  if (same_microbatch) return "overlaps its own backward";
  return "";
}

std::string MissingPasses(uint8_t seen, bool forward_only) {
  std::string missing;
  auto need = [&](Op op) {
    if (seen & BitOf(op)) return;
    const char letter = Letter(op);
    absl::StrAppend(&missing, missing.empty() ? "" : " and ",
                    absl::string_view(&letter, 1));
  };
  const uint8_t halves = BitOf(Op::kBackwardInput) | BitOf(Op::kBackwardWeight);
  need(Op::kForward);
  if (forward_only || (seen & BitOf(Op::kBackward))) return missing;
  if ((seen & halves) == 0) {
    need(Op::kBackward);
  } else {
    need(Op::kBackwardInput);
    need(Op::kBackwardWeight);
  }
  return missing;
}

}  // namespace weir::schedules
