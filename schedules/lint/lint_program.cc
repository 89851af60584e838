// SPDX-License-Identifier: Apache-2.0
#include "schedules/lint/lint_program.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"

namespace weir::schedules {
namespace {

using Kind = TransferFault::Kind;

std::string AdviceFor(Kind kind) {
  switch (kind) {
    case Kind::kUnmatched:
      return "a rank waits for it forever: add the other side, or remove it";
    case Kind::kTwice:
      return "remove one of them, and its other side";
    case Kind::kSize:
      return "both sides must transfer the same microbatches: different sizes "
             "hang without an error";
    case Kind::kNothing:
      return "move the send after the pass that produces its data";
    case Kind::kMissing:
      return "receive the input before the pass";
    case Kind::kLate:
      return "move the receive before the pass";
    case Kind::kUnused:
      return "remove it, and its send";
    case Kind::kNoStage:
      return "remove it, or correct the number of the stage";
    case Kind::kItself:
      return "remove it and its other side: the tensor is already on the rank";
    case Kind::kCrossed:
      return "NCCL matches the transfers between two ranks by their order: the "
             "ranks would receive wrong tensors, or hang if sizes differ; use "
             "the same order on both sides";
  }
  return "";
}

// State of a rank's stage.
struct StageState {
  bool gathered = false;
  int32_t reduced_at = -1;
  int32_t last_contribution = -1;
};

class RankWalk {
 public:
  RankWalk(const CommProgram& program, int rank, bool uses_sharding,
           bool uses_reduction, std::vector<Finding>* findings)
      : actions_(program.ranks[rank]),
        rank_(rank),
        uses_sharding_(uses_sharding),
        uses_reduction_(uses_reduction),
        findings_(findings) {}

  void Run() {
    for (int32_t i = 0; i < std::ssize(actions_); ++i) Step(i);
    if (!uses_reduction_) return;
    for (const auto& [stage, state] : states_) {
      if (state.last_contribution < 0) continue;
      if (state.reduced_at < 0) {
        Report("gradient", state.last_contribution,
               absl::StrCat("stage ", stage,
                            " has no REDUCE_GRAD, but other stages have"),
               "add it after the last B or W of the stage");
      } else if (state.reduced_at < state.last_contribution) {
        Report(
            "gradient", state.reduced_at,
            absl::StrCat(Named(state.reduced_at), " comes before ",
                         Named(state.last_contribution), " at position ",
                         state.last_contribution,
                         ", which contributes to the gradient that it reduces"),
            "later contributions stay on this data-parallel rank, and the "
            "ranks diverge; move REDUCE_GRAD after the last B or W of the "
            "stage");
      }
    }
  }

 private:
  void Step(int32_t i) {
    const CommAction& action = actions_[i];
    if (IsTransfer(action.op)) return;
    StageState& state = states_[action.stage];
    switch (action.op) {
      case Op::kUnshard:
        if (state.gathered) {
          Report("sharding", i,
                 absl::StrCat(Named(i),
                              " gathers weights that are already gathered"),
                 "PyTorch rejects it: remove it");
        }
        state.gathered = true;
        return;
      case Op::kReshard:
        if (!state.gathered) {
          Report("sharding", i,
                 absl::StrCat(Named(i), " frees weights that are not gathered"),
                 "PyTorch rejects it: remove it");
        }
        state.gathered = false;
        return;
      case Op::kReduceGradient:
        if (state.reduced_at >= 0) {
          Report(
              "gradient", i,
              absl::StrCat(Named(i), " appears a second time, after position ",
                           state.reduced_at),
              "the gradient would be reduced across data-parallel ranks twice");
        }
        state.reduced_at = i;
        return;
      default:
        break;
    }
    if (action.op == Op::kBackward || action.op == Op::kBackwardWeight) {
      state.last_contribution = i;
    }
    if (uses_sharding_ && action.op <= Op::kBackwardWeight && !state.gathered) {
      Report("sharding", i,
             absl::StrCat(
                 Named(i),
                 " uses weights that are not gathered: no UNSHARD of stage ",
                 action.stage, " precedes it"),
             absl::StrCat("add ", action.stage, "UNSHARD before it"));
      state.gathered = true;  // report it only once
    }
  }

  std::string Named(int32_t i) const { return ToString(actions_[i]); }

  void Report(absl::string_view rule, int32_t position, std::string message,
              std::string advice) {
    findings_->push_back({.rule = std::string(rule),
                          .place = {rank_, position},
                          .message = std::move(message),
                          .advice = std::move(advice)});
  }

  const std::vector<CommAction>& actions_;
  const int rank_;
  const bool uses_sharding_, uses_reduction_;
  std::vector<Finding>* const findings_;
  std::map<int32_t, StageState> states_;
};

bool Uses(const CommProgram& program, Op op) {
  return std::any_of(
      program.ranks.begin(), program.ranks.end(), [&](const auto& row) {
        return std::any_of(row.begin(), row.end(),
                           [&](const CommAction& a) { return a.op == op; });
      });
}

}  // namespace

std::vector<Finding> FromFaults(const std::vector<TransferFault>& faults) {
  std::vector<Finding> findings;
  for (const TransferFault& fault : faults) {
    findings.push_back({.rule = "transfer",
                        .place = fault.place,
                        .message = fault.message,
                        .advice = AdviceFor(fault.kind)});
  }
  return findings;
}

std::vector<Finding> FindStageFaults(const CommProgram& program) {
  std::vector<Finding> findings;
  const bool sharding = Uses(program, Op::kUnshard);
  const bool reduction = Uses(program, Op::kReduceGradient);
  for (size_t rank = 0; rank < program.ranks.size(); ++rank) {
    RankWalk(program, static_cast<int>(rank), sharding, reduction, &findings)
        .Run();
  }
  return findings;
}

}  // namespace weir::schedules
