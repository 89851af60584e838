// SPDX-License-Identifier: Apache-2.0
// Checks that any bytes give either an error or a file of results that every
// view can show. Text that parses as a textproto of results is tested in its
// binary form.
#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/textproto.h"
#include "results/compare/execution_comparison.h"
#include "results/report/report.h"
#include "results/store.h"
#include "results/trace/trace.h"
#include "results/views/views.h"

namespace {

void CompareBoth(const weir::Result& predicted, const weir::Result& measured) {
  weir::results::PutUnderEachOther("a", predicted, "b", measured)
      .status()
      .IgnoreError();
  const auto compared =
      weir::results::CompareExecution("a", predicted, "b", measured);
  if (!compared.ok()) return;
  weir::results::ExecutionTable(*compared, true);
  weir::results::ExecutionJson(*compared);
  weir::results::ExecutionCsv(*compared);
}

void ShowAll(absl::string_view bytes) {
  const auto results = weir::results::ParseResults("fuzz", bytes);
  if (!results.ok()) return;
  const std::vector<weir::Result> all(results->results().begin(),
                                      results->results().end());
  weir::results::CompareTable(all);
  weir::results::CompareJson("fuzz", all);
  weir::results::CompareCsv(all);
  for (const weir::Result& result : all) {
    weir::results::ResultTable(result);
    weir::results::ResultJson("fuzz", result);
    weir::results::RanksCsv(result);
    weir::results::PerfettoTrace(result).IgnoreError();
    weir::results::ChromeTrace(result).IgnoreError();
  }
  if (all.empty()) return;
  weir::results::ReportData(all).IgnoreError();
  CompareBoth(all.front(), all.back());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  google::protobuf::LogSilencer silencer;
  weir::Results results;
  if (weir::ParseTextProto("fuzz", bytes, &results).ok()) {
    ShowAll(results.SerializeAsString());
  } else {
    ShowAll(bytes);
  }
  return 0;
}
