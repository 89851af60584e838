// SPDX-License-Identifier: Apache-2.0
// Reads every config.json of the folder model_configs in $WEIR_DATA, and
// compares the parameters with those that publishers state.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "models/layer_list.h"
#include "models/model.h"

namespace weir::models::model_configs_test {

struct Count {
  double total = 0;        // billions, without encoder if `text`
  double active = 0;       // 0: not published, or all
  bool table = true;       // the token table counts as active
  double rounding = 0.05;  // of `active`
  bool text = false;
};

// By the name of the model. Sources: model cards and technical reports;
// numbers with three digits after the point are sums over the tensors of the
// checkpoints.
const std::map<std::string, Count>& Published() {
  static const auto& counts = *new std::map<std::string, Count>{
      {"DeepSeek-R1", {671, 37, false, 0.5}},
      {"DeepSeek-V3.1-NVFP4", {671, 37, false, 0.5}},
      {"DeepSeek-V3.2", {671.9, 37, false, 0.5}},
      {"DeepSeek-V4-Flash", {284, 13, false, 0.5}},
      {"DeepSeek-V4-Flash-NVFP4", {284, 13, false, 0.5}},
      {"DeepSeek-V4-Pro-FP8", {1573, 49, false, 0.5}},
      {"GLM-5-FP8", {744, 40, false, 1}},
      {"GLM-5-NVFP4", {744, 40, false, 1}},
      {"GLM-5.1-FP8", {744, 40, false, 1}},
      {"GLM-5.2", {744, 40, false, 1}},
      {"gemma-4-26B-A4B", {25.2, 3.8, true, 0.05, true}},
      {"Gemma-4-26B-A4B-NVFP4", {25.2, 3.8, true, 0.05, true}},
      {"Gemma-4-31B-IT-NVFP4", {30.7, 0, true, 0, true}},
      {"Kimi-K2-Instruct", {1026.408, 32.6, true, 0.3}},
      {"Kimi-K2.5", {1026.408, 32, false, 0.5, true}},
      {"Kimi-K2.7-Code-NVFP4", {1026.408, 32, false, 0.5, true}},
      {"llama_nemotron_super", {49.867}},
      {"Llama-4-Maverick-17B-128E-Instruct", {400, 17, true, 0.5}},
      {"Meta-Llama-3.1-405B", {405.853}},
      {"MiMo-7B-Base", {7.62}},
      {"MiMo-V2-Flash", {309, 15, false, 0.5}},
      {"MiniMax-M2.5", {228.7, 10, false, 0.5}},
      {"MiniMax-M2.7", {228.7, 10, false, 0.5}},
      {"Mixtral-8x22B-v0.1", {140.6, 39.1}},
      {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", {31.6, 3.2, false}},
      {"NVIDIA-Nemotron-3-Super-120B-A12B-FP8", {120.6, 12.7}},
      {"NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4", {120.6, 12.7}},
      {"NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4", {550, 55, false, 0.5}},
      {"NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4", {31.6, 3.2, false}},
      {"Qwen3-0.6B", {0.596}},
      {"Qwen3-1.7B", {1.721}},
      {"Qwen3-235B-A22B-FP8", {235, 22, true, 0.5}},
      {"Qwen3-235B-A22B-NVFP4", {235, 22, true, 0.5}},
      {"Qwen3-30B-A3B", {30.5, 3.3}},
      {"Qwen3-32B", {32.8}},
      {"Qwen3-32B-FP8", {32.8}},
      {"Qwen3-32B-FP8-Static-PerTensor", {32.8}},
      {"Qwen3-8B", {8.2}},
      {"Qwen3-Coder-480B-A35B-Instruct", {480, 35, true, 0.5}},
      {"Qwen3-VL-235B-A22B-Instruct", {235.671, 22, true, 0.5}},
      {"Qwen3-VL-2B-Instruct", {2.128}},
      {"Qwen3-VL-8B-Instruct", {8.767}},
      {"Qwen3.5-397B-A17B-NVFP4", {397, 17, true, 0.5}},
      {"Step-3.7-Flash-FP8", {196, 11, false, 0.7}},
      {"gpt-oss-20b", {20.91, 3.61, false}},
  };
  return counts;
}

std::filesystem::path Folder() {
  const char* data = std::getenv("WEIR_DATA");
  return data == nullptr ? "" : std::filesystem::path(data) / "model_configs";
}

TEST(ModelConfigsTest, EveryFileIsReadAndCountsThePublishedParameters) {
  if (Folder().empty() || !std::filesystem::is_directory(Folder())) {
    GTEST_SKIP() << "needs the folder model_configs in $WEIR_DATA";
  }
  std::set<std::string> compared;
  int num_files = 0;
  for (const auto& file : std::filesystem::directory_iterator(Folder())) {
    if (!absl::EndsWith(file.path().string(), "config.json")) continue;
    SCOPED_TRACE(file.path().filename());
    ++num_files;
    const auto model = LoadModel(file.path());
    ASSERT_TRUE(model.ok()) << model.status();
    WorkSpec spec;
    spec.sequence_length = 128;
    spec.flash_attention = true;
    const LayerList layers = ListLayers(*model, spec);
    EXPECT_DOUBLE_EQ(
        StageParameters(layers, 0, static_cast<int>(layers.size())),
        CountParameters(*model) + CountMtpParameters(*model));
    const auto at = Published().find(model->name());
    if (at == Published().end()) continue;
    compared.insert(model->name());
    const Count& published = at->second;
    double total = CountParameters(*model);
    if (published.text) {
      Model text = *model;
      text.mutable_transformer()->clear_encoder();
      total = CountParameters(text);
    }
    EXPECT_NEAR(total / 1e9, published.total, 0.005 * published.total);
    if (published.active == 0) continue;
    const double table = published.table ? 0 : CountTableParameters(*model);
    EXPECT_NEAR((CountActiveParameters(*model) - table) / 1e9, published.active,
                0.005 * published.active + published.rounding);
  }
  EXPECT_GE(num_files, 68);
  for (const auto& [name, count] : Published()) {
    EXPECT_TRUE(compared.contains(name)) << name;
  }
}

}  // namespace weir::models::model_configs_test
