// SPDX-License-Identifier: Apache-2.0
// Generates a schedule, lints it under every runtime, and reads its file: 64
// ranks, 1,024 microbatches, four stages per rank (524,288 passes, 1.57 million
// actions with transfers). The target is one second for generating and linting.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "schedules/interop/lower.h"
#include "schedules/interop/schedule_text.h"
#include "schedules/lint/lint.h"
#include "schedules/registry.h"
#include "tests/bench/cpu_time.h"

namespace weir {
namespace {

schedules::Schedule Large(absl::string_view name, int chunks) {
  absl::StatusOr<schedules::Schedule> schedule =
      schedules::GenerateSchedule(name, {64, 1024, chunks});
  if (!schedule.ok()) std::abort();
  return *std::move(schedule);
}

constexpr schedules::LintOptions kAll = {
    .rendezvous = true, .pytorch = true, .megatron = true};

void GenerateAndLint(benchmark::State& state, absl::string_view name,
                     int chunks) {
  for ([[maybe_unused]] auto _ : state) {
    const schedules::LintReport report =
        schedules::LintSchedule(Large(name, chunks), kAll);
    benchmark::DoNotOptimize(report.findings.data());
  }
  state.counters["peak_MiB"] = PeakMebibytes();
}
BENCHMARK_CAPTURE(GenerateAndLint, interleaved, "interleaved-1f1b", 4)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GenerateAndLint, interleaved_zb, "interleaved-zb", 4)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GenerateAndLint, breadth_first, "breadth-first", 4)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GenerateAndLint, hanayo, "hanayo", 4)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GenerateAndLint, bitpipe, "bitpipe", 4)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GenerateAndLint, one_f_one_b, "1f1b", 1)
    ->Unit(benchmark::kMillisecond);

void Lower(benchmark::State& state) {
  const schedules::Schedule schedule = Large("interleaved-1f1b", 4);
  for ([[maybe_unused]] auto _ : state) {
    if (!schedules::LowerSchedule(schedule, {}).ok()) std::abort();
  }
}
BENCHMARK(Lower)->Unit(benchmark::kMillisecond);

void LintLoweredFile(benchmark::State& state) {
  const std::string text = schedules::PrintCsv(
      *schedules::LowerSchedule(Large("interleaved-1f1b", 4), {}));
  for ([[maybe_unused]] auto _ : state) {
    absl::StatusOr<schedules::ScheduleRows> rows =
        schedules::ParseScheduleRows("bench", text);
    if (!rows.ok() || !schedules::LintRows(*rows, {}).ok()) std::abort();
  }
  state.SetBytesProcessed(state.iterations() * text.size());
}
BENCHMARK(LintLoweredFile)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weir
