// SPDX-License-Identifier: Apache-2.0
// Plans that the paper gives for two servers with eight V100 (config A), from
// its own profiles. docs/planners.md describes the differences.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <ostream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "models/import/pipedream_graph.h"
#include "models/layer_work.h"
#include "plan/papers/dapple.h"

namespace weir::plan::dapple_published_test {

const std::filesystem::path kGraphs =
    std::filesystem::path(WEIR_SOURCE_DIR) / "results/published/graphs";

// Returns the work on `num_servers` servers of equal size. A microbatch has the
// size that the profile measured.
PlannerWork WorkOf(const std::string& name, int num_microbatches,
                   int num_servers, int devices_per_server) {
  const auto text = ReadFile(kGraphs / name);
  EXPECT_TRUE(text.ok()) << text.status();
  const auto model = models::ParsePipeDreamGraph(name, *text);
  EXPECT_TRUE(model.ok()) << model.status();
  PlannerWork work;
  work.num_microbatches = num_microbatches;
  for (const models::LayerWork& layer : models::LayersOf(*model, {})) {
    PlannerLayer& planned = work.layers.emplace_back();
    planned.forward_seconds = *layer.forward_seconds;
    planned.backward_seconds = *layer.backward_seconds;
    planned.output_bytes = layer.output_bytes;
    planned.activation_bytes = layer.stash_bytes;
    planned.gradient_bytes = layer.parameters * 4;
  }
  const int n = num_servers * devices_per_server;
  for (int i = 0; i < n; ++i) {
    work.devices.push_back({i / devices_per_server, 1, 1e18});
    work.bytes_per_second.emplace_back(n, 1);
  }
  return work;
}

DappleOptions Options(bool paper_length) {
  DappleOptions options;
  options.between_bytes_per_second = 1e9;
  options.between_all_reduce_bytes_per_second = 3e9;
  options.inside_bytes_per_second = 25e9;
  options.paper_length = paper_length;
  return options;
}

// Returns the number of devices of each stage, such as "8:8".
std::string PlanOf(const PlannerWork& work, bool paper_length) {
  const auto plan = PlanDapple(work, Options(paper_length));
  if (!plan.ok()) return std::string(plan.status().message());
  return absl::StrJoin(plan->stages, ":", [](std::string* out, const auto& s) {
    absl::StrAppend(out, s.devices.size());
  });
}

// Returns the smallest length of all two-stage plans whose last stage has
// `last` of sixteen devices, over every cut and placement that the planner
// considers.
double BestOfTwo(const PlannerWork& work, int devices_per_server, int last,
                 bool paper_length) {
  const DappleOptions options = Options(paper_length);
  const std::vector<int> sizes(16 / devices_per_server, devices_per_server);
  double best = HUGE_VAL;
  for (const auto& front :
       DapplePlacements(sizes, std::vector<int>(sizes.size()), 16 - last)) {
    std::vector<PlannedStage> stages(2);
    for (int i = 0; i < 16; ++i) {
      const int server = i / devices_per_server;
      stages[i % devices_per_server < front[server] ? 0 : 1].devices.push_back(
          i);
    }
    const int num_layers = static_cast<int>(work.layers.size());
    for (int cut = 1; cut < num_layers; ++cut) {
      stages[0].end_layer = stages[1].first_layer = cut;
      stages[1].end_layer = num_layers;
      best = std::min(best, DappleSeconds(work, stages, 1, options));
    }
  }
  return best;
}

// Returns the numbers of devices of the two stages of the shortest such plan.
std::string BestTwo(const PlannerWork& work, int devices_per_server,
                    bool paper_length) {
  int best = 1;
  double best_seconds = HUGE_VAL;
  for (int last = 1; last < 16; ++last) {
    const double seconds =
        BestOfTwo(work, devices_per_server, last, paper_length);
    if (seconds >= best_seconds) continue;
    best_seconds = seconds;
    best = last;
  }
  return absl::StrCat(16 - best, ":", best);
}

struct Published {
  const char* profile;
  int num_microbatches;  // the paper's global batch / the profile's
  const char* plan;      // the paper's, config A
  const char* public_length;
  const char* paper_length;
  const char* two_stages;  // shortest with two stages, public length
};
void PrintTo(const Published& published, std::ostream* out) {
  *out << published.profile;
}

// Columns that differ from the paper's have the plan that the formulas give.
constexpr Published kPublished[] = {
    {"dapple-bert-48.txt", 32, "8:8", "8:8", "8:8", "8:8"},
    {"dapple-xlnet-36.txt", 128, "8:8", "8:8", "7:8:1", "8:8"},
    {"dapple-gnmt-16.txt", 16, "8:8", "8:8", "7:2:7", "8:8"},
    {"dapple-amoeba-36.txt", 128, "8:8", "5:5:6", "5:5:6", "8:8"},
    {"dapple-vgg-19.txt", 64, "15:1", "15:1", "15:1", "15:1"},
};

class DapplePublishedTest : public testing::TestWithParam<Published> {};

TEST_P(DapplePublishedTest, PlansForTwoServersOfEight) {
  const Published& published = GetParam();
  const PlannerWork work =
      WorkOf(published.profile, published.num_microbatches, 2, 8);
  EXPECT_EQ(PlanOf(work, false), published.public_length);
  EXPECT_EQ(PlanOf(work, true), published.paper_length);
  EXPECT_EQ(BestTwo(work, 8, false), published.two_stages);
  std::printf("two stages by the paper's length: %s\n",
              BestTwo(work, 8, true).c_str());
}

INSTANTIATE_TEST_SUITE_P(Profiles, DapplePublishedTest,
                         testing::ValuesIn(kPublished));

// The planner also finds VGG-19's 15:1 if every server has one GPU.
TEST(DapplePublishedVggTest, IsFifteenToOneOnSixteenServersOfOne) {
  const PlannerWork work = WorkOf("dapple-vgg-19.txt", 64, 16, 1);
  EXPECT_EQ(PlanOf(work, false), "15:1");
  EXPECT_EQ(PlanOf(work, true), "15:1");
}

// 15:1 is the optimum of the formulas: it is the shortest of all plans with two
// stages, and plain data parallelism is longer.
TEST(DapplePublishedVggTest, IsTheOptimumOfTheFormulas) {
  for (const bool paper_length : {false, true}) {
    for (const auto& [servers, each] : {std::pair(2, 8), std::pair(16, 1)}) {
      const PlannerWork work = WorkOf("dapple-vgg-19.txt", 64, servers, each);
      std::vector<PlannedStage> whole(1);
      whole[0].end_layer = static_cast<int>(work.layers.size());
      for (int i = 0; i < 16; ++i) whole[0].devices.push_back(i);
      const double alone = DappleSeconds(work, whole, 1, Options(paper_length));
      const double best = BestOfTwo(work, each, 1, paper_length);
      std::printf(
          "vgg-19 on %d x %d, %s length: 16 %.6g, 15:1 %.6g, 14:2 %.6g\n",
          servers, each, paper_length ? "paper's" : "public", alone,
          BestOfTwo(work, each, 1, paper_length),
          BestOfTwo(work, each, 2, paper_length));
      EXPECT_LT(best, alone);
      for (int last = 2; last < 16; ++last) {
        EXPECT_LT(best, BestOfTwo(work, each, last, paper_length)) << last;
      }
      EXPECT_DOUBLE_EQ(
          PlanDapple(work, Options(paper_length))->objective_seconds, best);
    }
  }
}

}  // namespace weir::plan::dapple_published_test
