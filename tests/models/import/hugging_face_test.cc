// SPDX-License-Identifier: Apache-2.0
#include "models/import/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "models/model.h"

namespace weir::models::hugging_face_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

double Parameters(absl::string_view config) {
  const auto model = ParseModel("config.json", config);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? CountParameters(*model) : 0;
}

std::string Message(absl::string_view config) {
  return std::string(ParseModel("config.json", config).status().message());
}

TEST(HuggingFaceTest, OmittedKeysHaveTheDefaultsOfTheClass) {
  EXPECT_EQ(Parameters(R"({"model_type": "gpt2"})"), 124439808);
  EXPECT_EQ(Parameters(R"({"model_type": "bert"})"), 109514298);
  EXPECT_EQ(Parameters(R"({"model_type": "llama"})"), 6738415616);
  EXPECT_EQ(Parameters(R"({"model_type": "mistral"})"), 7241732096);
}

TEST(HuggingFaceTest, NullMeansTheDefaultOfPython) {
  EXPECT_EQ(Parameters(R"({"model_type": "gpt2", "n_inner": null})"),
            124439808);
  EXPECT_EQ(
      Parameters(R"({"model_type": "llama", "num_key_value_heads": null})"),
      6738415616);
  const auto model =
      ParseModel("x", R"({"model_type": "mistral", "num_key_value_heads": null,
               "sliding_window": null})");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->transformer().num_kv_heads(), 32u);
  EXPECT_EQ(model->transformer().sliding_window(), 0u);
}

TEST(HuggingFaceTest, ArchitectureDecidesWhichBert) {
  const auto bert = [](const char* architecture) {
    return Parameters(
        absl::StrCat(R"({"model_type": "bert", "architectures": [")",
                     architecture, R"("]})"));
  };
  EXPECT_EQ(bert("BertModel"), 109482240);
  EXPECT_EQ(bert("BertForMaskedLM"), 109514298);
  EXPECT_EQ(bert("BertForPreTraining"), 110106428);
  EXPECT_THAT(Message(R"({"model_type": "bert",
                          "architectures": ["BertForTokenClassification"]})"),
              HasSubstr("architectures is \"BertForTokenClassification\", "
                        "expected one of: BertForMaskedLM, "
                        "BertForPreTraining, BertModel"));
}

TEST(HuggingFaceTest, EmbeddingsAreTiedAsTheClassSays) {
  const double table = 50257.0 * 768;
  EXPECT_EQ(
      Parameters(R"({"model_type": "gpt2", "tie_word_embeddings": false})"),
      124439808 + table);
  EXPECT_EQ(
      Parameters(R"({"model_type": "llama", "tie_word_embeddings": true})"),
      6738415616 - 32000.0 * 4096);
}

TEST(HuggingFaceTest, LlamaBiasesAndHeadSize) {
  const double biases = 32 * (4 * 4096.0);
  EXPECT_EQ(Parameters(R"({"model_type": "llama", "attention_bias": true})"),
            6738415616 + biases);
  const double feed_forward_biases = 32 * (2 * 11008.0 + 4096);
  EXPECT_EQ(Parameters(R"({"model_type": "llama", "mlp_bias": true})"),
            6738415616 + feed_forward_biases);
  // Doubling the head size doubles the four attention matrices.
  EXPECT_EQ(Parameters(R"({"model_type": "llama", "head_dim": 256})"),
            6738415616 + 32 * 4 * 4096.0 * 4096);
}

TEST(HuggingFaceTest, Gpt2AcceptsTheCommonSpellings) {
  EXPECT_EQ(Parameters(R"({"model_type": "gpt2", "hidden_size": 1024,
      "num_hidden_layers": 24, "num_attention_heads": 16,
      "max_position_embeddings": 1024})"),
            354823168);
}

TEST(HuggingFaceTest, DefaultSequenceLengthIsAtMost8192) {
  const auto length = [](const char* name) {
    return DefaultSequenceLength(*LoadModel(name));
  };
  EXPECT_EQ(length("gpt2"), 1024u);
  EXPECT_EQ(length("gpt-2.2b"), 512u);
  EXPECT_EQ(length("llama-2-7b"), 4096u);
  EXPECT_EQ(length("mistral-7b-v0.1"), 8192u);
}

TEST(HuggingFaceTest, NameIsTheFilesOrTheCheckpoints) {
  EXPECT_EQ(ParseModel("dir/my.json", R"({"model_type": "gpt2"})")->name(),
            "my");
  EXPECT_EQ(ParseModel("x", R"({"model_type": "gpt2",
                                "_name_or_path": "owner/name"})")
                ->name(),
            "name");
}

TEST(HuggingFaceTest, UnknownModelTypeListsTheSupported) {
  EXPECT_THAT(Message(R"({"model_type": "t5"})"),
              HasSubstr("config.json: model_type is \"t5\", expected one of: "
                        "bert, deepseek, deepseek_ref, deepseek_v2, "
                        "deepseek_v3, "));
  EXPECT_THAT(Message("{}"), HasSubstr("model_type is missing"));
  EXPECT_THAT(Message(R"({"model_type": 3})"),
              HasSubstr("model_type is 3, expected a string"));
}

TEST(HuggingFaceTest, AllProblemsComeAtOnceUnderTheUsersNames) {
  EXPECT_THAT(
      Message(R"({"model_type": "gpt2", "n_layer": -3, "n_embd": "wide",
                  "n_head": 4294967296, "vocab_size": 0, "n_inner": 1.5,
                  "n_positions": [[1]], "tie_word_embeddings": 1,
                  "add_cross_attention": true, "architectures": "GPT2"})"),
      AllOf(HasSubstr("n_layer is -3, expected a whole number"),
            HasSubstr("n_embd is \"wide\", expected a whole number"),
            HasSubstr("n_head is 4294967296, expected a whole number"),
            HasSubstr("vocab_size is 0, expected 1 to 100000000"),
            HasSubstr("n_inner is 1.5, expected a whole number"),
            HasSubstr("n_positions is an array, expected a whole number"),
            HasSubstr("tie_word_embeddings is 1, expected true or false"),
            HasSubstr("add_cross_attention is true"),
            HasSubstr("architectures is \"GPT2\", expected a list")));
}

TEST(HuggingFaceTest, AbsurdSizesAreRefused) {
  EXPECT_THAT(Message(R"({"model_type": "llama",
                          "num_hidden_layers": 1000000000,
                          "num_attention_heads": 4000000000})"),
              AllOf(HasSubstr("num_hidden_layers is 1000000000, expected 1 to "
                              "10000"),
                    HasSubstr("num_attention_heads is 4000000000"),
                    Not(HasSubstr("intermediate_size"))));
}

TEST(HuggingFaceTest, HeadsMustDivide) {
  EXPECT_THAT(Message(R"({"model_type": "llama", "num_attention_heads": 30,
                  "num_key_value_heads": 7})"),
              AllOf(HasSubstr("num_key_value_heads is 7, expected a divisor of "
                              "num_attention_heads (30)"),
                    HasSubstr("hidden_size is 4096, expected a multiple of "
                              "num_attention_heads (30), or head_dim")));
}

TEST(HuggingFaceTest, SyntaxErrorsNameLineAndColumn) {
  EXPECT_THAT(Message("{\n  \"model_type\": \"gpt2\",,\n}"),
              HasSubstr("config.json:2:24: is not JSON"));
  EXPECT_THAT(Message("{"), HasSubstr("config.json:1:"));
  EXPECT_THAT(Message("{\"a\": \"\xff\"}"), HasSubstr("is not JSON"));
  EXPECT_THAT(Message("{\"a\": 1e999}"), HasSubstr("is not JSON"));
}

TEST(HuggingFaceTest, DeepNestingIsNoDanger) {
  const std::string deep(200000, '[');
  EXPECT_THAT(Message(absl::StrCat("{\"n_layer\": ", deep)),
              HasSubstr("is JSON nested deeper than 100 levels"));
  const std::string closed =
      absl::StrCat("{\"model_type\": \"gpt2\", \"n_layer\": ", deep,
                   std::string(deep.size(), ']'), "}");
  EXPECT_THAT(Message(closed),
              HasSubstr("is JSON nested deeper than 100 levels"));
}

TEST(HuggingFaceTest, ByteOrderMarkAndBlanksBeforeTheTextAreFine) {
  EXPECT_EQ(Parameters("\xEF\xBB\xBF \n{\"model_type\": \"gpt2\"}"), 124439808);
}

}  // namespace weir::models::hugging_face_test
