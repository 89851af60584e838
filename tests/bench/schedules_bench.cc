// SPDX-License-Identifier: Apache-2.0
// Generates orders and validates them: 64 ranks, 1,024 microbatches, a given
// number of stages per rank, at the costs of a transformer block and its
// transfer. To measure another kind, add a line to kKinds.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>

#include "schedules/registry.h"
#include "schedules/validate.h"
#include "tests/bench/cpu_time.h"

namespace weir {
namespace {

constexpr int kRanks = 64, kMicrobatches = 1024;

struct Work {
  const char* name;
  int num_chunks;
};
// One entry per line, so that branches merge.
// clang-format off
constexpr Work kKinds[] = {
    {"gpipe", 1},
    {"1f1b", 1},
    {"interleaved-1f1b", 4},
    {"breadth-first", 4},
    {"hanayo", 4},
    {"bitpipe", 4},
    {"zb-h1", 1},
    {"zb-h2", 1},
    {"zb-1p", 1},
    {"zb-2p", 1},
    {"zb-v", 2},
    {"v-half", 2},
    {"v-min", 2},
    {"optpipe", 1},
    {"optpipe:memory-limit=16", 1},
};
// clang-format on

// Returns costs that differ enough that the gaps of an automatic order have no
// common divisor.
schedules::PassCosts BlockCosts() {
  schedules::StagePassCosts block;
  block.forward = 10.402;
  block.backward_input = 10.248;
  block.backward_weight = 7.698;
  block.offload = 20;
  block.activation = 34 * 6144 + 5 * 48 * 1024;
  block.weight_gradient_inputs = 32 * 6144;
  schedules::PassCosts costs;
  costs.stages = {block};
  costs.hop = 0.46;
  return costs;
}

void BM_Generate(benchmark::State& state, const Work& work) {
  schedules::ScheduleSpec spec = {.num_ranks = kRanks,
                                  .num_microbatches = kMicrobatches,
                                  .num_chunks = work.num_chunks,
                                  .costs = BlockCosts()};
  size_t num_actions = 0;
  for ([[maybe_unused]] auto _ : state) {
    const double begin = CpuSeconds();
    const absl::StatusOr<schedules::Schedule> schedule =
        schedules::GenerateSchedule(work.name, spec);
    const absl::Status status = schedule.ok()
                                    ? schedules::ValidateSchedule(*schedule)
                                    : schedule.status();
    state.SetIterationTime(CpuSeconds() - begin);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      std::abort();
    }
    num_actions = 0;
    for (const auto& actions : schedule->rank_actions) {
      num_actions += actions.size();
    }
  }
  state.counters["actions"] = static_cast<double>(num_actions);
}

const bool kRegistered = [] {
  for (const Work& work : kKinds) {
    benchmark::RegisterBenchmark(
        work.name,
        [&work](benchmark::State& state) { BM_Generate(state, work); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace weir
