// SPDX-License-Identifier: Apache-2.0
// Tests of the sequential training that replays are compared with.
#include "calibrate/execute/sequential.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "calibrate/execute/host_device.h"
#include "calibrate/execute/stage_chain.h"
#include "calibrate/execute/training.h"
#include "tests/calibrate/execute/tiny_execution.h"

namespace weir::calibrate::sequential_test {

SequentialRecord Train(const ExecutionPlan& plan) {
  auto record = TrainSequentially(plan);
  EXPECT_TRUE(record.ok()) << record.status();
  return record.ok() ? *std::move(record) : SequentialRecord();
}

// Returns the record in the form of a replay's.
ExecutionRecord AsExecution(const SequentialRecord& record) {
  ExecutionRecord replay;
  replay.weights = record.weights;
  replay.steps.resize(1);
  replay.steps[0].losses = record.losses;
  return replay;
}

TrainingDifference Difference(const ExecutionPlan& plan,
                              const SequentialRecord& a,
                              const SequentialRecord& b) {
  return DifferenceOf(plan, AsExecution(a), b);
}

using StageVectors = std::vector<std::vector<double>>;  // [stage][element]

// Returns |a - b| / |b|, the largest over all stages.
double Apart(const StageVectors& a, const StageVectors& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t stage = 0; stage < b.size(); ++stage) {
    EXPECT_EQ(a[stage].size(), b[stage].size());
    double error = 0, size = 0;
    for (size_t i = 0; i < b[stage].size(); ++i) {
      error += std::pow(a[stage][i] - b[stage][i], 2);
      size += std::pow(b[stage][i], 2);
    }
    largest = std::max(largest, std::sqrt(error / size));
  }
  return largest;
}

// A chain of stages on the host with its weights and gradients in vectors.
class HostChain {
 public:
  explicit HostChain(const ExecutionPlan& plan)
      : plan_(plan),
        device_(MakeHostDevice(plan_, {.concurrent = false})),
        chain_(plan_, device_->rank(0)) {
    for (const auto& program : plan.programs) {
      gradients.emplace_back(program->buffers[0].num_elements, 0);
    }
  }

  double Forward(int64_t microbatch, StageVectors weights) {
    const auto loss = chain_.Forward(microbatch, Pointers(&weights));
    EXPECT_TRUE(loss.ok()) << loss.status();
    return loss.value_or(0);
  }
  void Backward(StageVectors weights) {
    const auto status =
        chain_.Backward(Pointers(&weights), Pointers(&gradients));
    EXPECT_TRUE(status.ok()) << status;
  }

  StageVectors gradients;

 private:
  static std::vector<void*> Pointers(StageVectors* vectors) {
    std::vector<void*> pointers;
    for (auto& vector : *vectors) pointers.push_back(vector.data());
    return pointers;
  }

  const ExecutionPlan plan_;
  const std::unique_ptr<ExecutionDevice> device_;
  StageChain chain_;
};

StageVectors CutInitialWeights(const ExecutionPlan& plan) {
  return CutWeights(plan, InitialWeights(plan, 0, plan.num_layers()));
}

// Returns the plan with all layers in one stage.
ExecutionPlan Whole(ExecutionPlan plan) {
  StageSpec spec = plan.spec;
  spec.last_layer = plan.num_layers();
  plan.programs = {std::make_shared<const StageProgram>(
      BuildStageProgram(plan.model, spec).value())};
  return plan;
}

// Losses and gradients of a chain of stages, even or uneven, equal those of the
// whole model in one stage. The gradient of the tied table is the sum of both.
TEST(SequentialTest, ChainsAreOneStage) {
  for (const bool llama : {false, true}) {
    for (const std::vector<int>& first : std::vector<std::vector<int>>{
             {0, 2, 3, 6}, {0, 1, 5, 6}, {0, 4, 5, 6}}) {
      ExecutionRequest request = TinyRequest(
          Generated("gpipe", {.num_ranks = 3, .num_microbatches = 2}), llama);
      request.model = llama ? SmallLlama(4) : TinyGpt(4);
      request.first_layer = first;
      const ExecutionPlan plan = PlanOf(request);
      HostChain stages(plan), whole(Whole(plan));
      const StageVectors all = {InitialWeights(plan, 0, 6)};
      const StageVectors cut = CutInitialWeights(plan);
      for (const int k : {0, 1}) {
        EXPECT_NEAR(stages.Forward(k, cut), whole.Forward(k, all), 1e-15);
        stages.Backward(cut);
        whole.Backward(all);
      }
      // Adds the head's gradient of the tied table to the embedding's.
      for (int i = 0; i < plan.tied.num_elements; ++i) {
        double& here = stages.gradients.front()[plan.tied.first_offset + i];
        double& there = stages.gradients.back()[plan.tied.last_offset + i];
        here = there = here + there;
      }
      EXPECT_LE(Apart(stages.gradients, CutWeights(plan, whole.gradients[0])),
                1e-14);
    }
  }
}

// Doubles the head's table in the backward only. Its output gradient and all
// gradients computed from it double exactly. The gradient of the table itself
// depends on the activations and the loss of the forward, and is unchanged.
TEST(SequentialTest, BackwardsReadTheirOwnWeights) {
  ExecutionRequest request = TinyRequest(
      Generated("gpipe", {.num_ranks = 2, .num_microbatches = 1}), true);
  request.first_layer = {0, 3, 4};  // the head alone
  const ExecutionPlan plan = PlanOf(request);
  const StageVectors weights = CutInitialWeights(plan);
  HostChain once(plan), twice(plan);
  once.Forward(0, weights);
  once.Backward(weights);
  const int64_t table = 8;  // after the gain of 6, rounded up
  StageVectors doubled = weights;
  for (size_t i = table; i < doubled[1].size(); ++i) doubled[1][i] *= 2;
  twice.Forward(0, weights);
  twice.Backward(doubled);
  for (size_t i = 0; i < weights[0].size(); ++i) {
    EXPECT_EQ(twice.gradients[0][i], 2 * once.gradients[0][i]);
  }
  for (size_t i = 0; i < weights[1].size(); ++i) {
    const double factor = static_cast<int64_t>(i) < table ? 2 : 1;
    EXPECT_EQ(twice.gradients[1][i], factor * once.gradients[1][i]);
  }
}

TEST(SequentialTest, LossesFallUnderEveryKind) {
  for (const char* name : {"gpipe", "pipedream", "2bw", "pipemare", "spectrain",
                           "xpipe", "pb", "timeprest"}) {
    for (const OptimizerKind kind :
         {OptimizerKind::kMomentum, OptimizerKind::kAdam}) {
      const bool flush = std::string(name) == "gpipe";
      ExecutionRequest request =
          TinyRequest(Generated(name, {.num_ranks = 2,
                                       .num_microbatches = 2,
                                       .num_batches = flush ? 1 : 300}));
      request.num_steps = flush ? 300 : 1;
      request.optimizer.kind = kind;
      request.optimizer.learning_rate =
          kind == OptimizerKind::kAdam ? 0.01 : 0.02;
      const SequentialRecord record = Train(PlanOf(request));
      ASSERT_EQ(record.losses.size(), 600U);
      double first = 0, last = 0;
      for (int i = 0; i < 20; ++i) {
        first += record.losses[i] / 20;
        last += record.losses[580 + i] / 20;
      }
      EXPECT_NEAR(first, std::log(13), 0.3) << name;
      EXPECT_LT(last, first - 0.3) << name;
    }
  }
}

// With one stage, no other microbatch is in flight.
TEST(SequentialTest, OneStageOfMostKindsIsSgd) {
  for (const int m : {1, 3}) {
    ExecutionRequest request = TinyRequest(
        Generated("gpipe", {.num_ranks = 1, .num_microbatches = m}));
    request.num_steps = 12;
    const SequentialRecord sgd = Train(PlanOf(request));
    const auto train = [&](const char* name) {
      ExecutionRequest other = TinyRequest(Generated(
          name, {.num_ranks = 1, .num_microbatches = m, .num_batches = 12}));
      return Train(PlanOf(other));
    };
    for (const char* name : {"xpipe", "timeprest"}) {
      EXPECT_EQ(train(name).weights, sgd.weights) << name;
      EXPECT_EQ(train(name).losses, sgd.losses) << name;
    }
    if (m > 1) continue;
    for (const char* name : {"pipedream", "spectrain", "pb"}) {
      EXPECT_EQ(train(name).weights, sgd.weights) << name;
    }
    EXPECT_GT(Apart(train("2bw").weights, sgd.weights), 1e-6);
    EXPECT_GT(Apart(train("pipemare").weights, sgd.weights), 1e-6);
  }
}

// 2BW written out: w(t+1) = w(t) - eta grad f(w(t-1)), plain SGD, one stage.
TEST(SequentialTest, TwoBufferedWeightsWrittenOut) {
  ExecutionRequest request = TinyRequest(Generated(
      "2bw", {.num_ranks = 1, .num_microbatches = 2, .num_batches = 3}));
  request.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.5};
  const ExecutionPlan plan = PlanOf(request);
  HostChain chain(Whole(plan));
  const StageVectors w0 = {InitialWeights(plan, 0, 3)};
  const auto step = [&](int batch, const StageVectors& at, StageVectors from) {
    for (const int k : {2 * batch, 2 * batch + 1}) {
      chain.Forward(k, at);
      chain.Backward(at);
    }
    for (size_t i = 0; i < from[0].size(); ++i) {
      from[0][i] -= 0.5 * chain.gradients[0][i] / 2;
      chain.gradients[0][i] = 0;
    }
    return from;
  };
  const StageVectors w1 = step(0, w0, w0);
  const StageVectors w2 = step(1, w0, w1);
  const StageVectors w3 = step(2, w1, w2);
  EXPECT_LE(Apart(Train(plan).weights, w3), 1e-15);
}

// T2 written out for one stage and one microbatch: the backward of microbatch t
// uses w(t) minus the moving average of the weight changes.
TEST(SequentialTest, PipeMareWrittenOut) {
  ExecutionRequest request = TinyRequest(Generated(
      "pipemare", {.num_ranks = 1, .num_microbatches = 1, .num_batches = 4}));
  request.optimizer = {
      .kind = OptimizerKind::kSgd, .learning_rate = 0.5, .average_decay = 0.25};
  const ExecutionPlan plan = PlanOf(request);
  HostChain chain(Whole(plan));
  StageVectors w = {InitialWeights(plan, 0, 3)}, before = w, average = w;
  for (double& value : average[0]) value = 0;
  for (int t = 0; t < 4; ++t) {
    chain.Forward(t, before);
    StageVectors back = w;
    for (size_t i = 0; i < w[0].size(); ++i) back[0][i] -= average[0][i];
    chain.Backward(back);
    before = w;
    for (size_t i = 0; i < w[0].size(); ++i) {
      w[0][i] -= 0.5 * chain.gradients[0][i];
      chain.gradients[0][i] = 0;
      average[0][i] = 0.25 * average[0][i] + 0.75 * (w[0][i] - before[0][i]);
    }
  }
  EXPECT_LE(Apart(Train(plan).weights, w), 1e-15);
}

// The last group has one microbatch, but an update needs two.
TEST(SequentialTest, LastGroupsThatAreShortAreNotApplied) {
  const auto train = [](int num_microbatches) {
    return Train(PlanOf(TinyRequest(
        Generated("pipedream:replicas=2-1",
                  {.num_ranks = 3, .num_microbatches = num_microbatches}),
        true)));
  };
  const SequentialRecord four = train(4), five = train(5);
  EXPECT_EQ(four.weights[0], five.weights[0]);
  EXPECT_NE(four.weights[1], five.weights[1]);
}

TEST(SequentialTest, InferenceChangesNothing) {
  const ExecutionPlan plan = PlanOf(TinyRequest(
      Generated("edgepipe", {.num_ranks = 3, .num_microbatches = 4})));
  const SequentialRecord record = Train(plan);
  EXPECT_EQ(record.losses.size(), 4U);
  EXPECT_EQ(record.weights, CutInitialWeights(plan));
}

// With 24 bits, the result is close to the exact one but not equal.
TEST(SequentialTest, CompressionRounds) {
  ExecutionRequest request =
      TinyRequest(Generated("accept", {.num_ranks = 3, .num_microbatches = 2}));
  request.num_steps = 5;
  ExecutionPlan plan = PlanOf(request);
  const SequentialRecord exact = Train(plan);
  plan.compressed_bits = 24;
  const TrainingDifference difference = Difference(plan, Train(plan), exact);
  EXPECT_GT(difference.weights, 1e-12);
  EXPECT_LT(difference.weights, 1e-6);
}

TEST(SequentialTest, FilesWithoutFlushHaveNoFormula) {
  ExecutionPlan plan = PlanOf(TinyRequest(Generated(
      "pipedream", {.num_ranks = 2, .num_microbatches = 1, .num_batches = 4})));
  plan.schedule.name = "mine.csv";
  EXPECT_EQ(TrainSequentially(plan).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(SequentialTest, DifferencesAreNormWise) {
  ExecutionRequest request =
      TinyRequest(Generated("gpipe", {.num_ranks = 2, .num_microbatches = 1}));
  request.num_steps = 2;
  const ExecutionPlan plan = PlanOf(request);
  const SequentialRecord b = Train(plan);
  const StageVectors initial = CutInitialWeights(plan);
  double change = 0, norm = 0;
  for (size_t i = 0; i < initial[1].size(); ++i) {
    change += std::pow(b.weights[1][i] - initial[1][i], 2);
    norm += std::pow(b.weights[1][i], 2);
  }
  SequentialRecord a = b;
  EXPECT_EQ(Difference(plan, a, b).weights, 0);
  a.weights[1][1] += 1e-3;
  a.losses = {b.losses[0] + 3, b.losses[1] + 4};
  EXPECT_NEAR(Difference(plan, a, b).change, 1e-3 / std::sqrt(change), 1e-12);
  EXPECT_NEAR(Difference(plan, a, b).weights, 1e-3 / std::sqrt(norm), 1e-12);
  EXPECT_EQ(Difference(plan, a, b).worst_stage, 1);
  EXPECT_NEAR(Difference(plan, a, b).losses,
              5 / std::hypot(b.losses[0], b.losses[1]), 1e-12);
  // Untrained weights differ by the whole change.
  a.weights = initial;
  EXPECT_NEAR(Difference(plan, a, b).change, 1, 1e-12);
  a.weights[0][0] = std::nan("");
  EXPECT_TRUE(std::isinf(Difference(plan, a, b).weights));
  EXPECT_TRUE(std::isinf(Difference(plan, a, b).change));
  a.weights.pop_back();
  EXPECT_TRUE(std::isinf(Difference(plan, a, b).weights));
  a.losses.clear();
  EXPECT_TRUE(std::isinf(Difference(plan, a, b).losses));
}

}  // namespace weir::calibrate::sequential_test
