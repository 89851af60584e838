// SPDX-License-Identifier: Apache-2.0
#include "scenarios/sizes.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "models/layout.h"
#include "scenarios/check_scenario.h"
#include "scenarios/chunks.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/size_suggestions.h"
#include "schedules/options.h"
#include "schedules/source.h"

namespace weir::scenarios {
namespace {

uint64_t OrOne(uint32_t value) { return std::max(value, 1u); }

// Returns the stages per rank that the fields ask for.
uint64_t ChunksAskedFor(const Parallelism& parallelism) {
  if (parallelism.chunks() > 0) return parallelism.chunks();
  const uint64_t pipeline = OrOne(parallelism.pipeline());
  if (parallelism.layout().empty()) return 1;
  const auto layout = models::ParseLayout("", parallelism.layout());
  return layout.ok() ? layout->size() / pipeline : 1;
}

// Sets enough nodes for the GPUs to use, if all nodes are equal.
absl::Status FillNodes(Scenario* scenario) {
  const uint32_t num_gpus = scenario->parallelism().num_gpus();
  if (num_gpus == 0 || num_gpus > kMaxGpus || scenario->num_nodes() > 0) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(
      const Cluster cluster,
      LoadCluster(scenario->cluster(), 0, scenario->cluster_changes()));
  if (cluster.groups_size() != 1) return absl::OkStatus();
  const uint32_t each = OrOne(cluster.groups(0).node().num_gpus());
  scenario->set_num_nodes((num_gpus + each - 1) / each);
  return absl::OkStatus();
}

// Returns " x parallelism.context 2", or nothing for one.
std::string ContextText(const Parallelism& parallelism) {
  return parallelism.context() > 1
             ? absl::StrCat(" x parallelism.context ", parallelism.context())
             : "";
}

// Sets the data-parallel size. An error suggests at most `most_gpus` GPUs.
absl::Status FillReplicas(absl::string_view label, uint64_t num_gpus,
                          absl::string_view what, uint64_t most_gpus,
                          Scenario* scenario) {
  Parallelism& parallelism = *scenario->mutable_parallelism();
  const uint64_t tensor = OrOne(parallelism.tensor());
  const uint64_t pipeline = OrOne(parallelism.pipeline());
  const uint64_t context = OrOne(parallelism.context());
  const uint64_t group = tensor * pipeline * context;
  if (num_gpus % group == 0 || num_gpus < group) {
    // Too few GPUs are reported with the placement.
    parallelism.set_data(
        static_cast<uint32_t>(std::max<uint64_t>(num_gpus / group, 1)));
    return absl::OkStatus();
  }
  Problems problems(label);
  const std::vector<std::string> nearest =
      NearestSizes(*scenario, num_gpus, most_gpus);
  problems.Add("", absl::StrCat("parallelism.tensor ", tensor,
                                " x parallelism.pipeline ", pipeline,
                                ContextText(parallelism), " = ", group,
                                ", expected a divisor of ", what, " ", num_gpus,
                                " GPUs", nearest.empty() ? "" : "; nearest: ",
                                absl::StrJoin(nearest, ", ")));
  return problems.ToStatus();
}

// Returns the most GPUs to suggest: a cluster of equal nodes grows with their
// number.
uint64_t MostGpus(const Scenario& scenario) {
  const auto cluster =
      LoadCluster(scenario.cluster(), 0, scenario.cluster_changes());
  if (!cluster.ok() || cluster->groups_size() == 1) return kMaxGpus;
  return static_cast<uint64_t>(NumGpus(*cluster));
}

absl::Status CheckNumGpus(absl::string_view label, const Scenario& scenario) {
  const Parallelism& parallelism = scenario.parallelism();
  Problems problems(label);
  const uint64_t used =
      OrOne(parallelism.tensor()) * OrOne(parallelism.data()) *
      OrOne(parallelism.pipeline()) * OrOne(parallelism.context());
  if (parallelism.num_gpus() != used) {
    problems.Add(
        "parallelism.num_gpus",
        absl::StrCat(
            "is ", parallelism.num_gpus(), ", expected parallelism.tensor ",
            OrOne(parallelism.tensor()), " x parallelism.pipeline ",
            OrOne(parallelism.pipeline()), ContextText(parallelism),
            " x parallelism.data ", OrOne(parallelism.data()), " = ", used,
            "; without parallelism.data it follows from the GPUs"));
  }
  return problems.ToStatus();
}

// Sizes beyond the limits are reported with the other fields.
bool AreSound(const Parallelism& parallelism) {
  return parallelism.tensor() <= kMaxGpus &&
         parallelism.pipeline() <= kMaxGpus && parallelism.data() <= kMaxGpus &&
         parallelism.context() <= kMaxContext &&
         parallelism.num_gpus() <= kMaxGpus;
}

}  // namespace

const char* DefaultSchedule(const Parallelism& parallelism) {
  return ChunksAskedFor(parallelism) > 1 ? "interleaved-1f1b" : "1f1b";
}

absl::Status TakeScheduleChunks(Scenario* scenario) {
  std::string name = scenario->schedule();
  if (schedules::IsScheduleFile(name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int chunks, schedules::TakeChunks(&name));
  if (chunks == 0) return absl::OkStatus();
  Parallelism& parallelism = *scenario->mutable_parallelism();
  if (scenario->has_costs()) {
    ScaleCosts(static_cast<double>(OrOne(parallelism.chunks())) / chunks,
               scenario->mutable_costs());
  }
  scenario->set_schedule(name);
  parallelism.set_chunks(static_cast<uint32_t>(chunks));
  return absl::OkStatus();
}

absl::Status FillSizes(absl::string_view label, Scenario* scenario) {
  RETURN_IF_ERROR(TakeScheduleChunks(scenario));
  if (scenario->schedule().empty()) {
    scenario->set_schedule(DefaultSchedule(scenario->parallelism()));
  }
  Parallelism& parallelism = *scenario->mutable_parallelism();
  if (scenario->has_costs() || scenario->cluster().empty() ||
      !AreSound(parallelism) || scenario->num_nodes() > kMaxGpus) {
    return absl::OkStatus();
  }
  if (parallelism.num_gpus() == 0 && parallelism.data() > 0) {
    return absl::OkStatus();
  }
  if (parallelism.pipeline() == 0 &&
      schedules::IsScheduleFile(scenario->schedule())) {
    ASSIGN_OR_RETURN(const schedules::Schedule schedule,
                     schedules::LoadScheduleFile(scenario->schedule()));
    parallelism.set_pipeline(static_cast<uint32_t>(schedule.num_ranks));
  }
  // Errors of the cluster are reported when it is loaded to be used.
  if (!FillNodes(scenario).ok()) return absl::OkStatus();
  if (parallelism.data() > 0) return CheckNumGpus(label, *scenario);
  if (parallelism.gpus_size() > 0) {
    return FillReplicas(label, parallelism.gpus_size(), "the listed",
                        /*most_gpus=*/0, scenario);
  }
  if (parallelism.num_gpus() > 0) {
    RETURN_IF_ERROR(FillReplicas(label, parallelism.num_gpus(), "the given",
                                 MostGpus(*scenario), scenario));
    return CheckNumGpus(label, *scenario);
  }
  const auto cluster =
      LoadCluster(scenario->cluster(), static_cast<int>(scenario->num_nodes()),
                  scenario->cluster_changes());
  if (!cluster.ok()) return absl::OkStatus();
  if (cluster->plain_links()) {
    // One GPU that plays the ranks of a replay.
    parallelism.set_data(1);
    return absl::OkStatus();
  }
  const auto available = static_cast<uint64_t>(NumGpus(*cluster));
  return FillReplicas(label, available, "the cluster's", available, scenario);
}

bool SetsGroups(const Scenario& changes) {
  const Parallelism& parallelism = changes.parallelism();
  return parallelism.data() == 0 &&
         (parallelism.tensor() > 0 || parallelism.pipeline() > 0 ||
          parallelism.num_gpus() > 0 || changes.num_nodes() > 0 ||
          changes.cluster_changes().nvlink_domain() > 0);
}

void ClearReplicas(Scenario* scenario) {
  if (scenario->has_costs() || scenario->cluster().empty()) return;
  const auto cluster =
      LoadCluster(scenario->cluster(), 0, scenario->cluster_changes());
  if (cluster.ok() && cluster->plain_links()) return;
  scenario->mutable_parallelism()->clear_data();
}

std::string IdleWarning(const Scenario& scenario, const Cluster& cluster) {
  const Parallelism& parallelism = scenario.parallelism();
  const auto available = static_cast<uint64_t>(NumGpus(cluster));
  const uint64_t group = OrOne(parallelism.tensor()) *
                         OrOne(parallelism.pipeline()) *
                         OrOne(parallelism.context());
  const uint64_t used = group * OrOne(parallelism.data());
  if (used >= available || cluster.plain_links() ||
      parallelism.num_gpus() > 0 || parallelism.gpus_size() > 0) {
    return "";
  }
  std::string text = absl::StrCat(available - used, " of the cluster's ",
                                  available, " GPUs are idle: ");
  if (available / group > OrOne(parallelism.data())) {
    absl::StrAppend(&text, "--dp ", available / group, " uses ",
                    available / group * group, "; ");
  }
  absl::StrAppend(&text, "use --gpus ", used, " to silence this warning");
  return text;
}

}  // namespace weir::scenarios
