// SPDX-License-Identifier: Apache-2.0
// Chimera (Li and Hoefler, 2021, section 3): f pipelines down the ranks and f
// up, each with its own copy of the weights, merged without conflicts.
#include "absl/strings/str_cat.h"
#include "schedules/limits.h"
#include "schedules/options.h"
#include "schedules/systems/generators.h"
#include "schedules/systems/slots.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kChimeraName = "chimera";
constexpr absl::string_view kDirect = "direct";

struct ChimeraOptions {
  int num_pipelines;
  // Microbatches per forward. With backward halving, a backward processes half
  // as many as a forward, so a forward spans two of its microbatches.
  int forward_span;
};

ChimeraOptions ReadOptions(const ScheduleSpec& spec, Problems* problems) {
  ChimeraOptions options;
  options.num_pipelines =
      IntOption(spec, "pipelines", 2, 2, kMaxRanks, problems);
  const std::string concatenation =
      ChoiceOption(spec, "concatenation",
                   {kDirect, "forward-doubling", "backward-halving"}, problems);
  options.forward_span = concatenation == kDirect ? 1 : 2;
  return options;
}

// A pipeline without a microbatch would have no gradient for its weights.
void CheckEveryPipelineRuns(const ScheduleSpec& spec,
                            const ChimeraOptions& options, Problems* problems) {
  const int64_t pipelines = options.num_pipelines;
  const bool is_even = spec.num_microbatches % pipelines == 0;
  // With turns of two, the last turn may have one microbatch.
  const int64_t least =
      is_even || options.forward_span == 1 ? pipelines : 2 * pipelines - 1;
  if (spec.num_microbatches < 1 || spec.num_microbatches >= least) return;
  problems->Add("num_microbatches", absl::StrCat("is ", spec.num_microbatches,
                                                 ", expected at least ", least,
                                                 " for pipelines ", pipelines));
}

absl::Status CheckChimera(const ScheduleSpec& spec) {
  Problems problems(kChimeraName);
  CheckLimits(spec, &problems);
  CheckOneChunk(spec, &problems);
  CheckOneBatch(spec, &problems);
  const ChimeraOptions options = ReadOptions(spec, &problems);
  if (spec.num_ranks >= 1 && spec.num_ranks % 2 != 0) {
    problems.Add("pipeline", absl::StrCat("is ", spec.num_ranks,
                                          ", expected an even number"));
  } else if (spec.num_ranks >= 1 && (options.num_pipelines % 2 != 0 ||
                                     spec.num_ranks % options.num_pipelines)) {
    problems.Add("pipelines",
                 absl::StrCat("is ", options.num_pipelines,
                              ", expected an even divisor of pipeline, which "
                              "is ",
                              spec.num_ranks));
  }
  CheckEveryPipelineRuns(spec, options, &problems);
  return problems.ToStatus();
}

// Pipeline i down starts at rank i*D/f; the pipelines up use the reversed
// routes.
std::vector<std::vector<int>> Routes(int num_ranks, int num_pipelines) {
  const int num_down = num_pipelines / 2;
  std::vector<std::vector<int>> routes;
  for (int i = 0; i < num_down; ++i) {
    std::vector<int>& route = routes.emplace_back(num_ranks);
    for (int stage = 0; stage < num_ranks; ++stage) {
      route[stage] = (i * (num_ranks / num_down) + stage) % num_ranks;
    }
  }
  for (int i = 0; i < num_down; ++i) routes.push_back(Reversed(routes[i]));
  return routes;
}

Schedule GenerateChimera(const ScheduleSpec& spec) {
  Problems none(kChimeraName);
  const ChimeraOptions options = ReadOptions(spec, &none);
  Schedule schedule = EmptySchedule(kChimeraName, spec);
  schedule.routes = Routes(spec.num_ranks, options.num_pipelines);
  // The first microbatches go down, the last go up. If they cannot be divided
  // evenly, the pipelines take turns.
  schedule.microbatches_per_route_turn =
      spec.num_microbatches % options.num_pipelines == 0
          ? spec.num_microbatches / options.num_pipelines
          : options.forward_span;
  OrderBySlots({.num_forwards = spec.num_ranks / options.num_pipelines,
                .forward_span = options.forward_span},
               &schedule);
  return schedule;
}

}  // namespace

ScheduleKind ChimeraKind() {
  return {
      .name = kChimeraName,
      .aliases = {"bidirectional"},
      .paper =
          "Li and Hoefler, Chimera: Efficiently Training Large-Scale "
          "Neural Networks with Bidirectional Pipelines, SC 2021",
      .constraints =
          "pipeline even and a multiple of pipelines, at least one "
          "microbatch for each of these, chunks is 1, num_batches is 1",
      .summary =
          "1F1B pipelines in both directions, each with its own copy of the "
          "weights, gradients reduced between the copies, flush; one weight "
          "version",
      .flush = true,
      .options = {{"pipelines", "2",
                   "number of pipelines, in both directions together; even"},
                  {"concatenation", kDirect,
                   "for more microbatches than ranks: direct, forward-doubling "
                   "(a forward takes two microbatches) or backward-halving (a "
                   "backward takes half a microbatch)"}},
      .check = CheckChimera,
      .generate = GenerateChimera};
}

}  // namespace weir::schedules
