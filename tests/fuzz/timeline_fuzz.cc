// SPDX-License-Identifier: Apache-2.0
// Checks that any text is either an error or a valid timeline with idle causes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "results/compare/idle_causes.h"
#include "results/compare/measured_timeline.h"
#include "results/pipeline_events.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto result = weir::results::ReadMeasuredTimeline("fuzz", text);
  if (!result.ok()) return 0;
  const auto events = weir::results::PipelineEventsOf("fuzz", *result);
  if (!events.ok()) std::abort();
  weir::results::FindIdleCauses(*events);
  weir::results::FindClockErrors(*events);
  return 0;
}
