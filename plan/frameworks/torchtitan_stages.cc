// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/torchtitan_stages.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/json_text.h"

namespace weir::plan {

const std::vector<TorchSchedule>& TorchSchedules() {
  static const auto& schedules = *new std::vector<TorchSchedule>{
      {"1F1B", "1f1b", false},
      {"GPipe", "gpipe", false},
      {"Interleaved1F1B", "interleaved-1f1b", true},
      {"LoopedBFS", "breadth-first", true},
      {"InterleavedZeroBubble", "interleaved-zb", true},
      {"ZBVZeroBubble", "zb-v", true},
      {"DualPipeV", "dualpipe-v", true},
  };
  return schedules;
}

std::vector<uint32_t> TorchtitanBlocks(uint32_t num_stages, uint32_t num_layers,
                                       uint32_t first_less,
                                       uint32_t last_less) {
  if (num_stages == 1) return {num_layers};
  const uint64_t layers = uint64_t{num_layers} + first_less + last_less;
  const uint64_t each = num_stages == 0 ? 0 : layers / num_stages;
  if (each == 0 || first_less > each || last_less > each) return {};
  std::vector<uint32_t> blocks(num_stages, static_cast<uint32_t>(each));
  for (uint64_t s = 0; s < layers % num_stages; ++s) ++blocks[s];
  blocks.front() -= first_less;
  blocks.back() -= last_less;
  return blocks;
}

std::string TorchtitanModules(const std::vector<uint32_t>& blocks) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  uint32_t layer = 0;
  for (size_t s = 0; s < blocks.size(); ++s) {
    nlohmann::ordered_json modules = nlohmann::ordered_json::array();
    if (s == 0) modules.push_back("tok_embeddings");
    for (uint32_t b = 0; b < blocks[s]; ++b) {
      modules.push_back(absl::StrCat("layers.", layer++));
    }
    if (s + 1 == blocks.size()) {
      modules.push_back("norm");
      modules.push_back("output");
    }
    stages.push_back(std::move(modules));
  }
  return DumpJson(stages);
}

absl::StatusOr<std::vector<uint32_t>> BlocksOfModules(absl::string_view json,
                                                      uint32_t num_layers) {
  const absl::Status expected = absl::InvalidArgumentError(absl::StrCat(
      "a list of lists of modules: tok_embeddings, then layers.0 to layers.",
      num_layers - 1, " in order, norm, output"));
  const auto stages = nlohmann::json::parse(json.begin(), json.end(), nullptr,
                                            /*allow_exceptions=*/false);
  if (!stages.is_array() || stages.empty()) return expected;
  std::vector<uint32_t> blocks;
  uint32_t layer = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    if (!stages[s].is_array()) return expected;
    const uint32_t first = layer;
    std::vector<std::string> others;
    for (const auto& module : stages[s]) {
      if (!module.is_string()) return expected;
      const std::string name = module.get<std::string>();
      if (name == absl::StrCat("layers.", layer)) {
        ++layer;
      } else {
        others.push_back(name);
      }
    }
    std::vector<std::string> usual;
    if (s == 0) usual.emplace_back("tok_embeddings");
    if (s + 1 == stages.size()) usual.insert(usual.end(), {"norm", "output"});
    if (others != usual) return expected;
    blocks.push_back(layer - first);
  }
  if (layer != num_layers) return expected;
  return blocks;
}

}  // namespace weir::plan
