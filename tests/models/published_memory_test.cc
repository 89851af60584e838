// SPDX-License-Identifier: Apache-2.0
// Compares memory computed from the layers alone with that reported in papers
// and their artifacts. Each test prints the error of every row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "models/layer_work.h"
#include "models/model.h"
#include "tests/models/gpt.h"

namespace weir::models::published_memory_test {

constexpr double kMebibyte = 1 << 20;
constexpr double kGibibyte = 1 << 30;

// Collects and prints relative errors of predictions.
class Errors {
 public:
  explicit Errors(const char* set) : set_(set) {}
  ~Errors() {
    std::printf("%s: %d rows, mean %.2f %%, worst %.2f %%\n", set_, rows_,
                100 * sum_ / rows_, 100 * worst_);
  }

  double Add(const std::string& row, double predicted, double published) {
    const double error = predicted / published - 1;
    std::printf("  %-34s %10.2f of %10.2f  %+.2f %%\n", row.c_str(), predicted,
                published, 100 * error);
    ++rows_;
    sum_ += std::fabs(error);
    worst_ = std::max(worst_, std::fabs(error));
    return std::fabs(error);
  }

 private:
  const char* set_;
  int rows_ = 0;
  double sum_ = 0, worst_ = 0;
};

// Korthikanti et al. 2022, table 3.
const Gpt k530 = {.a = 128, .h = 20480, .l = 105, .s = 2048, .b = 1};
const Gpt k1000 = {.a = 160, .h = 25600, .l = 128, .s = 2048, .b = 1};

double BlockStash(const Gpt& gpt, bool sequence, RecomputeMode recompute) {
  WorkSpec spec = SpecOf(gpt);
  spec.dropout = true;
  spec.tensor_parallel = 8;
  spec.sequence_parallel = sequence;
  spec.recompute = recompute;
  return LayersOf(ModelOf(gpt), spec)[1].stash_bytes;
}

// Korthikanti et al. 2022, figure 1: the first of 35 stages, interleaved three
// times (with its factor 1 + (p - 1) / (p m)), and the first of 64 stages.
TEST(PublishedMemoryTest, FirstStagesOfKorthikantiFigure1) {
  Errors errors("Korthikanti figure 1");
  struct Row {
    const char* name;
    const Gpt& gpt;
    double interleaving;
    bool saving;
    double gibibytes;
  };
  for (const Row& row :
       {Row{"530B", k530, 1 + 34.0 / (35 * 3), false, 114.0234375},
        Row{"530B sequence + selective", k530, 1 + 34.0 / (35 * 3), true,
            23.076171875},
        Row{"1T", k1000, 1, false, 131.25},
        Row{"1T sequence + selective", k1000, 1, true, 26.5625}}) {
    const double bytes =
        BlockStash(row.gpt, row.saving,
                   row.saving ? RECOMPUTE_SELECTIVE : RECOMPUTE_NONE) *
        row.gpt.l * row.interleaving;
    EXPECT_LT(errors.Add(row.name, bytes / kGibibyte, row.gibibytes), 1e-3);
  }
}

// The same paper, figure 7: memory relative to tensor parallelism alone.
TEST(PublishedMemoryTest, ShareThatEachTechniqueKeepsInKorthikantiFigure7) {
  Errors errors("Korthikanti figure 7");
  struct Row {
    const char* name;
    bool sequence;
    RecomputeMode recompute;
    double percent;
  };
  for (const Gpt& gpt : {k530, k1000}) {
    const double whole = BlockStash(gpt, false, RECOMPUTE_NONE);
    for (const Row& row :
         {Row{"sequence", true, RECOMPUTE_NONE, 58.31},
          Row{"selective", false, RECOMPUTE_SELECTIVE, 62.04},
          Row{"sequence + selective", true, RECOMPUTE_SELECTIVE, 20.27},
          Row{"full", false, RECOMPUTE_FULL, 9.42}}) {
      const double kept = BlockStash(gpt, row.sequence, row.recompute);
      EXPECT_LT(errors.Add(row.name, 100 * kept / whole, row.percent), 0.03);
    }
  }
}

// Returns the bytes that 1F1B allocates on a stage with layers [first, last)
// and `in_flight` microbatches: weights, gradients and Adam's states in mixed
// precision, saved activations, and the peak within a backward; or, in the
// optimizer step, also gradients in fp32 if `widened_gradients`.
double AllocatedBytes(const std::vector<LayerWork>& layers, int first, int last,
                      int in_flight, bool widened_gradients) {
  constexpr double kBytesPerParameter = 2 + 2 + 12;
  const double parameters = StageParameters(layers, first, last);
  double stash = 0, scratch = 0;
  for (int i = first; i < last; ++i) {
    // In a layer's backward, activations of later layers are already freed.
    stash += layers[i].stash_bytes;
    const double needed = layers[i].backward_scratch_bytes;
    double gone = 0;
    for (int j = i + 1; j < last; ++j) gone += layers[j].stash_bytes;
    scratch = std::max(scratch, needed - gone);
    scratch = std::max(scratch, layers[i].forward_scratch_bytes);
  }
  const double passes =
      kBytesPerParameter * parameters + in_flight * stash + scratch;
  const double step =
      (kBytesPerParameter + (widened_gradients ? 4 : 0)) * parameters;
  return std::max(passes, step);
}

// 1F1B runs in the artifact of Vocabulary Parallelism (Yeung et al. 2024),
// exp_one_host.csv, columns 23 and 24: p = 8, 4 blocks per stage, s = 2048, b =
// 1. According to its script: fp16, flash attention, untied embeddings, no
// dropout (p = 0, but the fused bias-dropout-add keeps its masks), gradients
// added by a separate kernel, and the distributed optimizer, which widens
// gradients to fp32.
TEST(PublishedMemoryTest, AllocatedByTheRunsOfVocabularyParallelism) {
  Errors errors("Vocabulary Parallelism, 1F1B");
  struct Row {
    double vocabulary, most_mebibytes;
  };
  for (const Row& row : {Row{32000, 15215.44678}, Row{64000, 16713.44678},
                         Row{128000, 19711.75146}, Row{256000, 26256.83301}}) {
    const Gpt gpt = {
        .a = 24, .h = 3072, .l = 32, .V = row.vocabulary, .s = 2048, .b = 1};
    Model model = ModelOf(gpt);
    model.mutable_transformer()->set_tied_embeddings(false);
    WorkSpec spec = SpecOf(gpt);
    spec.flash_attention = true;
    spec.dropout = true;
    spec.fused_gradient_accumulation = false;
    const std::vector<LayerWork> layers = LayersOf(model, spec);
    double most = 0, least = 1e18;
    for (int stage = 0; stage < 8; ++stage) {
      const int first = stage == 0 ? 0 : 4 * stage + 1;
      const int last = 4 * stage + 5 + (stage == 7);
      const double bytes = AllocatedBytes(layers, first, last, 8 - stage, true);
      most = std::max(most, bytes);
      least = std::min(least, bytes);
    }
    const std::string name = "V = " + std::to_string(int(row.vocabulary));
    EXPECT_LT(errors.Add(name + " most", most / kMebibyte, row.most_mebibytes),
              0.05);
    EXPECT_LT(errors.Add(name + " least", least / kMebibyte, 8726.225098),
              0.05);
  }
}

// Qi et al. 2023 (Zero Bubble), tables 4, 11 and 12: 1.5B, p = 8, 22 blocks (2
// on the first and the last stage, 3 on the others), s = 1024, no flash
// attention. Memory is in whole GB.
TEST(PublishedMemoryTest, PeakOf1F1BInZeroBubble) {
  Errors errors("Zero Bubble, 1F1B");
  struct Row {
    double b;
    int microbatches;
    double gigabytes;
  };
  for (const Row& row : {Row{6, 24, 30}, Row{12, 24, 57}, Row{6, 2, 11},
                         Row{6, 4, 18}, Row{6, 8, 29}}) {
    const Gpt gpt = {
        .a = 24, .h = 2304, .l = 22, .V = 50304, .s = 1024, .b = row.b};
    Model model = ModelOf(gpt);
    model.mutable_transformer()->set_tied_embeddings(false);
    WorkSpec spec = SpecOf(gpt);
    spec.dropout = true;
    const std::vector<LayerWork> layers = LayersOf(model, spec);
    double most = 0;
    int first = 0;
    for (int stage = 0; stage < 8; ++stage) {
      const int last = first + 3;  // with embedding or head
      const int in_flight = std::min(8 - stage, row.microbatches);
      most =
          std::max(most, AllocatedBytes(layers, first, last, in_flight, false));
      first = last;
    }
    const std::string name = "b = " + std::to_string(int(row.b)) +
                             ", m = " + std::to_string(row.microbatches);
    EXPECT_LT(errors.Add(name, most / 1e9, row.gigabytes), 0.05);
  }
}

}  // namespace weir::models::published_memory_test
