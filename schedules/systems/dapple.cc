// SPDX-License-Identifier: Apache-2.0
// DAPPLE (Fan et al., 2021, section 3): stage i of S runs K_i forwards, then
// one backward and one forward alternately. Policy A: K_i = min(S-i, D), which
// is 1F1B unless the memory limit D is reached. Policy B: K_i = min(2(S-i)-1,
// D), which hides transfers.
#include <algorithm>

#include "schedules/limits.h"
#include "schedules/options.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kPolicyA = "dapple-pa";
constexpr absl::string_view kPolicyB = "dapple-pb";
constexpr absl::string_view kDapplePaper =
    "Fan et al., DAPPLE: A Pipelined Data Parallel Approach for Training Large "
    "Models, PPoPP 2021";
constexpr absl::string_view kConstraints = "chunks is 1, num_batches is 1";

int MemoryLimit(const ScheduleSpec& spec, Problems* problems) {
  return IntOption(spec, "memory-limit", kMaxActions, 1, kMaxActions, problems);
}

ScheduleOption MemoryLimitOption() {
  return {"memory-limit", "unlimited",
          "maximum number of microbatches whose activations a stage keeps"};
}

absl::Status CheckDapple(absl::string_view name, const ScheduleSpec& spec) {
  Problems problems(name);
  CheckLimits(spec, &problems);
  CheckOneChunk(spec, &problems);
  CheckOneBatch(spec, &problems);
  MemoryLimit(spec, &problems);
  return problems.ToStatus();
}

Schedule GenerateDapple(absl::string_view name, const ScheduleSpec& spec) {
  Problems none(name);
  const int limit = MemoryLimit(spec, &none);
  Schedule schedule = EmptySchedule(name, spec);
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    const int to_end = spec.num_ranks - rank;
    const int first = name == kPolicyA ? to_end : 2 * to_end - 1;
    schedule.rank_actions[rank] =
        OneFOneB(rank, std::min(first, limit) - 1, spec.num_microbatches);
  }
  return schedule;
}

absl::Status CheckA(const ScheduleSpec& spec) {
  return CheckDapple(kPolicyA, spec);
}
absl::Status CheckB(const ScheduleSpec& spec) {
  return CheckDapple(kPolicyB, spec);
}
Schedule GenerateA(const ScheduleSpec& spec) {
  return GenerateDapple(kPolicyA, spec);
}
Schedule GenerateB(const ScheduleSpec& spec) {
  return GenerateDapple(kPolicyB, spec);
}

}  // namespace

ScheduleKind DapplePAKind() {
  return {.name = kPolicyA,
          .aliases = {"dapple", "early-backward"},
          .paper = kDapplePaper,
          .constraints = kConstraints,
          .summary =
              "1F1B under a memory limit, flush; stage s of p keeps "
              "min(p-s, limit) microbatches; one weight version",
          .flush = true,
          .options = {MemoryLimitOption()},
          .check = CheckA,
          .generate = GenerateA};
}

ScheduleKind DapplePBKind() {
  return {.name = kPolicyB,
          .aliases = {"eager-1f1b"},
          .paper = kDapplePaper,
          .constraints = kConstraints,
          .summary =
              "1F1B with twice the warm-up to hide transfers, flush; stage s "
              "of p keeps min(2(p-s)-1, limit) microbatches; one weight "
              "version",
          .flush = true,
          .options = {MemoryLimitOption()},
          .check = CheckB,
          .generate = GenerateB};
}

}  // namespace weir::schedules
