// SPDX-License-Identifier: Apache-2.0
// Compares with the published analyses of two real jobs, ByteDance's ST and AR
// (github.com/ByteDance-Seed/StragglerAnalysis, commit 8efcd7f), whose traces
// are in the folder stragglers of $WEIR_DATA.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plan/stragglers/what_if.h"
#include "results/import/import_trace.h"

namespace weir::plan::published_runs_test {
namespace {

using nlohmann::json;

std::string Folder() {
  const char* data = std::getenv("WEIR_DATA");
  return data == nullptr ? "" : absl::StrCat(data, "/stragglers");
}

json ReadJson(const std::string& path) {
  std::ifstream stream(path);
  return json::parse(stream);
}

// Names without numbers, largest first, as in the published file.
std::vector<std::string> PublishedOrder(const json& values) {
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [name, value] : values.items()) {
    sorted.emplace_back(-value.get<double>(), name);
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> names;
  for (const auto& [value, name] : sorted) names.push_back(name);
  return names;
}

std::vector<std::string> OrderOf(const std::vector<Share>& shares) {
  std::vector<std::string> names;
  for (const Share& share : shares) {
    names.push_back(share.name.substr(share.name.rfind(' ') + 1));
  }
  return names;
}

class PublishedRunsTest : public testing::TestWithParam<const char*> {};

TEST_P(PublishedRunsTest, TheAnalysisIsThePublishedOne) {
  if (Folder().empty() || !std::filesystem::is_directory(Folder())) {
    GTEST_SKIP() << "needs the folder stragglers in $WEIR_DATA";
  }
  const std::string name = GetParam();
  const json published =
      ReadJson(absl::StrCat(Folder(), "/result-", name, ".json"));
  for (const char* file : {"trace-$.csv.gz", "timeline-$.json.gz"}) {
    std::string path = absl::StrCat(Folder(), "/", file);
    path.replace(path.find('$'), 1, name);
    SCOPED_TRACE(path);
    const auto run = results::ImportTrace({path});
    ASSERT_TRUE(run.ok()) << run.status();
    const auto what_if = AnalyzeRun(*run);
    ASSERT_TRUE(what_if.ok()) << what_if.status();
    ASSERT_EQ(what_if->steps.size(), published["step_t_base"].size());
    for (const StepWhatIf& step : what_if->steps) {
      const std::string key = absl::StrCat(step.step);
      const double base = published["step_t_base"][key];
      EXPECT_NEAR(step.recorded_seconds, base, 1e-3 * base);
      EXPECT_NEAR(step.replayed_seconds, base, 0.025 * base);
      EXPECT_NEAR(step.replayed_seconds,
                  published["step_t_nodelay"][key].get<double>(), 1e-3 * base);
      EXPECT_NEAR(step.ideal_seconds,
                  published["step_t_noblk"][key].get<double>(), 1e-3 * base);
    }
    EXPECT_NEAR(what_if->replayed_seconds, what_if->recorded_seconds,
                0.02 * what_if->recorded_seconds);
    EXPECT_NEAR(what_if->with_gaps_seconds, what_if->recorded_seconds,
                0.001 * what_if->recorded_seconds);
    EXPECT_NEAR(what_if->slowdown, published["blocking_slowdown"].get<double>(),
                1e-3);
    EXPECT_EQ(OrderOf(what_if->by_stage),
              PublishedOrder(published["blocking_decompose_by_stage"]));
    EXPECT_EQ(OrderOf(what_if->by_replica),
              PublishedOrder(published["blocking_decompose_by_dp_rank"]));
    const json mw = ReadJson(absl::StrCat(Folder(), "/mw-", name, ".json"));
    const json ms = ReadJson(absl::StrCat(Folder(), "/ms-", name, ".json"));
    EXPECT_NEAR(what_if->slowest_workers.share, mw["Mw"].get<double>(), 0.005);
    EXPECT_NEAR(what_if->last_stage.share, ms["Ms"].get<double>(), 0.005);
    // Slowdowns by kind, under the names of the published file.
    const std::vector<std::pair<std::string, std::string>> kKinds = {
        {"forward", "forward-compute"},
        {"backward", "backward-compute"},
        {"forward transfer", "forward-pp-comm"},
        {"backward transfer", "backward-pp-comm"},
        {"weight gather", "params-all-gather"},
        {"gradient reduction", "grads-reduce-scatter"},
        {"norm reduction", "layernorm-grads-all-reduce"},
        {"tied reduction", "embedding-grads-all-reduce"},
        {"gradient clip", "optimizer-clip-main-grad"},
        {"optimizer step", "optimizer"},
        {"garbage collection", "gc"}};
    for (const auto& [ours, theirs] : kKinds) {
      for (const Share& share : what_if->by_kind) {
        if (share.name != ours) continue;
        EXPECT_NEAR(
            share.slowdown,
            published["blocking_decompose_by_optype"][theirs].get<double>(),
            1e-3)
            << ours;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, PublishedRunsTest, testing::Values("ST", "AR"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace weir::plan::published_runs_test
