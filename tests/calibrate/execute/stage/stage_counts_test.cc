// SPDX-License-Identifier: Apache-2.0
// Compares the counts of models/ for the runtime "weir" with the operations and
// buffers of a stage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "calibrate/execute/stage/stage_program.h"
#include "calibrate/profile/runtime.h"
#include "models/layer_work.h"
#include "models/model.h"

namespace weir::models {

void PrintTo(const Kernel& k, std::ostream* os) {
  *os << Name(k.part) << " " << k.batch << " x " << k.m << " x " << k.n << " x "
      << k.k << ", " << k.flops << " FLOP, " << k.performed_flops << ", "
      << k.bytes << " B, " << k.launches << " launches, rows of multiples of "
      << k.row_alignment;
}

}  // namespace weir::models

namespace weir::calibrate::stage_counts_test {

struct Case {
  const char* model;
  int tensor_parallel;
  bool fused, dropout;
};

void PrintTo(const Case& c, std::ostream* os) {
  *os << c.model << ", t = " << c.tensor_parallel
      << (c.fused ? ", fused" : ", unfused") << (c.dropout ? ", dropout" : "");
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const char* model :
       {"gpt2", "gpt-2.2b", "llama-2-7b", "mistral-7b-v0.1"}) {
    for (const int t : {1, 2, 4, 16}) {
      // gpt2 has 12 heads. Mistral's 8 key-value heads are replicated on 16
      // GPUs.
      if (t == 16 && std::string(model) == "gpt2") continue;
      for (const bool fused : {false, true}) {
        for (const bool dropout : {false, true}) {
          cases.push_back({model, t, fused, dropout});
        }
      }
    }
  }
  return cases;
}

class StageCountsTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    model_ = *models::LoadModel(GetParam().model);
    spec_.work.microbatch_size = 2;
    spec_.work.sequence_length = 512;
    spec_.work.tensor_parallel = GetParam().tensor_parallel;
    spec_.work.flash_attention = GetParam().fused;
    spec_.work.dropout = GetParam().dropout;
    spec_.work.gradient_bytes = 4;
    SetFusions(*LoadRuntime("weir"), model_.transformer(), &spec_.work);
    spec_.fused_attention = GetParam().fused;
    spec_.dropout = GetParam().dropout ? 0.1F : 0;
    layers_ = models::LayersOf(model_, spec_.work);
  }

  StageProgram Build(int first, int last) {
    spec_.first_layer = first;
    spec_.last_layer = last;
    return *BuildStageProgram(model_, spec_);
  }

  // Returns embedding, block and head alone; first, middle and last stages; all
  // layers in one stage.
  std::vector<std::pair<int, int>> Stages() const {
    const int n = static_cast<int>(layers_.size());
    return {{0, 1}, {1, 2}, {n - 1, n}, {0, 3}, {1, 4}, {n - 3, n}, {0, n}};
  }

  template <typename Field>
  double Sum(int first, int last, Field field) const {
    double sum = 0;
    for (int l = first; l < last; ++l) sum += layers_[l].*field;
    return sum;
  }

  Model model_;
  StageSpec spec_;
  std::vector<models::LayerWork> layers_;
};

TEST_P(StageCountsTest, KernelsOfEveryPassAreTheSame) {
  const std::pair<ProgramPass, std::vector<models::Kernel> models::LayerWork::*>
      passes[] = {
          {ProgramPass::kForward, &models::LayerWork::forward},
          {ProgramPass::kBackwardInput, &models::LayerWork::backward_input},
          {ProgramPass::kBackwardWeight, &models::LayerWork::backward_weight}};
  for (const auto& [first, last] : Stages()) {
    const StageProgram program = Build(first, last);
    for (const auto& [pass, field] : passes) {
      std::vector<models::Kernel> run, counted;
      for (const StageOp& op : program.ops(pass)) {
        EXPECT_FALSE(op.kernels.empty()) << op.name;
        run.insert(run.end(), op.kernels.begin(), op.kernels.end());
      }
      for (int l = first; l < last; ++l) {
        const std::vector<models::Kernel>& kernels = layers_[l].*field;
        counted.insert(counted.end(), kernels.begin(), kernels.end());
      }
      // Programs of weir call no modules.
      for (models::Kernel& kernel : counted) kernel.begins_module = false;
      // Sorts both lists, as matching multisets is slow for hundreds of
      // elements.
      const auto before = [](const models::Kernel& a, const models::Kernel& b) {
        return std::tie(a.part, a.bytes, a.m, a.n) <
               std::tie(b.part, b.bytes, b.m, b.n);
      };
      std::sort(run.begin(), run.end(), before);
      std::sort(counted.begin(), counted.end(), before);
      EXPECT_EQ(run, counted)
          << Name(pass) << " of layers " << first << " to " << last;
    }
  }
}

TEST_P(StageCountsTest, BytesThatAreKeptAreTheSame) {
  for (const auto& [first, last] : Stages()) {
    const StageProgram program = Build(first, last);
    EXPECT_EQ(StashBytes(program),
              Sum(first, last, &models::LayerWork::stash_bytes))
        << first << " to " << last;
    EXPECT_EQ(WeightGradientStashBytes(program),
              Sum(first, last, &models::LayerWork::weight_gradient_stash_bytes))
        << first << " to " << last;
    const double parameters = models::StageParameters(layers_, first, last);
    EXPECT_EQ(program.num_parameters, parameters) << first << " to " << last;
    EXPECT_EQ(StaticBytes(program), (2 + 4 + 12) * parameters);
  }
}

TEST_P(StageCountsTest, ScratchOfEveryLayerIsTheSame) {
  const int n = static_cast<int>(layers_.size());
  for (const int l : {0, 1, n - 1}) {
    const StageProgram program = Build(l, l + 1);
    EXPECT_EQ(ScratchBytes(program, ProgramPass::kForward),
              layers_[l].forward_scratch_bytes)
        << layers_[l].name;
    EXPECT_EQ(ScratchBytes(program, ProgramPass::kBackwardInput),
              layers_[l].backward_scratch_bytes)
        << layers_[l].name;
    EXPECT_EQ(ScratchBytes(program, ProgramPass::kBackwardWeight), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, StageCountsTest, testing::ValuesIn(Cases()));

}  // namespace weir::calibrate::stage_counts_test
