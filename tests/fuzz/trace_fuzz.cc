// SPDX-License-Identifier: Apache-2.0
// Checks that any bytes are either an error or a run whose steps are valid
// results and can be replayed.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "plan/stragglers/what_if.h"
#include "plan/stragglers/what_if_views.h"
#include "results/import/import_trace.h"
#include "results/import/run_result.h"
#include "results/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto run = weir::results::ImportTraceText("fuzz", text);
  if (!run.ok()) return 0;
  const auto steps = weir::results::StepsOf(*run);
  if (steps.empty()) std::abort();
  const weir::Result result =
      weir::results::ResultOfStep(*run, weir::results::MedianStep(steps));
  if (!weir::results::ValidateResult("fuzz", result).ok()) std::abort();
  const auto what_if = weir::plan::AnalyzeRun(*run);
  if (!what_if.ok()) return 0;
  if (!std::isfinite(what_if->slowdown)) std::abort();
  weir::plan::WhatIfTable(*run, *what_if);
  weir::plan::WhatIfJson(*run, *what_if);
  return 0;
}
