// SPDX-License-Identifier: Apache-2.0
#include "scenarios/check_parallelism.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "scenarios/check_scenario.h"
#include "scenarios/cluster/cluster.h"

namespace weir::scenarios {
namespace {

void CheckContextFields(Problems& problems, const Parallelism& parallelism) {
  problems.CheckRange("parallelism.context", parallelism.context(), 0,
                      kMaxContext);
  CheckEnum(problems, "parallelism.context_method",
            parallelism.context_method(),
            ContextMethod_IsValid(parallelism.context_method()));
  const auto& sizes = parallelism.hierarchical_context();
  if (parallelism.context_method() != CONTEXT_A2A_P2P) {
    if (!sizes.empty()) {
      problems.Add("parallelism.hierarchical_context",
                   "is given, but parallelism.context_method is not a2a+p2p");
    }
    return;
  }
  const double context = Degree(parallelism.context());
  if (sizes.size() != 2 || sizes[0] == 0 || sizes[1] == 0 ||
      1.0 * sizes[0] * sizes[1] != context) {
    problems.Add(
        "parallelism.hierarchical_context",
        absl::StrFormat("is \"%s\", expected two numbers whose product is "
                        "parallelism.context %.0f, as parallelism."
                        "context_method is a2a+p2p",
                        absl::StrJoin(sizes, ","), context));
  }
}

// Returns "parallelism.data 2 x parallelism.context 4".
std::string ReplicasText(const Parallelism& parallelism) {
  std::string text =
      absl::StrCat("parallelism.data ", Degree(parallelism.data()));
  if (parallelism.context() > 1) {
    absl::StrAppend(&text, " x parallelism.context ", parallelism.context());
  }
  return text;
}

// Checks the grid of experts over the GPUs of a pipeline rank.
void CheckExpertRanks(Problems& problems, const Scenario& scenario) {
  const Parallelism& parallelism = scenario.parallelism();
  problems.CheckRange("parallelism.expert_tensor", parallelism.expert_tensor(),
                      0, kMaxGpus);
  const auto data = static_cast<uint64_t>(Degree(parallelism.data()));
  const auto context = static_cast<uint64_t>(Degree(parallelism.context()));
  const auto tensor = static_cast<uint64_t>(Degree(parallelism.tensor()));
  const auto expert = static_cast<uint64_t>(Degree(parallelism.expert()));
  const uint64_t expert_tensor =
      parallelism.expert_tensor() > 0 ? parallelism.expert_tensor() : tensor;
  if (expert_tensor == tensor) {
    if (data * context % expert == 0) return;
    problems.Add(
        "parallelism.expert",
        context > 1
            ? absl::StrCat("is ", expert,
                           ", expected a divisor of parallelism.data ", data,
                           " x parallelism.context ", context,
                           ": experts are distributed over these ranks")
            : absl::StrCat("is ", expert,
                           ", expected a divisor of parallelism.data (", data,
                           "): experts are distributed over data-parallel "
                           "ranks"));
  } else if (tensor * data * context % (expert * expert_tensor) != 0) {
    problems.Add("parallelism.expert",
                 absl::StrCat("is ", expert, ", expected that it x ",
                              "parallelism.expert_tensor ", expert_tensor,
                              " divides parallelism.tensor ", tensor, " x ",
                              ReplicasText(parallelism), " = ",
                              tensor * data * context));
  }
  if (scenario.training().fully_sharded() &&
      expert * expert_tensor % tensor != 0) {
    problems.Add(
        "parallelism.expert",
        absl::StrCat("is ", expert, ", expected that it x ",
                     "parallelism.expert_tensor ", expert_tensor,
                     " is a multiple of parallelism.tensor ", tensor,
                     " with training.fully_sharded: other shards of experts "
                     "are not simulated"));
  }
}

// Checks the groups of hybrid sharding.
void CheckReplication(Problems& problems, const Scenario& scenario) {
  const Parallelism& parallelism = scenario.parallelism();
  const uint32_t groups = parallelism.data_replicate();
  problems.CheckRange("parallelism.data_replicate", groups, 0, kMaxGpus);
  if (groups <= 1) return;
  const auto data = static_cast<uint64_t>(Degree(parallelism.data()));
  if (data % groups != 0) {
    problems.Add(
        "parallelism.data_replicate",
        absl::StrCat("is ", groups,
                     ", expected a divisor of parallelism.data (", data, ")"));
    return;
  }
  // Each group has all experts, with the same number of copies.
  const auto tensor = static_cast<uint64_t>(Degree(parallelism.tensor()));
  const uint64_t block =
      static_cast<uint64_t>(Degree(parallelism.expert())) *
      (parallelism.expert_tensor() > 0 ? parallelism.expert_tensor() : tensor);
  const uint64_t gpus = data / groups *
                        static_cast<uint64_t>(Degree(parallelism.context())) *
                        tensor;
  if (gpus % block == 0) return;
  problems.Add(
      "parallelism.data_replicate",
      absl::StrCat("is ", groups, ", which leaves groups of ", gpus,
                   " GPUs per pipeline rank, expected a multiple of the ",
                   block,
                   " that have all experts (parallelism.expert x "
                   "parallelism.expert_tensor)"));
}

}  // namespace

void CheckParallelism(Problems& problems, const Scenario& scenario) {
  const Parallelism& parallelism = scenario.parallelism();
  const std::string path = "parallelism.";
  // 0 means 1 everywhere.
  problems.CheckRange(path + "tensor", parallelism.tensor(), 0, kMaxGpus);
  problems.CheckRange(path + "expert", parallelism.expert(), 0, kMaxGpus);
  CheckContextFields(problems, parallelism);
  CheckExpertRanks(problems, scenario);
  CheckReplication(problems, scenario);
  problems.CheckRange(path + "data", parallelism.data(), 0, kMaxGpus);
  problems.CheckRange(path + "pipeline", parallelism.pipeline(), 0, kMaxGpus);
  problems.CheckRange(path + "chunks", parallelism.chunks(), 0, kMaxGpus);
  const std::string& order = parallelism.order();
  if (!order.empty() && order != "tp-dp-pp" && order != "tp-pp-dp") {
    problems.Add(path + "order",
                 absl::StrCat("is \"", order,
                              "\", expected \"tp-dp-pp\" or \"tp-pp-dp\""));
  }
  if (!order.empty() && !parallelism.gpus().empty()) {
    problems.Add(path + "gpus", "cannot be combined with order");
  }
  for (int i = 0; i < parallelism.gpus_size(); ++i) {
    problems.CheckRange(absl::StrFormat("parallelism.gpus[%d]", i),
                        parallelism.gpus(i), 0, kMaxGpus - 1);
  }
  for (int i = 0; i < parallelism.blocks_per_stage_size(); ++i) {
    problems.CheckRange(absl::StrFormat("parallelism.blocks_per_stage[%d]", i),
                        parallelism.blocks_per_stage(i), 1, 1e6);
  }
  const double num_stages =
      Degree(parallelism.pipeline()) * Degree(parallelism.chunks());
  if (!parallelism.blocks_per_stage().empty() && !HasOptions(scenario) &&
      parallelism.blocks_per_stage_size() != num_stages) {
    problems.Add(path + "blocks_per_stage",
                 absl::StrFormat("has %d entries, expected pipeline %.0f x "
                                 "chunks %.0f = %.0f",
                                 parallelism.blocks_per_stage_size(),
                                 Degree(parallelism.pipeline()),
                                 Degree(parallelism.chunks()), num_stages));
  }
}

}  // namespace weir::scenarios
