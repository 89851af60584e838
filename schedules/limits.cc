// SPDX-License-Identifier: Apache-2.0
#include "schedules/limits.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/size_limits.h"

namespace weir::schedules {
namespace {

// Costs of generating, checking and interpreting an action, rounded up.
constexpr double kBytesPerAction = 64;
constexpr double kSecondsPerAction = 2e-7;

void CheckAtLeastOne(absl::string_view field, int value, Problems* problems) {
  if (value >= 1) return;
  problems->Add(field, absl::StrCat("is ", value, ", expected 1 or more"));
}

}  // namespace

void CheckLimits(const ScheduleSpec& spec, Problems* problems, int num_passes) {
  problems->CheckRange("pipeline", spec.num_ranks, 1, kMaxRanks);
  CheckAtLeastOne("num_microbatches", spec.num_microbatches, problems);
  CheckAtLeastOne("chunks", spec.num_chunks, problems);
  CheckAtLeastOne("num_batches", spec.num_batches, problems);
  if (!problems->empty()) return;
  // A double, because the product of four ints overflows every integer type.
  const double num_actions = static_cast<double>(num_passes) * spec.num_ranks *
                             spec.num_chunks * spec.num_microbatches *
                             spec.num_batches;
  if (num_actions <= kMaxActions) {
    const std::string problem = SizeProblem(
        absl::StrFormat("pipeline %d x chunks %d x num_microbatches %d x "
                        "num_batches %d result in %.3g actions, which",
                        spec.num_ranks, spec.num_chunks, spec.num_microbatches,
                        spec.num_batches, num_actions),
        {num_actions * kBytesPerAction, num_actions * kSecondsPerAction},
        "fewer of them");
    if (!problem.empty()) problems->Add("", problem);
    return;
  }
  problems->Add(
      "", absl::StrFormat(
              "pipeline %d x chunks %d x num_microbatches %d x "
              "num_batches %d result in %.3g actions, expected at most "
              "%.3g",
              spec.num_ranks, spec.num_chunks, spec.num_microbatches,
              spec.num_batches, num_actions, static_cast<double>(kMaxActions)));
}

void CheckOneChunk(const ScheduleSpec& spec, Problems* problems) {
  if (spec.num_chunks <= 1) return;
  problems->Add("chunks",
                absl::StrCat("is ", spec.num_chunks,
                             ", expected 1: every rank holds one stage"));
}

void CheckEvenChunks(const ScheduleSpec& spec, Problems* problems) {
  if (spec.num_chunks < 1 || spec.num_chunks % 2 == 0) return;
  problems->Add(
      "chunks",
      absl::StrCat("is ", spec.num_chunks,
                   ", expected an even number, half in each direction"));
}

void CheckOneBatch(const ScheduleSpec& spec, Problems* problems) {
  if (spec.num_batches <= 1) return;
  problems->Add("num_batches",
                absl::StrCat("is ", spec.num_batches,
                             ", expected 1: every batch ends with a flush"));
}

Problems CheckWithoutFlush(absl::string_view name, const ScheduleSpec& spec) {
  Problems problems(name);
  CheckLimits(spec, &problems);
  CheckOneChunk(spec, &problems);
  return problems;
}

}  // namespace weir::schedules
