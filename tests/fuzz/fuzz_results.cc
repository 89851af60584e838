// SPDX-License-Identifier: Apache-2.0
// Files of results, sound, spoilt in single fields and damaged in single bytes:
// an error, or results that every view renders and that are stored the same.
#include <google/protobuf/stubs/logging.h>

#include <nlohmann/json.hpp>

#include "base/csv.h"
#include "results/replay_comparison.h"
#include "results/store.h"
#include "results/trace.h"
#include "results/views.h"
#include "tests/fuzz/generate_message.h"
#include "tests/fuzz/generate_result.h"
#include "tests/fuzz/target.h"

namespace weir {
namespace {

void ViewEach(const Result& result) {
  REQUIRE(!ResultTable(result).empty());
  REQUIRE_THAT(nlohmann::json::accept(ResultJson("fuzz", result)),
               ResultJson("fuzz", result));
  REQUIRE_THAT(ReadCsv("ranks", RanksCsv(result)).ok(), RanksCsv(result));
}

void ViewAll(const std::vector<Result>& results) {
  REQUIRE(!CompareTable(results).empty());
  REQUIRE_THAT(nlohmann::json::accept(CompareJson("fuzz", results)),
               CompareJson("fuzz", results));
  REQUIRE_THAT(ReadCsv("results", CompareCsv(results)).ok(),
               CompareCsv(results));
  const auto compared =
      CompareReplay("a", results.front(), "b", results.back());
  if (!compared.ok()) return;
  REQUIRE(!ReplayTable(*compared, true).empty());
  REQUIRE_THAT(nlohmann::json::accept(ReplayJson(*compared)),
               ReplayJson(*compared));
  REQUIRE_THAT(ReadCsv("replay", ReplayCsv(*compared)).ok(),
               ReplayCsv(*compared));
}

}  // namespace

bool RunInput(Choices* choices) {
  Results results;
  for (int left = choices->Int(1, 3); left > 0; --left) {
    *results.add_results() = GenerateResult(choices);
  }
  if (choices->OneIn(6)) SpoilMessage(&results, choices);
  std::string bytes;
  {
    google::protobuf::LogSilencer silencer;
    bytes = results.SerializeAsString();
    if (choices->OneIn(12)) bytes = Damage(std::move(bytes), choices);
  }
  const auto read = ParseResults("fuzz", bytes);
  if (!read.ok()) {
    REQUIRE(absl::IsInvalidArgument(read.status()) &&
            !read.status().message().empty());
    return false;
  }
  const std::string again = read->SerializeAsString();
  const auto same = ParseResults("again", again);
  REQUIRE_OK(same);
  REQUIRE(same->SerializeAsString() == again);
  const std::vector<Result> all(read->results().begin(),
                                read->results().end());
  for (const Result& result : all) ViewEach(result);
  ViewAll(all);
  return true;
}

}  // namespace weir
