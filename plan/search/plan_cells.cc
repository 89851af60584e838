// SPDX-License-Identifier: Apache-2.0
#include "plan/search/plan_cells.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plan/search/space.h"
#include "scenarios/recomputation.h"

namespace weir::plan {

std::string RecomputeText(const Plan& plan) {
  return models::RecomputeText(
      scenarios::RecomputeOf(plan.scenario().training()));
}

std::string LayersText(const Plan& plan) {
  const std::vector<int> blocks = GivenBlocks(plan.scenario());
  const bool even = std::all_of(blocks.begin(), blocks.end(), [&](int number) {
    return number == blocks.front();
  });
  if (even && plan.scenario().parallelism().layout().empty()) return "even";
  std::vector<std::string> words;
  for (size_t i = 0, j = 0; i < blocks.size(); i = j) {
    while (j < blocks.size() && blocks[j] == blocks[i]) ++j;
    words.push_back(j - i > 1 ? absl::StrCat(blocks[i], "*", j - i)
                              : absl::StrCat(blocks[i]));
  }
  return absl::StrJoin(words, ",");
}

std::string ShardingText(const Plan& plan) {
  const Training& training = plan.scenario().training();
  if (training.fully_sharded()) return "full";
  return training.distributed_optimizer() ? "optimizer" : "none";
}

std::string SequenceParallelText(const Plan& plan) {
  return plan.scenario().parallelism().sequence_parallel() ? "yes" : "no";
}

std::string ReductionText(const Plan& plan) {
  return plan.scenario().communication().gradient_reduction() ==
                 REDUCTION_OVERLAPPED
             ? "overlapped"
             : "blocking";
}

std::string OrderText(const Plan& plan) {
  const Parallelism& parallelism = plan.scenario().parallelism();
  return parallelism.gpus().empty() ? parallelism.order() : "custom";
}

double TokensPerSecond(const Plan& plan) {
  return plan.samples_per_second() * plan.scenario().batch().sequence_length();
}

bool HasPrices(const PlanReport& report) {
  return report.request().price_per_gpu_hour() > 0;
}

bool HasTokens(const PlanReport& report) {
  return report.plans_size() > 0 &&
         report.plans(0).scenario().batch().sequence_length() > 0;
}

double TokensOf(const PlanReport& report) {
  constexpr double kUsualTokens = 1e9;
  return report.request().tokens() > 0 ? report.request().tokens()
                                       : kUsualTokens;
}

bool HasExperts(const PlanReport& report) {
  return std::any_of(report.plans().begin(), report.plans().end(),
                     [](const Plan& plan) {
                       return plan.scenario().parallelism().expert() > 1;
                     });
}

bool HasExpertTensor(const PlanReport& report) {
  return std::any_of(report.plans().begin(), report.plans().end(),
                     [](const Plan& plan) {
                       return plan.scenario().parallelism().expert_tensor() > 0;
                     });
}

bool HasReplicates(const PlanReport& report) {
  return std::any_of(
      report.plans().begin(), report.plans().end(), [](const Plan& plan) {
        return plan.scenario().parallelism().data_replicate() > 1;
      });
}

uint32_t ExpertTensorOf(const Plan& plan) {
  const Parallelism& parallelism = plan.scenario().parallelism();
  return parallelism.expert_tensor() > 0 ? parallelism.expert_tensor()
                                         : parallelism.tensor();
}

uint32_t ReplicatesOf(const Plan& plan) {
  return std::max(plan.scenario().parallelism().data_replicate(), 1u);
}

bool HasContext(const PlanReport& report) {
  return std::any_of(report.plans().begin(), report.plans().end(),
                     [](const Plan& plan) {
                       return plan.scenario().parallelism().context() > 1;
                     });
}

std::vector<Technique> TechniquesOf(const PlanReport& report) {
  const Technique all[] = {
      {"offloaded blocks", "cpu_offloading_num_layers",
       [](const Plan& plan) {
         return absl::StrCat(
             plan.scenario().training().cpu_offloading_num_layers());
       },
       "0"},
      {"optimizer on host", "optimizer_offload_fraction",
       [](const Plan& plan) {
         return absl::StrCat(
             plan.scenario().training().optimizer_offload_fraction());
       },
       "0"},
      {"vocabulary", "vocabulary_parallel",
       [](const Plan& plan) {
         return NameOf(plan.scenario().parallelism().vocabulary_parallel());
       },
       "none"},
      {"ep overlap", "overlap_moe_expert_parallel_comm",
       [](const Plan& plan) -> std::string {
         return plan.scenario().communication().overlap_expert_exchange()
                    ? "yes"
                    : "no";
       },
       "no"},
      {"tp overlap", "tp_comm_overlap",
       [](const Plan& plan) -> std::string {
         const Communication& communication = plan.scenario().communication();
         if (!communication.has_tp_comm_overlap()) return "as runtime";
         return communication.tp_comm_overlap() ? "yes" : "no";
       },
       "as runtime"}};
  std::vector<Technique> used;
  for (const Technique& technique : all) {
    if (std::any_of(report.plans().begin(), report.plans().end(),
                    [&](const Plan& plan) {
                      return technique.text(plan) != technique.without;
                    })) {
      used.push_back(technique);
    }
  }
  return used;
}

bool HasFlops(const PlanReport& report) {
  return !report.request().flops_formula().empty();
}

Result FlopsOfPlan(const PlanReport& report, const Plan& plan) {
  Result result;
  result.set_flops_formula(report.request().flops_formula());
  result.set_batch_seconds(plan.batch_seconds());
  result.set_tensor_parallel(plan.num_gpus());
  result.set_pipeline_parallel(1);
  result.set_data_parallel(1);
  *result.mutable_flops_per_batch() = plan.flops_per_batch();
  if (plan.has_model_flops_utilization()) {
    result.set_model_flops_utilization(plan.model_flops_utilization());
  }
  return result;
}

std::string RuntimeOf(const PlanReport& report) {
  return report.plans_size() > 0 ? report.plans(0).scenario().runtime() : "";
}

}  // namespace weir::plan
