// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>

#include "scenarios/scenario.h"

namespace {

void Require(bool fact) {
  if (!fact) std::abort();
}

bool Sound(double seconds) { return seconds >= 0 && seconds <= 1e9; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto costs = weir::scenarios::ParseCosts(text);
  if (!costs.ok()) {
    Require(costs.status().message().find("--costs") != std::string::npos);
    return 0;
  }
  Require(costs->stages_size() >= 1 && Sound(costs->hop_seconds()));
  for (const auto& stage : costs->stages()) {
    Require(Sound(stage.forward_seconds()) && Sound(stage.backward_seconds()) &&
            Sound(stage.backward_input_seconds()) &&
            Sound(stage.backward_weight_seconds()));
    Require(stage.has_backward_seconds() !=
            (stage.has_backward_input_seconds() &&
             stage.has_backward_weight_seconds()));
  }
  return 0;
}
