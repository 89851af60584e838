// SPDX-License-Identifier: Apache-2.0
// Takes the shape of a scenario from its schedule file.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scenarios/check_scenario.h"
#include "schedules/source.h"

namespace weir::scenarios {
namespace {

// Sets a field that is not given (0), otherwise checks that it agrees.
template <typename Set>
void Fill(Problems& problems, const schedules::Schedule& schedule,
          absl::string_view field, uint32_t given, int found, const Set& set) {
  if (given == 0) {
    set(static_cast<uint32_t>(found));
  } else if (given != static_cast<uint32_t>(found)) {
    problems.Add(field, absl::StrCat("is ", given, ", but schedule ",
                                     schedule.name, " has ", found));
  }
}

// Sets or checks the batch of a model, which determines the microbatches.
void FillBatch(Problems& problems, const schedules::Schedule& schedule,
               Scenario& scenario) {
  Batch& batch = *scenario.mutable_batch();
  const uint64_t share = uint64_t{std::max(batch.microbatch_size(), 1u)} *
                         std::max(scenario.parallelism().data(), 1u);
  const uint64_t wanted = share * schedule.num_microbatches;
  if (batch.global_batch_size() == 0) {
    if (wanted <= std::numeric_limits<uint32_t>::max()) {
      batch.set_global_batch_size(static_cast<uint32_t>(wanted));
    }
  } else if (batch.global_batch_size() != wanted) {
    problems.Add(
        "batch.global_batch_size",
        absl::StrCat("is ", batch.global_batch_size(), ", but schedule ",
                     schedule.name, " has ", schedule.num_microbatches,
                     " microbatches: expected ", wanted));
  }
}

}  // namespace

absl::Status FillFromScheduleFile(Problems& problems, Scenario& scenario) {
  if (!schedules::IsScheduleFile(scenario.schedule())) return absl::OkStatus();
  ASSIGN_OR_RETURN(const schedules::Schedule schedule,
                   schedules::LoadScheduleFile(scenario.schedule()));
  ASSIGN_OR_RETURN(const int chunks, schedules::ChunksOf(schedule));
  Parallelism& parallelism = *scenario.mutable_parallelism();
  Fill(problems, schedule, "parallelism.pipeline", parallelism.pipeline(),
       schedule.num_ranks, [&](uint32_t n) { parallelism.set_pipeline(n); });
  Fill(problems, schedule, "parallelism.chunks", parallelism.chunks(), chunks,
       [&](uint32_t n) { parallelism.set_chunks(n); });
  if (!schedule.flush) {
    Fill(problems, schedule, "num_batches", scenario.num_batches(),
         schedule.num_batches,
         [&](uint32_t n) { scenario.set_num_batches(n); });
  }
  if (scenario.has_costs()) {
    Fill(problems, schedule, "num_microbatches", scenario.num_microbatches(),
         schedule.num_microbatches,
         [&](uint32_t n) { scenario.set_num_microbatches(n); });
  } else {
    FillBatch(problems, schedule, scenario);
  }
  return absl::OkStatus();
}

}  // namespace weir::scenarios
