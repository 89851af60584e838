// SPDX-License-Identifier: Apache-2.0
#include "scenarios/check_scenario.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/check_utf8.h"
#include "base/units.h"
#include "calibrate/profile/software.h"
#include "google/protobuf/message.h"
#include "scenarios/check_parallelism.h"
#include "scenarios/check_training.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/costs.h"
#include "scenarios/packed_sequences.h"
#include "scenarios/uneven_split.h"
#include "scenarios/vocabulary_parallel.h"
#include "schedules/options.h"
#include "schedules/registry.h"
#include "schedules/source.h"

namespace weir::scenarios {
namespace {

constexpr double kMaxMicrobatchSize = 1e6;
constexpr double kMaxGlobalBatchSize = 1 << 30;
constexpr double kMaxSequenceLength = 1 << 24;
constexpr double kMaxBatches = 1e6;

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

std::vector<std::string> NamesOfSetFields(
    const google::protobuf::Message& message) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  std::vector<std::string> names;
  for (const auto* field : fields) names.push_back(field->name());
  return names;
}

// Checks that every batch ends with a flush. Otherwise recorded replicas, which
// have no reduction of gradients, drift apart: there is no step time of all.
void CheckReplicasEndTogether(Problems& problems, const Scenario& scenario) {
  const uint32_t data = scenario.parallelism().data();
  const absl::StatusOr<bool> flush =
      schedules::ScheduleFlushes(scenario.schedule());
  if (flush.ok() && !*flush) {
    problems.Add("schedule",
                 absl::StrCat("is ", scenario.schedule(),
                              ", which has no flush, expected a schedule with "
                              "a flush for the ",
                              data,
                              " recorded replicas of costs, or "
                              "parallelism.data 1"));
  }
  if (scenario.training().post_validation()) {
    problems.Add("training.post_validation",
                 absl::StrCat("is true, so that batches overlap, expected "
                              "false for the ",
                              data,
                              " recorded replicas of costs, or "
                              "parallelism.data 1"));
  }
}

void CheckGivenCosts(Problems& problems, const Scenario& scenario) {
  const Parallelism& parallelism = scenario.parallelism();
  const auto refuse = [&](bool given, absl::string_view field) {
    if (!given) return;
    problems.Add(std::string(field),
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
  refuse(!scenario.slow().empty(), "slow");
  refuse(!scenario.failed().empty(), "failed");
  refuse(!scenario.background().empty(), "background");
  for (const std::string& field :
       NamesOfSetFields(scenario.cluster_changes())) {
    refuse(true, absl::StrCat("cluster_changes.", field));
  }
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
  const auto replicas = static_cast<uint32_t>(scenario.costs().replicas_size());
  if (replicas == 0) {
    refuse(parallelism.data() > 1, "parallelism.data");
  } else if (parallelism.data() > 1 && parallelism.data() != replicas) {
    problems.Add("parallelism.data",
                 absl::StrCat("is ", parallelism.data(), ", expected 1 or ",
                              replicas, ", the recorded replicas of costs"));
  } else if (parallelism.data() > 1) {
    CheckReplicasEndTogether(problems, scenario);
  }
  refuse(parallelism.data_replicate() > 1, "parallelism.data_replicate");
  refuse(parallelism.context() > 1, "parallelism.context");
  refuse(!parallelism.gpus().empty(), "parallelism.gpus");
  refuse(parallelism.sequence_parallel(), "parallelism.sequence_parallel");
  const bool has_blocks = !scenario.costs().blocks_per_stage().empty();
  if (!parallelism.blocks_per_stage().empty() && !has_blocks) {
    problems.Add("parallelism.blocks_per_stage",
                 "is given, but costs.blocks_per_stage is not, expected both "
                 "(weir import --blocks-per-stage) or none");
  }
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
  if (entries > 1 && entries != num_stages && !has_blocks &&
      !HasOptions(scenario)) {
    problems.Add("costs.stages",
                 absl::StrFormat("has %d entries, expected 1 or pipeline %.0f "
                                 "x chunks %.0f = %.0f, or "
                                 "costs.blocks_per_stage (weir import)",
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

double Degree(uint32_t value) { return std::max<uint32_t>(value, 1); }

bool HasOptions(const Scenario& scenario) {
  return schedules::WithoutOptions(scenario.schedule()) != scenario.schedule();
}

void CheckEnum(Problems& problems, const char* field, int value, bool valid) {
  if (!valid)
    problems.Add(field, absl::StrCat("is ", value, ", which is unknown"));
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
  CheckOverlapOfExchanges(problems, scenario);
  problems.CheckRange("num_batches", scenario.num_batches(), 0, kMaxBatches);
  CheckSize(problems, scenario);
}

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
