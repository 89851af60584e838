// SPDX-License-Identifier: Apache-2.0
#include "scenarios/check_training.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "calibrate/profile/device_profile.h"
#include "models/block_spec.h"
#include "models/layer_work.h"
#include "models/quantization.h"
#include "scenarios/check_scenario.h"
#include "scenarios/cuda_graphs.h"
#include "scenarios/recomputation.h"

namespace weir::scenarios {
namespace {

void CheckMuon(Problems& problems, const Training& training,
               const Parallelism& parallelism) {
  problems.CheckRange("training.muon_num_ns_steps",
                      training.muon_num_ns_steps(), 0, kMaxMuonIterations);
  const bool muon =
      training.optimizer() == MUON || training.optimizer() == DIST_MUON;
  if (training.muon_num_ns_steps() > 0 && !muon) {
    problems.Add("training.muon_num_ns_steps",
                 absl::StrCat("is ", training.muon_num_ns_steps(),
                              ", expected training.optimizer MUON or "
                              "DIST_MUON with it"));
  }
  if (!muon) return;
  if (training.fully_sharded()) {
    problems.Add("training.fully_sharded",
                 "cannot be combined with Muon, which needs whole matrices");
  }
  if (training.optimizer() == MUON && training.distributed_optimizer()) {
    problems.Add("training.distributed_optimizer",
                 "is on, expected off, or training.optimizer DIST_MUON: Muon "
                 "needs whole matrices");
  }
  if (training.optimizer() == DIST_MUON && parallelism.data() > 1 &&
      training.has_distributed_optimizer() &&
      !training.distributed_optimizer()) {
    problems.Add("training.distributed_optimizer",
                 "is off, expected on, or training.optimizer MUON");
  }
  if (training.optimizer_offload_fraction() > 0) {
    problems.Add("training.optimizer_offload_fraction",
                 "cannot be combined with Muon: its iterations on the host are "
                 "not simulated");
  }
}

}  // namespace

void CheckRollbacks(Problems& problems, const Training& training) {
  problems.CheckRange("training.rollback_fraction",
                      training.rollback_fraction(), 0, 1);
}

void CheckTraining(Problems& problems, const Training& training,
                   const Parallelism& parallelism) {
  CheckEnum(problems, "training.precision", training.precision(),
            Precision_IsValid(training.precision()));
  if (training.precision() == FP32 && !training.recipe().empty()) {
    problems.Add("training.precision",
                 "is FP32, expected MIXED_BF16 or MIXED_FP16 with a recipe");
  }
  CheckEnum(problems, "training.optimizer", training.optimizer(),
            Optimizer_IsValid(training.optimizer()));
  CheckRecomputation(problems, training);
  CheckCudaGraphs(problems, training);
  CheckOffload(problems, training);
  CheckMuon(problems, training, parallelism);
  CheckEnum(problems, "training.attention_format", training.attention_format(),
            OperandFormat_IsValid(training.attention_format()));
  CheckEnum(problems, "training.dispatch_format", training.dispatch_format(),
            OperandFormat_IsValid(training.dispatch_format()));
  CheckEnum(problems, "training.attention_kernel", training.attention_kernel(),
            AttentionKernel_IsValid(training.attention_kernel()));
  problems.CheckRange("training.first_blocks_in_16_bits",
                      training.first_blocks_in_16_bits(), 0, 1e6);
  problems.CheckRange("training.last_blocks_in_16_bits",
                      training.last_blocks_in_16_bits(), 0, 1e6);
  CheckEnum(problems, "training.first_moment", training.first_moment(),
            StateFormat_IsValid(training.first_moment()));
  CheckEnum(problems, "training.second_moment", training.second_moment(),
            StateFormat_IsValid(training.second_moment()));
  CheckEnum(problems, "training.main_weights", training.main_weights(),
            StateFormat_IsValid(training.main_weights()));
  problems.CheckRange("training.mtp_num_layers", training.mtp_num_layers(), 0,
                      100);
  problems.CheckRange("training.moe_expert_capacity_factor",
                      training.moe_expert_capacity_factor(), 0, 1e3);
  problems.CheckRange("training.stash_bytes_per_parameter",
                      training.stash_bytes_per_parameter(), 0, 1024);
  CheckRollbacks(problems, training);
  if (training.post_validation() && training.fully_sharded()) {
    problems.Add("training.post_validation",
                 "cannot be combined with fully_sharded: gathers of weights "
                 "after steps that may be rolled back are not simulated");
  }
  problems.CheckRange("training.expert_imbalance", training.expert_imbalance(),
                      0, 1e6);
  if (training.expert_imbalance() > 0 && training.expert_imbalance() < 1) {
    problems.Add("training.expert_imbalance",
                 absl::StrCat("is ", training.expert_imbalance(),
                              ", expected at least 1: tokens of the most "
                              "loaded expert over the mean"));
  }
  if (training.fully_sharded() && training.distributed_optimizer()) {
    problems.Add("training.distributed_optimizer",
                 "cannot be combined with fully_sharded, which includes it");
  }
}

void CheckAdapters(Problems& problems, const Scenario& scenario) {
  const Training& training = scenario.training();
  const Lora& lora = training.lora();
  problems.CheckRange("training.lora.rank", lora.rank(), 0, kMaxLoraRank);
  for (int i = 0; i < lora.target_modules_size(); ++i) {
    const int module = lora.target_modules(i);
    if (LoraModule_IsValid(module) && module != LORA_MODULE_UNSPECIFIED)
      continue;
    problems.Add(absl::StrCat("training.lora.target_modules[", i, "]"),
                 absl::StrCat("is ", module,
                              ", expected LINEAR_QKV, LINEAR_PROJ, LINEAR_FC1 "
                              "or LINEAR_FC2"));
  }
  if (lora.rank() == 0) {
    if (lora.target_modules().empty()) return;
    problems.Add("training.lora.rank",
                 "is 0, expected the rank of the adapters of "
                 "training.lora.target_modules");
    return;
  }
  const uint32_t tensor = std::max(scenario.parallelism().tensor(), 1u);
  if (lora.rank() % tensor != 0) {
    problems.Add(
        "training.lora.rank",
        absl::StrCat("is ", lora.rank(),
                     ", expected a multiple of parallelism.tensor ", tensor));
  }
  if (training.recompute() == RECOMPUTE_OPERATORS) {
    problems.Add("training.recompute",
                 "is RECOMPUTE_OPERATORS, expected none, selective or full "
                 "with training.lora");
  }
  if (training.optimizer() == MUON || training.optimizer() == DIST_MUON) {
    problems.Add("training.optimizer",
                 absl::StrCat("is ", Optimizer_Name(training.optimizer()),
                              ", expected ADAM or SGD_MOMENTUM with "
                              "training.lora"));
  }
}

void CheckDispatch(Problems& problems, const Communication& communication) {
  const TokenDispatcher dispatcher = communication.token_dispatcher();
  if (!TokenDispatcher_IsValid(dispatcher)) {
    problems.Add("communication.token_dispatcher",
                 absl::StrCat("is ", static_cast<int>(dispatcher),
                              ", which is unknown"));
  }
  const uint32_t count = communication.dispatch_multiprocessors();
  problems.CheckRange("communication.dispatch_multiprocessors", count, 0,
                      kMaxDispatchMultiprocessors);
  if (count > 0 && !models::SendsOneCopyPerGpu(dispatcher)) {
    problems.Add("communication.dispatch_multiprocessors",
                 absl::StrCat("is ", count,
                              ", expected communication.token_dispatcher "
                              "TOKENS_DEEPEP or TOKENS_HYBRID_EP with it"));
  }
}

void CheckOverlapOfExchanges(Problems& problems, const Scenario& scenario) {
  if (!scenario.communication().overlap_expert_exchange()) return;
  const uint32_t experts = scenario.parallelism().expert();
  if (experts > 1) return;
  problems.Add("communication.overlap_expert_exchange",
               absl::StrCat("is true and parallelism.expert is ",
                            std::max<uint32_t>(experts, 1),
                            ", expected at least 2: without expert parallelism "
                            "there is no exchange"));
}

void CheckAdaptersAgainst(Problems& problems, const Scenario& scenario,
                          const Model& model) {
  const bool adapts = scenario.training().lora().rank() > 0;
  const bool muon = scenario.training().optimizer() == MUON ||
                    scenario.training().optimizer() == DIST_MUON;
  if (!model.has_measured()) return;
  if (adapts) {
    problems.Add("training.lora",
                 "is given, but the layers of the model were measured as they "
                 "ran");
  }
  if (muon) {
    problems.Add(
        "training.optimizer",
        absl::StrCat("is ", Optimizer_Name(scenario.training().optimizer()),
                     ", expected ADAM or SGD_MOMENTUM: the matrices of "
                     "a measured model are not known"));
  }
}

void CheckDispatchAgainst(Problems& problems, const Scenario& scenario,
                          const Model& model) {
  const TokenDispatcher dispatcher =
      scenario.communication().token_dispatcher();
  if (!models::SendsOneCopyPerGpu(dispatcher)) return;
  const char* field = "communication.token_dispatcher";
  const std::string value =
      absl::StrCat("is ", TokenDispatcher_Name(dispatcher));
  if (!model.has_transformer() || model.transformer().num_experts() == 0) {
    problems.Add(
        field,
        absl::StrCat(value, ", expected none: the model has no experts"));
    return;
  }
  if (model.transformer().capacity_factor() > 0) {
    problems.Add(field,
                 absl::StrCat(value,
                              ", expected TOKENS_ALL_TO_ALL: the model's "
                              "experts have a capacity_factor"));
  }
}

void CheckFormatsAgainst(Problems& problems, const Scenario& scenario,
                         const Recipe& recipe, const DeviceProfile& device) {
  if (recipe.attention() == OPERAND_16_BIT) return;
  const char* name = models::Name(recipe.attention());
  const MatrixRate* rate = calibrate::FindRate(device, name);
  if (rate == nullptr || !rate->has_attention_speed()) {
    problems.Add("training.attention_format",
                 absl::StrCat("is ", name, ", but device ", device.name(),
                              " has no attention_speed for ", name,
                              ", expected another format or device"));
  }
  if (!scenario.training().flash_attention()) {
    problems.Add("training.flash_attention",
                 absl::StrCat("is off, expected on: only fused attention "
                              "computes in ",
                              name));
  }
}

}  // namespace weir::scenarios
