// SPDX-License-Identifier: Apache-2.0
// Keys of config.json files that would change a model are read or refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "models/model.h"

namespace weir::models::config_errors_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A small Qwen3 with more keys.
std::string Qwen3(const std::string& keys) {
  return absl::StrCat(R"({"model_type": "qwen3", "hidden_size": 64,
      "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 100,
      "num_key_value_heads": 2, "intermediate_size": 128)",
                      keys.empty() ? "" : ", ", keys, "}");
}

std::string Message(const std::string& config) {
  return std::string(ParseModel("config.json", config).status().message());
}

TEST(ConfigErrorsTest, KeysWithoutEffectAreIgnored) {
  EXPECT_EQ(Message(Qwen3(R"("torch_dtype": "bfloat16", "rope_theta": 1e6,
      "bos_token_id": 5, "rms_norm_eps": 1e-6, "attention_dropout": 0.1,
      "use_cache": true, "transformers_version": "5.0", "num_beams": 1,
      "rope_scaling": {"factor": 8}, "quantization_config": {"bits": 8}, )"
                          R"("something_new": null, "num_new_layers": 0,
      "new_gate": false, "mlp_lists": [], "colour": "blue")")),
            "");
}

TEST(ConfigErrorsTest, UnknownSizesAreRefused) {
  EXPECT_THAT(
      Message(Qwen3(R"("num_new_layers": 3, "kv_share_size": 8,
                       "use_extra_mlp": true)")),
      AllOf(HasSubstr("config.json: num_new_layers is 3, expected no such key"),
            HasSubstr("kv_share_size is 8, expected"),
            HasSubstr("use_extra_mlp is true, expected")));
}

TEST(ConfigErrorsTest, MisspelledKeysGetASuggestion) {
  EXPECT_THAT(Message(Qwen3(R"("sliding_windw": 128)")),
              HasSubstr("sliding_windw is unknown; did you mean "
                        "sliding_window?"));
  EXPECT_THAT(Message(Qwen3(R"("layer_type": ["full_attention"])")),
              HasSubstr("layer_type is unknown; did you mean layer_types?"));
  EXPECT_THAT(Message(R"({"model_type": "qwen33"})"),
              HasSubstr("did you mean qwen3?"));
}

TEST(ConfigErrorsTest, UnknownSizesGetASuggestion) {
  EXPECT_THAT(
      Message(Qwen3(R"("sliding_window_size": 128)")),
      HasSubstr("sliding_window_size is 128, expected no such key: weir "
                "does not know how it changes models of this "
                "model_type; did you mean sliding_window?"));
}

TEST(ConfigErrorsTest, UnknownSizesUnlikeAnyKeyGetNoSuggestion) {
  EXPECT_THAT(Message(Qwen3(R"("kv_share_size": 8)")),
              AllOf(HasSubstr("kv_share_size is 8, expected no such key"),
                    Not(HasSubstr("did you mean"))));
}

TEST(ConfigErrorsTest, ActivationsAreChecked) {
  EXPECT_THAT(Message(Qwen3(R"("hidden_act": "xielu")")),
              HasSubstr("hidden_act is \"xielu\", expected one of: gelu"));
  EXPECT_EQ(ParseModel("x", Qwen3(R"("hidden_act": "relu2")"))
                ->transformer()
                .activation(),
            SQUARED_RELU);
  EXPECT_THAT(Message(R"({"model_type": "gpt2",
                          "activation_function": "mish"})"),
              HasSubstr("activation_function is \"mish\""));
}

TEST(ConfigErrorsTest, LayerTypesAreChecked) {
  EXPECT_THAT(Message(Qwen3(R"("layer_types": ["full_attention"])")),
              HasSubstr("layer_types has 1 entries, expected one for each of 4 "
                        "layers"));
  EXPECT_THAT(Message(Qwen3(R"("layer_types": ["full_attention",
      "full_attention", "hyena", "full_attention"])")),
              HasSubstr("layer_types has \"hyena\" at position 3, expected one "
                        "of: full_attention, sliding_attention"));
  EXPECT_THAT(Message(R"({"model_type": "gemma2", "hidden_size": 64,
      "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 100,
      "intermediate_size": 128})"),
              HasSubstr("sliding_window is missing or 0"));
}

TEST(ConfigErrorsTest, UnsupportedFeaturesAreNamed) {
  EXPECT_THAT(Message(R"({"model_type": "gemma4", "text_config": {
      "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
      "vocab_size": 100, "intermediate_size": 128, "sliding_window": 8,
      "hidden_size_per_layer_input": 256, "num_kv_shared_layers": 10},
      "audio_config": {"depth": 3}})"),
              AllOf(HasSubstr("text_config.hidden_size_per_layer_input is 256, "
                              "expected 0"),
                    HasSubstr("text_config.num_kv_shared_layers is 10"),
                    HasSubstr("audio_config is given, expected null")));
  EXPECT_THAT(Message(R"({"model_type": "deepseek_v3", "hidden_size": 64,
      "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
      "intermediate_size": 128})"),
              AllOf(HasSubstr("kv_lora_rank is missing, expected a whole"),
                    HasSubstr("v_head_dim is missing")));
  EXPECT_THAT(Message(R"({"model_type": "qwen3", "architectures": ["Qwen9"]})"),
              HasSubstr("architectures is \"Qwen9\", expected one of: "
                        "Qwen3ForCausalLM"));
}

TEST(ConfigErrorsTest, NumbersThatJsonDoesNotHaveAreNull) {
  EXPECT_EQ(Message(Qwen3(R"("time_step_limit": [0.0, Infinity],
      "a": -Infinity, "b": NaN, "c": "Infinity \"and NaN", "d": "\\")")),
            "");
  EXPECT_THAT(Message(Qwen3(R"("head_dim": Infinite)")),
              HasSubstr("is not JSON"));
}

TEST(ConfigErrorsTest, FormatsOfCheckpointsAreNotModels) {
  EXPECT_THAT(Message(R"({"quantization": {"quant_algo": "NVFP4"}})"),
              HasSubstr("describes the number format of a checkpoint, expected "
                        "the config.json of the same folder"));
  const auto model =
      ParseModel("x", Qwen3(R"("quantization_config": {"bits": 8})"));
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->notes_size(), 1);
  EXPECT_THAT(model->notes(0), HasSubstr("the checkpoint is quantized"));
}

}  // namespace weir::models::config_errors_test
