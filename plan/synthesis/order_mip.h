// SPDX-License-Identifier: Apache-2.0
// The best order as a mixed-integer program: Zero Bubble's (Qi et al., 2024,
// appendix G: times, and a boolean for the order of each two passes of a rank),
// and OptPipe's (Li et al., 2025), which adds transfers to and from the host.
#ifndef WEIR_PLAN_SYNTHESIS_ORDER_MIP_H_
#define WEIR_PLAN_SYNTHESIS_ORDER_MIP_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/synthesis/mip.h"
#include "plan/synthesis/pass_rows.h"

namespace weir::plan {

// The program of a problem on one placement, and the conversion of its
// solutions. Its objective is the problem's, divided by `unit`.
//
// Passes of one kind on a stage run in the order of the microbatches, without
// loss of generality (PassRows). With offloads, optimality holds among such
// orders only. The memory of a rank is counted whenever a pass or a reload
// takes some; what was released must have ended by then.
class OrderMip {
 public:
  // Considers orders with values of at most `most`. Requires: no order is below
  // `least`. Both tighten the program.
  OrderMip(const PassTable& table, double least, double most);

  const MipModel& model() const { return model_; }
  double unit() const { return unit_; }
  int num_booleans() const { return num_booleans_; }

  // Returns the values of all variables for an order without offloads.
  std::vector<double> StartOf(const PassRows& rows) const;

  // Returns the schedule of a solution. TimedWalk's times of it are never later
  // than the solution's.
  schedules::Schedule ScheduleOf(const std::vector<double>& values) const;

 private:
  // Larger than the effect of CBC's tolerances on a sum.
  static constexpr double kSlack = 1e-6;

  // A linear expression.
  struct Sum {
    std::vector<std::pair<int, double>> terms;
    double constant = 0;

    Sum& Plus(const Sum& other, double factor = 1);
  };
  static Sum Variable(int variable, double factor = 1) {
    return {{{variable, factor}}, 0};
  }
  static Sum Negation(int boolean);

  void FindWindows(double most);
  void AddTimes(double least, double most);
  void AddOrders();
  void AddMonotony();
  void AddMemory();
  double TransferSeconds(int stage) const;
  void AddOffloads();
  struct OffloadedStage;
  void AddOffloadMemory(int rank);
  void AddOrdersOfReloads(OffloadedStage* on);
  void CountTransfers(const OffloadedStage& on, const Sum& start, int k,
                      int back, Sum* held);
  void LimitAtForwards(const OffloadedStage& on);
  void LimitAtReloads(const OffloadedStage& on);
  void AddAtLeast(const Sum& sum, double least);
  int AddOnlyIf(const Sum& left, const Sum& right);

  bool has(int32_t number) const { return start_[number] >= 0; }
  Sum Seconds(int32_t number) const;  // I may be a whole backward
  Sum Start(int32_t number) const { return Variable(start_[number]); }
  Sum End(int32_t number) const;
  bool Precedes(int32_t one, int32_t other) const;  // in every order
  Sum Before(int32_t one, int32_t other) const;     // 1 or 0
  // Requires left >= right unless the sum `excuse` is 1 or more.
  void AddUnless(const Sum& left, const Sum& right, const Sum& excuse);
  size_t Cell(int32_t one, int32_t other) const;

  const PassTable& table_;
  const OrderProblem& problem_;
  double unit_ = 1, horizon_ = 0;
  MipModel model_;
  int num_booleans_ = 0;
  int value_ = 0;           // variable of the objective
  std::vector<int> start_;  // [pass], -1: the pass does not exist
  // [pass of I]: variable that is 1 if the backward runs whole; -1: the problem
  // determines it
  std::vector<int> whole_;
  std::vector<double> earliest_, latest_;      // starts, of passes
  std::vector<std::vector<int32_t>> of_rank_;  // passes
  std::vector<int> place_in_rank_;             // [pass]
  // Variables of whether `one` is before `other`, as [rank][one * passes +
  // other]; -2: always, -1: never.
  std::vector<std::vector<int>> before_;
  // [stage * m + microbatch]
  std::vector<int> moved_, offload_, reload_;
};

}  // namespace weir::plan

#endif  // WEIR_PLAN_SYNTHESIS_ORDER_MIP_H_
