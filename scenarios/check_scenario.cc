// SPDX-License-Identifier: Apache-2.0
#include "scenarios/check_scenario.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check_utf8.h"
#include "base/units.h"
#include "calibrate/profile/software.h"
#include "scenarios/check_training.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/costs.h"
#include "scenarios/packed_sequences.h"
#include "scenarios/recomputation.h"
#include "scenarios/uneven_split.h"
#include "scenarios/vocabulary_parallel.h"
#include "schedules/options.h"
#include "schedules/registry.h"

namespace weir::scenarios {
namespace {

constexpr double kMaxMicrobatchSize = 1e6;
constexpr double kMaxGlobalBatchSize = 1 << 30;
constexpr double kMaxSequenceLength = 1 << 24;
constexpr double kMaxBatches = 1e6;

void CheckEnum(Problems& problems, const char* field, int value, bool valid) {
  if (!valid)
    problems.Add(field, absl::StrCat("is ", value, ", which is unknown"));
}

void CheckContext(Problems& problems, const Parallelism& parallelism) {
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

void CheckParallelism(Problems& problems, const Scenario& scenario) {
  const Parallelism& parallelism = scenario.parallelism();
  const std::string path = "parallelism.";
  // 0 means 1 everywhere.
  problems.CheckRange(path + "tensor", parallelism.tensor(), 0, kMaxGpus);
  problems.CheckRange(path + "expert", parallelism.expert(), 0, kMaxGpus);
  CheckContext(problems, parallelism);
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

void CheckBatch(Problems& problems, const Scenario& scenario) {
  const Batch& batch = scenario.batch();
  // 0 means 1.
  problems.CheckRange("batch.microbatch_size", batch.microbatch_size(), 0,
                      kMaxMicrobatchSize);
  if (batch.global_batch_size() == 0) {
    problems.Add("batch.global_batch_size",
                 "is missing, expected the sequences per batch over all "
                 "replicas");
  }
  problems.CheckRange("batch.global_batch_size", batch.global_batch_size(), 0,
                      kMaxGlobalBatchSize);
  problems.CheckRange("batch.sequence_length", batch.sequence_length(), 0,
                      kMaxSequenceLength);
  CheckSequenceLengths(problems, batch);
  if (scenario.num_microbatches() != 0) {
    problems.Add("num_microbatches",
                 "is given without costs, expected only batch, from which "
                 "it follows: global_batch_size / (microbatch_size x data)");
  }
}

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

void CheckModelMode(Problems& problems, const Scenario& scenario) {
  if (scenario.has_transformer() && !scenario.model().empty()) {
    problems.Add("transformer", "cannot be combined with model");
  } else if (scenario.model().empty() && !scenario.has_transformer()) {
    problems.Add("model",
                 "is missing, expected a preset (weir model list) or a file");
  }
  if (scenario.cluster().empty()) {
    problems.Add("cluster",
                 "is missing, expected a preset (weir cluster list) or a file");
  }
  problems.CheckRange("num_nodes", scenario.num_nodes(), 0, kMaxGpus);
  CheckBatch(problems, scenario);
  CheckTraining(problems, scenario.training(), scenario.parallelism());
  CheckAdapters(problems, scenario);
}

void CheckGivenCosts(Problems& problems, const Scenario& scenario) {
  const Parallelism& parallelism = scenario.parallelism();
  const auto refuse = [&](bool given, const char* field) {
    if (!given) return;
    problems.Add(field,
                 "cannot be combined with costs, which replace the model, "
                 "cluster and batch of a single pipeline");
  };
  refuse(!scenario.model().empty(), "model");
  refuse(scenario.has_transformer(), "transformer");
  refuse(!scenario.cluster().empty(), "cluster");
  refuse(scenario.num_nodes() != 0, "num_nodes");
  refuse(!scenario.profile().empty(), "profile");
  refuse(!scenario.runtime().empty(), "runtime");
  refuse(!scenario.defaults().empty(), "defaults");
  refuse(scenario.has_software(), "software");
  refuse(scenario.has_batch(), "batch");
  // Post-validation changes the order of batches, not a cost.
  Training training = scenario.training();
  training.clear_post_validation();
  training.clear_rollback_fraction();
  refuse(scenario.has_training() && (training.ByteSizeLong() > 0 ||
                                     scenario.training().ByteSizeLong() == 0),
         "training");
  CheckRollbacks(problems, scenario.training());
  refuse(parallelism.tensor() > 1, "parallelism.tensor");
  refuse(parallelism.expert() > 1, "parallelism.expert");
  refuse(parallelism.expert_tensor() > 0, "parallelism.expert_tensor");
  refuse(parallelism.data() > 1, "parallelism.data");
  refuse(parallelism.data_replicate() > 1, "parallelism.data_replicate");
  refuse(parallelism.context() > 1, "parallelism.context");
  refuse(!parallelism.gpus().empty(), "parallelism.gpus");
  refuse(parallelism.sequence_parallel(), "parallelism.sequence_parallel");
  refuse(!parallelism.blocks_per_stage().empty(),
         "parallelism.blocks_per_stage");
  refuse(!parallelism.layout().empty(), "parallelism.layout");
  refuse(SplitsUnevenly(parallelism), "an uneven split of the layers");
  if (parallelism.pipeline() == 0) {
    problems.Add("parallelism.pipeline",
                 "is missing, expected the number of ranks");
  }
  if (scenario.num_microbatches() == 0) {
    problems.Add("num_microbatches", "is missing, expected at least 1");
  }
  CheckCosts(problems, "costs.", scenario.costs());
  const double num_stages =
      Degree(parallelism.pipeline()) * Degree(parallelism.chunks());
  const int entries = scenario.costs().stages_size();
  if (entries > 1 && entries != num_stages && !HasOptions(scenario)) {
    problems.Add("costs.stages",
                 absl::StrFormat("has %d entries, expected 1 or pipeline %.0f "
                                 "x chunks %.0f = %.0f",
                                 entries, Degree(parallelism.pipeline()),
                                 Degree(parallelism.chunks()), num_stages));
  }
}

void CheckSize(Problems& problems, const Scenario& scenario) {
  const Parallelism& parallelism = scenario.parallelism();
  const double num_gpus =
      Degree(parallelism.tensor()) * Degree(parallelism.data()) *
      Degree(parallelism.context()) * Degree(parallelism.pipeline());
  double num_microbatches = scenario.num_microbatches();
  if (!scenario.has_costs()) {
    num_microbatches = scenario.batch().global_batch_size() /
                       (Degree(scenario.batch().microbatch_size()) *
                        Degree(parallelism.data()));
  }
  const double num_batches = Degree(scenario.num_batches());
  // A forward and a backward each.
  const double num_actions = 2 * num_gpus * Degree(parallelism.chunks()) *
                             num_microbatches * num_batches;
  if (num_actions > kMaxActions) {
    // Peak memory and time on one core per action; see sim/run_size.cc.
    constexpr double kBytesPerAction = 160, kSecondsPerAction = 2e-6;
    problems.Add("", absl::StrFormat(
                         "needs %.4g actions (2 x %.0f GPUs x %.0f chunks x "
                         "%.0f microbatches x %.0f batches), about %s and %.3g "
                         "hours, expected at most %.4g actions",
                         num_actions, num_gpus, Degree(parallelism.chunks()),
                         num_microbatches, num_batches,
                         FormatBytes(num_actions * kBytesPerAction),
                         num_actions * kSecondsPerAction / 3600, kMaxActions));
  }
}

}  // namespace

double Degree(uint32_t value) { return std::max<uint32_t>(value, 1); }

bool HasOptions(const Scenario& scenario) {
  return schedules::WithoutOptions(scenario.schedule()) != scenario.schedule();
}

void CheckFields(Problems& problems, const Scenario& scenario) {
  // These may also come from the command line; files contain only UTF-8.
  CheckUtf8(problems, "model", scenario.model());
  CheckUtf8(problems, "cluster", scenario.cluster());
  CheckUtf8(problems, "profile", scenario.profile());
  CheckUtf8(problems, "runtime", scenario.runtime());
  CheckUtf8(problems, "defaults", scenario.defaults());
  CheckUtf8(problems, "schedule", scenario.schedule());
  calibrate::CheckSoftware("software", scenario.software(), &problems);
  if (scenario.schedule().empty()) {
    problems.Add("schedule",
                 "is empty, expected the name of a schedule (see weir schedule "
                 "list)");
  }
  CheckParallelism(problems, scenario);
  CheckUtf8(problems, "parallelism.layout", scenario.parallelism().layout());
  CheckLayout(problems, scenario.parallelism());
  CheckUnevenSplit(problems, scenario.parallelism());
  CheckVocabularyParallel(problems, scenario);
  if (scenario.has_costs()) {
    CheckGivenCosts(problems, scenario);
  } else {
    CheckModelMode(problems, scenario);
  }
  const Communication& communication = scenario.communication();
  CheckEnum(problems, "communication.transfers", communication.transfers(),
            TransferMode_IsValid(communication.transfers()));
  CheckEnum(problems, "communication.gradient_reduction",
            communication.gradient_reduction(),
            ReductionMode_IsValid(communication.gradient_reduction()));
  problems.CheckRange("communication.compressed_bits_per_element",
                      communication.compressed_bits_per_element(), 0, 32);
  problems.CheckRange("communication.bucket_bytes",
                      communication.bucket_bytes(), 0, 1e12);
  CheckDispatch(problems, communication);
  problems.CheckRange("num_batches", scenario.num_batches(), 0, kMaxBatches);
  CheckSize(problems, scenario);
}

namespace {

// Returns "128 or 192, or parallelism.data 12".
std::string NearestBatches(const Batch& batch, double share, double data) {
  const double below = std::floor(batch.global_batch_size() / share) * share;
  std::string text = below > 0
                         ? absl::StrFormat("%.0f or %.0f", below, below + share)
                         : absl::StrFormat("%.0f", share);
  const uint32_t microbatches =
      batch.global_batch_size() / batch.microbatch_size();
  if (microbatches * batch.microbatch_size() != batch.global_batch_size()) {
    return text;
  }
  for (auto replicas = static_cast<uint32_t>(data); replicas > 0; --replicas) {
    if (microbatches % replicas != 0) continue;
    absl::StrAppend(&text, ", or parallelism.data ", replicas);
    break;
  }
  return text;
}

}  // namespace

void CheckBatchDivides(Problems& problems, const Scenario& scenario) {
  if (scenario.has_costs()) return;
  const Batch& batch = scenario.batch();
  const double data = Degree(scenario.parallelism().data());
  const double share = batch.microbatch_size() * data;
  const double num_microbatches = batch.global_batch_size() / share;
  if (num_microbatches == static_cast<int64_t>(num_microbatches)) return;
  problems.Add(
      "batch.global_batch_size",
      absl::StrFormat("is %d, expected a multiple of "
                      "batch.microbatch_size %d x parallelism.data "
                      "%.0f = %.0f; nearest: %s",
                      batch.global_batch_size(), batch.microbatch_size(), data,
                      share, NearestBatches(batch, share, data)));
}

int NumMicrobatches(const Scenario& scenario) {
  if (scenario.has_costs()) {
    return static_cast<int>(scenario.num_microbatches());
  }
  const uint32_t data = std::max(scenario.parallelism().data(), 1u);
  return static_cast<int>(scenario.batch().global_batch_size() /
                          (scenario.batch().microbatch_size() * data));
}

absl::Status CheckSchedule(absl::string_view label, const Scenario& scenario,
                           bool with_shape) {
  const auto kind = schedules::FindScheduleKind(scenario.schedule());
  if (!kind.ok()) {
    return absl::NotFoundError(
        absl::StrCat(label, ": ", kind.status().message()));
  }
  const Training& training = scenario.training();
  if ((training.fully_sharded() || training.distributed_optimizer()) &&
      !(*kind)->flush) {
    return absl::InvalidArgumentError(absl::StrCat(
        label, ": training.",
        training.fully_sharded() ? "fully_sharded" : "distributed_optimizer",
        " needs a schedule with a flush, but ", (*kind)->name, " has none"));
  }
  if (!with_shape) return absl::OkStatus();
  const Parallelism& parallelism = scenario.parallelism();
  const absl::StatusOr<schedules::ScheduleSpec> spec = schedules::WithOptionsOf(
      scenario.schedule(), **kind,
      {.num_ranks = static_cast<int>(Degree(parallelism.pipeline())),
       .num_microbatches = NumMicrobatches(scenario),
       .num_chunks = static_cast<int>(Degree(parallelism.chunks())),
       .num_batches = static_cast<int>(std::max(scenario.num_batches(), 1u))});
  absl::Status status = spec.ok() ? (*kind)->check(*spec) : spec.status();
  if (status.ok()) return status;
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    lines.push_back(absl::StrCat(label, ": ", line));
  }
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

}  // namespace weir::scenarios
