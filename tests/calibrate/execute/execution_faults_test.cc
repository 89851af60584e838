// SPDX-License-Identifier: Apache-2.0
// Checks that the comparison with the formulas detects wrong runtimes, wrong
// delays and other systems. Each of these differs by more than 1e-6 (3.6e-5 is
// the smallest observed difference). That is a million times the tolerance for
// correct replays, which stay below 1e-13. Reads of wrong versions are also
// named.
#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "calibrate/execute/board.h"
#include "calibrate/execute/execute_schedule.h"
#include "calibrate/execute/execution_order.h"
#include "calibrate/execute/host_device.h"
#include "calibrate/execute/sequential.h"
#include "calibrate/execute/stage_layout.h"
#include "calibrate/execute/training.h"
#include "tests/calibrate/execute/tiny_execution.h"
#include "tests/calibrate/execute/wrapped_device.h"

namespace weir::calibrate::execution_faults_test {

using testing::HasSubstr;

constexpr double kCaught = 1e-6;

ExecutionPlan Plan(const std::string& name, int p, int m, int num_batches,
                   int num_chunks = 1) {
  ExecutionRequest request =
      TinyRequest(Generated(name, {.num_ranks = p,
                                   .num_microbatches = m,
                                   .num_chunks = num_chunks,
                                   .num_batches = num_batches}));
  if (request.schedule.flush) request.num_steps = 3;
  return PlanOf(request);
}

ExecutionRecord Executed(const ExecutionPlan& plan) {
  const auto device = MakeHostDevice(plan, {.concurrent = false});
  auto record = ExecuteSchedule(plan, device.get());
  EXPECT_TRUE(record.ok()) << record.status();
  return record.ok() ? *std::move(record) : ExecutionRecord();
}

SequentialRecord Train(const ExecutionPlan& plan) {
  auto record = TrainSequentially(plan);
  EXPECT_TRUE(record.ok()) << record.status();
  return record.ok() ? *std::move(record) : SequentialRecord();
}

// Runs one backward with the newest weights, whichever it is given.
class ForgetfulRank : public ForwardingRank {
 public:
  using ForwardingRank::ForwardingRank;

  absl::Status Run(int stage, ProgramPass pass, int op, uint64_t seed,
                   const Buffers& buffers) override {
    if (stage != forgets_stage || pass != ProgramPass::kBackwardInput ||
        seed != forgets_seed) {
      return ForwardingRank::Run(stage, pass, op, seed, buffers);
    }
    Buffers changed = buffers;
    changed[weights_buffer] = newest_;
    return ForwardingRank::Run(stage, pass, op, seed, changed);
  }
  absl::Status Update(int stage, const StageOptimizer& optimizer, int step,
                      const void* old_weights,
                      const Buffers& buffers) override {
    if (stage == forgets_stage) newest_ = buffers[weights_buffer];
    return ForwardingRank::Update(stage, optimizer, step, old_weights, buffers);
  }

  int forgets_stage = -1, weights_buffer = -1;
  uint64_t forgets_seed = 0;

 private:
  void* newest_ = nullptr;
};

TEST(ExecutionFaultsTest, DroppedStashIsCaught) {
  for (const auto& [name, p, m] :
       {std::tuple("pipedream", 3, 1), std::tuple("2bw", 2, 2),
        std::tuple("pipedream:vertical-sync=yes", 3, 1)}) {
    const ExecutionPlan plan = Plan(name, p, m, 8);
    const SequentialRecord formula = Train(plan);
    EXPECT_LE(DifferenceOf(plan, Executed(plan), formula).weights, 1e-12);
    WrappedDevice<ForgetfulRank> device(plan, /*threads=*/false);
    ForgetfulRank& rank = *device.ranks[plan.schedule.rank_of(0, 5)];
    rank.forgets_stage = 0;
    rank.forgets_seed = DropoutSeed(plan, 5);
    rank.weights_buffer = StageLayout(plan.programs[0]).weights;
    const auto record = ExecuteSchedule(plan, &device);
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_GE(DifferenceOf(plan, *record, formula).weights, kCaught) << name;
  }
}

TEST(ExecutionFaultsTest, ReadsOfWrongVersionsAreNamed) {
  const ExecutionPlan plan = Plan("pipedream", 3, 1, 8);
  ExecutionPlan changed = plan;
  changed.schedule.weights.backward =
      schedules::WeightPolicy::BackwardRead::kLatest;
  EXPECT_THAT(CheckVersions(plan, Executed(changed)).message(),
              testing::AllOf(HasSubstr("stage 0, microbatch 5"),
                             HasSubstr("its backward read version")));
}

// Moves the updates of a stage on its rank before the last `by` microbatches of
// each update. Requires: the stage has one copy.
void UpdateEarly(const ExecutionPlan& plan, int stage, int by,
                 ExecutionOrder* order) {
  const schedules::Schedule& schedule = plan.schedule;
  const int rank = schedule.rank_of(stage, 0);
  const auto is_update = [&](const ExecutionItem& item) {
    return item.kind == ExecutionItem::Kind::kUpdate && item.stage == stage;
  };
  std::vector<ExecutionItem>& items = order->items[rank];
  std::deque<ExecutionItem> updates;
  std::copy_if(items.begin(), items.end(), std::back_inserter(updates),
               is_update);
  std::vector<ExecutionItem> changed;
  int complete = 0, needed = schedule.microbatches_per_update(stage);
  for (const ExecutionItem& item : items) {
    if (is_update(item)) continue;
    changed.push_back(item);
    for (int i = 0; item.position >= 0 && i < item.num_actions; ++i) {
      const schedules::Action& action =
          schedule.rank_actions[rank][item.position + i];
      if (action.stage == stage && schedules::CompletesGradient(action.op)) {
        complete += action.num_microbatches;
      }
    }
    while (!updates.empty() && complete >= needed - by) {
      changed.push_back(updates.front());
      updates.pop_front();
      needed += schedule.microbatches_per_update(stage);
    }
  }
  ASSERT_TRUE(updates.empty());
  items = std::move(changed);
}

ExecutionRecord ExecutedWithEarlyUpdates(const ExecutionPlan& plan) {
  ExecutionOrder order =
      MakeExecutionOrder(plan, schedules::Dependencies(plan.schedule));
  UpdateEarly(plan, /*stage=*/1, /*by=*/1, &order);
  Board board(plan.schedule, order);
  const auto device = MakeHostDevice(plan, {.concurrent = false});
  auto record = ExecuteOrder(plan, order, &board, device.get());
  EXPECT_TRUE(record.ok()) << record.status();
  return record.ok() ? *std::move(record) : ExecutionRecord();
}

TEST(ExecutionFaultsTest, EarlyUpdateIsCaught) {
  for (const auto& [name, batches] :
       {std::tuple("2bw", 4), std::tuple("gpipe", 1),
        std::tuple("pipemare", 4)}) {
    const ExecutionPlan plan = Plan(name, 2, 3, batches);
    const ExecutionRecord record = ExecutedWithEarlyUpdates(plan);
    EXPECT_GE(DifferenceOf(plan, record, Train(plan)).weights, kCaught) << name;
  }
}

TEST(ExecutionFaultsTest, EarlyUpdateIsReadWhereTheNewestIsRead) {
  const ExecutionPlan plan = Plan("pipemare", 2, 3, 4);
  EXPECT_TRUE(CheckVersions(plan, Executed(plan)).ok());
  EXPECT_THAT(CheckVersions(plan, ExecutedWithEarlyUpdates(plan)).message(),
              HasSubstr("stage 1"));
}

// Sends the activations of microbatch 1 of each step twice: also instead of
// those of microbatch 2. Requires: forwards are in the order of microbatches.
class RepeatingRank : public ForwardingRank {
 public:
  using ForwardingRank::ForwardingRank;

  absl::StatusOr<CopyEvents> Send(RankDevice* to,
                                  absl::Span<const CopyPiece> pieces, int64_t n,
                                  ElementFormat format, const LinkSpec& link,
                                  int bits,
                                  const RankEventPtr& ready) override {
    if (n == num_elements) {
      const int microbatch = num_sent_++ % num_microbatches;
      if (microbatch == 1) {
        ASSIGN_OR_RETURN(repeated_, Download(pieces[0].from, n, format));
      } else if (microbatch == 2) {
        RETURN_IF_ERROR(
            Upload(repeated_, format, const_cast<void*>(pieces[0].from)));
      }
    }
    return ForwardingRank::Send(to, pieces, n, format, link, bits, ready);
  }

  int64_t num_elements = -1;  // of a message of activations
  int num_microbatches = 1;   // of a step

 private:
  int num_sent_ = 0;
  std::vector<double> repeated_;
};

// The versions are correct, so only the values show the fault.
TEST(ExecutionFaultsTest, SwappedActivationsAreCaught) {
  for (const auto& [name, batches] :
       {std::tuple("gpipe", 1), std::tuple("2bw", 4), std::tuple("zb-h1", 1)}) {
    const ExecutionPlan plan = Plan(name, 2, 3, batches);
    const StageProgram& program = *plan.programs[0];
    WrappedDevice<RepeatingRank> device(plan, /*threads=*/false);
    device.ranks[0]->num_elements =
        program.buffers[program.output].num_elements;
    device.ranks[0]->num_microbatches = plan.schedule.total_microbatches();
    const auto record = ExecuteSchedule(plan, &device);
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_GE(DifferenceOf(plan, *record, Train(plan)).weights, kCaught)
        << name;
    EXPECT_TRUE(CheckVersions(plan, *record).ok());
  }
}

// The schedule itself reads versions that its system does not read.
TEST(ExecutionFaultsTest, WrongPoliciesAreCaught) {
  const auto differs = [](ExecutionPlan plan, auto change) {
    const SequentialRecord formula = Train(plan);
    change(&plan.schedule.weights);
    return DifferenceOf(plan, Executed(plan), formula).weights;
  };
  EXPECT_GE(differs(Plan("2bw", 2, 2, 8),
                    [](schedules::WeightPolicy* w) { w->delay_updates = 2; }),
            kCaught);
  EXPECT_GE(differs(Plan("2bw", 2, 2, 8),
                    [](schedules::WeightPolicy* w) {
                      w->forward =
                          schedules::WeightPolicy::ForwardRead::kLatest;
                    }),
            kCaught);
  EXPECT_GE(differs(Plan("pipedream", 3, 1, 8),
                    [](schedules::WeightPolicy* w) {
                      w->backward =
                          schedules::WeightPolicy::BackwardRead::kLatest;
                    }),
            kCaught);
  EXPECT_GE(differs(Plan("pipemare", 2, 2, 8),
                    [](schedules::WeightPolicy* w) {
                      w->backward_distance[0] *= 0.5;
                    }),
            kCaught);
  EXPECT_GE(
      differs(Plan("spectrain", 3, 1, 8),
              [](schedules::WeightPolicy* w) { w->forward_distance[0] += 1; }),
      kCaught);
  EXPECT_GE(
      differs(Plan("xpipe", 3, 2, 8),
              [](schedules::WeightPolicy* w) {
                w->prediction =
                    schedules::WeightPolicy::Prediction::kForwardAndBackward;
              }),
      kCaught);
}

// For any two systems without a flush, the replay of one does not match the
// formula of the other, even if they differ only in the stash.
TEST(ExecutionFaultsTest, SystemsAreNotEachOthersFormulas) {
  const std::vector<std::string> names = {"pipedream",
                                          "pipedream:vertical-sync=yes",
                                          "2bw",
                                          "pipemare",
                                          "pipemare:correction=none",
                                          "pipemare:order=1f1b",
                                          "spectrain",
                                          "xpipe",
                                          "pb",
                                          "pb:mitigation=linear-prediction",
                                          "timeprest",
                                          "timeprest:ahead=minibatch"};
  for (const std::string& name : names) {
    ExecutionPlan plan = Plan(name, 3, 3, 5);
    const ExecutionRecord record = Executed(plan);
    for (const std::string& other : names) {
      plan = Plan(other, 3, 3, 5);
      const double difference = DifferenceOf(plan, record, Train(plan)).weights;
      if (other == name) {
        EXPECT_LE(difference, 1e-12) << name;
      } else {
        EXPECT_GE(difference, kCaught) << name << " against " << other;
      }
    }
  }
}

}  // namespace weir::calibrate::execution_faults_test
