// SPDX-License-Identifier: Apache-2.0
// Result files: valid, with single invalid fields, or with single damaged
// bytes. They either give an error, or results that every view renders and that
// are stored unchanged.
#include <google/protobuf/stubs/logging.h>

#include <nlohmann/json.hpp>

#include "base/csv.h"
#include "results/compare/execution_comparison.h"
#include "results/store.h"
#include "results/trace/trace.h"
#include "results/views/views.h"
#include "tests/fuzz/generate_message.h"
#include "tests/fuzz/generate_result.h"
#include "tests/fuzz/target.h"

namespace weir::fuzz {
namespace {

void CheckJson(const std::string& json) {
  REQUIRE_THAT(nlohmann::json::accept(json), json);
}

void CheckCsv(const std::string& csv) {
  REQUIRE_THAT(ReadCsv("fuzz", csv).ok(), csv);
}

void ViewOne(const Result& result, Choices* choices) {
  switch (choices->Int(0, 3)) {
    case 0:
      return CheckJson(results::ResultJson("fuzz", result));
    case 1:
      return CheckCsv(results::RanksCsv(result));
    default:
      REQUIRE(!results::ResultTable(result).empty());
  }
}

void ViewAll(const std::vector<Result>& results, Choices* choices) {
  switch (choices->Int(0, 4)) {
    case 0:
      return CheckJson(results::CompareJson("fuzz", results));
    case 1:
      return CheckCsv(results::CompareCsv(results));
    case 2:
      REQUIRE(!results::CompareTable(results).empty());
      return;
    default:
      break;
  }
  const auto compared =
      results::CompareExecution("a", results.front(), "b", results.back());
  if (!compared.ok()) return;
  REQUIRE(!results::ExecutionTable(*compared, true).empty());
  CheckJson(results::ExecutionJson(*compared));
  CheckCsv(results::ExecutionCsv(*compared));
}

}  // namespace

bool RunInput(Choices* choices) {
  Results results;
  for (int left = choices->Of<int>({1, 1, 1, 2, 3}); left > 0; --left) {
    *results.add_results() = GenerateResult(choices);
  }
  if (choices->OneIn(6)) SpoilMessage(&results, choices);
  std::string bytes;
  {
    google::protobuf::LogSilencer silencer;
    bytes = results.SerializeAsString();
    if (choices->OneIn(12)) bytes = Damage(std::move(bytes), choices);
  }
  const auto read = results::ParseResults("fuzz", bytes);
  if (!read.ok()) {
    REQUIRE(absl::IsInvalidArgument(read.status()) &&
            !read.status().message().empty());
    return false;
  }
  const std::string again = read->SerializeAsString();
  const auto same = results::ParseResults("again", again);
  REQUIRE_OK(same);
  REQUIRE(same->SerializeAsString() == again);
  const std::vector<Result> all(read->results().begin(), read->results().end());
  ViewOne(choices->Of(all), choices);
  ViewAll(all, choices);
  return true;
}

}  // namespace weir::fuzz
