// SPDX-License-Identifier: Apache-2.0
#include "schedules/interop/pytorch_check.h"

#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schedules/comm/transfers.h"

namespace weir::schedules {
namespace {

uint8_t Bit(Op op) { return static_cast<uint8_t>(1U << static_cast<int>(op)); }

class Check {
 public:
  explicit Check(const ScheduleRows& rows)
      : rows_(rows),
        shape_(ShapeOf(rows.program)),
        seen_(static_cast<size_t>(shape_.num_stages) * shape_.num_microbatches,
              0),
        counts_(shape_.num_stages),
        rank_of_(shape_.num_stages, -1) {}

  std::string Run() {
    for (size_t rank = 0; rank < rows_.program.ranks.size(); ++rank) {
      const std::vector<CommAction>& actions = rows_.program.ranks[rank];
      for (size_t i = 0; i < actions.size(); ++i) {
        std::string verdict =
            Process(actions[i],
                    absl::StrCat("Rank ", rank, ", step ",
                                 rows_.places[rank][i].step, ": "),
                    static_cast<int>(rank));
        if (!verdict.empty()) return verdict;
      }
    }
    for (int stage = 0; stage < shape_.num_stages; ++stage) {
      std::string verdict = Count(stage);
      if (!verdict.empty()) return verdict;
    }
    return "";
  }

 private:
  std::string Process(const CommAction& action, const std::string& where,
                      int rank) {
    if (action.op <= Op::kBackwardWeight) {
      uint8_t& seen =
          seen_[static_cast<size_t>(action.stage) * shape_.num_microbatches +
                action.microbatch];
      const bool weight = action.op == Op::kBackwardWeight;
      const Op first = weight ? Op::kBackwardInput : Op::kForward;
      if (action.op != Op::kForward && (seen & Bit(first)) == 0) {
        return absl::StrCat(where, "Running ",
                            action.op == Op::kBackward ? "Full Backward"
                            : weight                   ? "Backward Weight"
                                                       : "Backward Input",
                            " for stage ", action.stage, ", microbatch ",
                            action.microbatch, " without first running ",
                            weight ? "Backward Input" : "Forward");
      }
      if ((seen & Bit(action.op)) == 0) {
        ++counts_[action.stage][static_cast<size_t>(action.op)];
      }
      seen |= Bit(action.op);
    }
    int& holder = rank_of_[action.stage];
    if (holder < 0) holder = rank;
    if (holder == rank) return "";
    return absl::StrCat(where, "Stage ", action.stage,
                        " is assigned to both rank ", rank, " and rank ",
                        holder);
  }

  std::string Count(int stage) const {
    const auto count = [&](Op op) {
      return counts_[stage][static_cast<size_t>(op)];
    };
    const int expected = shape_.num_microbatches;
    const int f = count(Op::kForward);
    const int b = count(Op::kBackward);
    const int i = count(Op::kBackwardInput);
    const int w = count(Op::kBackwardWeight);
    if (f != expected) {
      return absl::StrCat("Got ", f, " F microbatches for stage ", stage,
                          ", expected ", expected);
    }
    const std::string invalid =
        absl::StrCat("Invalid backward microbatches for stage ", stage, ": ");
    if (i != w) {
      return absl::StrCat(
          invalid, "I and W must have equal counts, but got I=", i, ", W=", w);
    }
    if (b + (i + w) / 2 != expected) {
      return absl::StrCat(invalid, "expected ", expected,
                          " total backwards, but got B=", b, ", I=", i,
                          ", W=", w);
    }
    return "";
  }

  const ScheduleRows& rows_;
  const ProgramShape shape_;
  std::vector<uint8_t> seen_;  // [stage][microbatch], a bit per pass
  std::vector<std::array<int, 4>> counts_;  // [stage][pass]
  std::vector<int> rank_of_;
};

}  // namespace

std::string PyTorchVerdict(const ScheduleRows& rows) {
  return Check(rows).Run();
}

}  // namespace weir::schedules
