// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/documents.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "models/attention.h"
#include "models/context_parallel.h"
#include "models/model.h"
#include "scenarios/packed_sequences.h"

namespace weir::sim::documents_test {

SequenceLengths Lengths(absl::string_view text) {
  return *scenarios::ParseSequenceLengths(text);
}

models::AttentionCore CoreOf(const models::PackedDocuments& documents,
                             int context = 1) {
  Model model = *models::LoadModel("llama-2-7b");
  models::WorkSpec spec;
  spec.sequence_length = 8192;
  spec.flash_attention = true;
  spec.documents = documents;
  spec.context = models::ContextSpecOf(CONTEXT_P2P, context, {});
  return models::AttentionCoreOf(model.transformer(), spec,
                                 models::ShapeOf(model.transformer(), spec));
}

// 512 and 4096 tokens, one each: (512^2 + 4096^2) per 4608 tokens.
TEST(DocumentsTest, AttentionIsTheSumOfSquares) {
  const models::AttentionCore whole = CoreOf({});
  const double keys = (512.0 * 512 + 4096.0 * 4096) / (512 + 4096);
  const auto documents =
      DocumentsOf(Lengths("512*1,4096*1"), {.sequence_length = 8192});
  EXPECT_DOUBLE_EQ(documents.length, keys);
  const models::AttentionCore packed = CoreOf({.length = documents.length});
  for (const auto& [one, all] :
       {std::pair(packed.forward[0], whole.forward[0]),
        std::pair(packed.backward[0], whole.backward[0])}) {
    EXPECT_NEAR(one.flops / all.flops, keys / 8192, 1e-12);
    EXPECT_NEAR(one.performed_flops / all.performed_flops, keys / 8192, 1e-12);
    EXPECT_EQ(one.bytes, all.bytes);  // every token is read once
  }
}

TEST(DocumentsTest, DocumentsOfTheWholeSequenceChangeNothing) {
  const auto documents =
      DocumentsOf(Lengths("100000"), {.sequence_length = 8192,
                                      .num_microbatches = 8,
                                      .num_replicas = 4,
                                      .num_ranks = 4});
  EXPECT_EQ(documents.length, 8192);
  EXPECT_EQ(documents.imbalance, 1);
  const models::AttentionCore packed = CoreOf(documents), whole = CoreOf({});
  EXPECT_EQ(packed.forward, whole.forward);
  EXPECT_EQ(packed.backward, whole.backward);
}

// Every document is divided over the ranks like a sequence.
TEST(DocumentsTest, ContextParallelRanksShareEveryDocument) {
  const models::PackedDocuments documents = {.length = 2048};
  const models::AttentionCore alone = CoreOf(documents);
  const models::AttentionCore shared = CoreOf(documents, 4);
  double flops = 0, performed = 0;
  for (const models::Kernel& kernel : shared.forward) {
    flops += kernel.flops;
    performed += kernel.performed_flops;
  }
  EXPECT_NEAR(4 * flops / alone.forward[0].flops, 1, 1e-12);
  EXPECT_NEAR(4 * performed / alone.forward[0].performed_flops, 1, 1e-12);
}

// Packs documents into microbatches, and measures how unequal they are.
TEST(DocumentsTest, DeviationIsThatOfRandomDocuments) {
  const SequenceLengths lengths = Lengths("512*3,4096*1");
  const BatchShape batch = {.sequence_length = 65536, .microbatch_size = 4};
  std::mt19937_64 random(1);
  constexpr int kMicrobatches = 4000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kMicrobatches; ++i) {
    double attention = 0;
    for (double left = 4 * 65536; left > 0;) {
      const double length = std::min(random() % 4 == 0 ? 4096.0 : 512.0, left);
      attention += length * length;
      left -= length;
    }
    sum += attention;
    squares += attention * attention;
  }
  const double mean = sum / kMicrobatches;
  const double deviation =
      std::sqrt(squares / kMicrobatches - mean * mean) / mean;
  EXPECT_NEAR(AttentionDeviation(lengths, batch) / deviation, 1, 0.05);
  EXPECT_EQ(AttentionDeviation(Lengths("512"), batch), 0);
}

// A flow shop whose jobs take equally long on every machine: the sum of the
// jobs, and once per further machine the longest job.
TEST(DocumentsTest, ImbalanceOfAPipeline) {
  const SequenceLengths lengths = Lengths("uniform:100-8000");
  BatchShape batch = {.sequence_length = 8192, .num_microbatches = 16};
  const double deviation = AttentionDeviation(lengths, batch);
  // Alone, the sum of all microbatches counts.
  EXPECT_EQ(DocumentsOf(lengths, batch).imbalance, 1);
  // Two replicas: E[max] of two normal variables is 1 / sqrt(pi).
  batch.num_replicas = 2;
  const double of_two = 1 / std::sqrt(std::acos(-1)) * deviation / 4;
  EXPECT_NEAR(DocumentsOf(lengths, batch).imbalance, 1 + of_two, 1e-9);
  batch.num_ranks = 4;
  batch.num_microbatches = 2;
  const double pair = 1 / std::sqrt(std::acos(-1)) * deviation;
  EXPECT_NEAR(DocumentsOf(lengths, batch).imbalance,
              1 + (2 * pair / std::sqrt(2) + 3 * pair) / 5, 1e-9);
}

TEST(DocumentsTest, NoMicrobatchExceedsWholeSequences) {
  const auto documents = DocumentsOf(
      Lengths("1*1000,8192*1"),
      {.sequence_length = 8192, .num_microbatches = 1, .num_replicas = 1000});
  EXPECT_LE(documents.length * documents.imbalance, 8192 * (1 + 1e-12));
}

}  // namespace weir::sim::documents_test
