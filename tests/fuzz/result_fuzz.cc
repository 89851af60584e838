// SPDX-License-Identifier: Apache-2.0
// Any bytes are an error or a file of results that every view can show.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "results/store.h"
#include "results/trace.h"
#include "results/views.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto results = weir::ParseResults(
      "fuzz", absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!results.ok()) return 0;
  const std::vector<weir::Result> all(results->results().begin(),
                                      results->results().end());
  weir::CompareTable(all);
  weir::CompareJson("fuzz", all);
  weir::CompareCsv(all);
  for (const weir::Result& result : all) {
    weir::ResultTable(result);
    weir::ResultJson("fuzz", result);
    weir::RanksCsv(result);
    weir::PerfettoTrace(result).IgnoreError();
    weir::ChromeTrace(result).IgnoreError();
  }
  return 0;
}
