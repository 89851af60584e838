// SPDX-License-Identifier: Apache-2.0
// Parses any bytes as each file of a training framework. Errors are returned as
// Status and name the file; what is read can be reported.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/match.h"
#include "plan/frameworks/imported_run.h"

namespace weir::fuzz {
namespace {

void Check(const absl::StatusOr<plan::ImportedRun>& run) {
  if (!run.ok()) {
    if (!absl::StartsWith(run.status().message(), "fuzz")) std::abort();
    return;
  }
  if (plan::SummaryOf(run->report).empty() ||
      plan::LinesOf(run->report).empty() ||
      !plan::JsonOf(run->report).is_object()) {
    std::abort();
  }
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const weir::plan::ImportContext context{.num_gpus = 64, .left_out = {}};
  weir::fuzz::Check(weir::plan::ReadMegatronArguments("fuzz", text, context));
  weir::fuzz::Check(weir::plan::ReadSlurmScript("fuzz", text, context));
  weir::fuzz::Check(weir::plan::ReadNemoSettings("fuzz", text, context));
  weir::fuzz::Check(weir::plan::ReadTorchtitanJob("fuzz", text, context));
  weir::fuzz::Check(weir::plan::ReadDeepSpeedConfig("fuzz", text, context, {}));
  return 0;
}
