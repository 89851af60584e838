// SPDX-License-Identifier: Apache-2.0
#include "scenarios/unused_settings.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/layer_work.h"
#include "models/quantization.h"

namespace weir::scenarios {

std::vector<std::string> UnusedExpertSettings(const Scenario& scenario,
                                              const Model& model) {
  const Parallelism& parallelism = scenario.parallelism();
  const uint32_t tensor = std::max(parallelism.tensor(), 1u);
  const uint32_t expert_tensor = parallelism.expert_tensor();
  const bool divided = parallelism.expert() > 1 ||
                       (expert_tensor > 0 && expert_tensor != tensor);
  const bool has_experts =
      model.has_transformer() && model.transformer().num_experts() > 0;
  if (has_experts && divided) return {};
  std::vector<std::string> warnings;
  const auto warn = [&](absl::string_view setting) {
    warnings.push_back(absl::StrCat(
        setting, " has no effect: ",
        has_experts ? "with parallelism.expert 1, every GPU has all experts"
                    : "the model has no experts"));
  };
  const Training& training = scenario.training();
  if (training.expert_imbalance() > 1) {
    warn(absl::StrCat("training.expert_imbalance ",
                      training.expert_imbalance()));
  }
  if (training.dispatch_format() != OPERAND_16_BIT) {
    warn(absl::StrCat("training.dispatch_format ",
                      models::Name(training.dispatch_format())));
  }
  const TokenDispatcher dispatcher =
      scenario.communication().token_dispatcher();
  if (models::SendsOneCopyPerGpu(dispatcher)) {
    warn(absl::StrCat("communication.token_dispatcher ",
                      TokenDispatcher_Name(dispatcher)));
  }
  return warnings;
}

}  // namespace weir::scenarios
