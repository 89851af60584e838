// SPDX-License-Identifier: Apache-2.0
// The plans that the paper prints for two servers of eight V100 (config A),
// from its own profiles. See plan/papers/README.md for those that differ.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/layer_work.h"
#include "models/pipedream_graph.h"
#include "plan/papers/dapple.h"

namespace weir {
namespace {

const std::filesystem::path kData =
    std::filesystem::path(WEIR_SOURCE_DIR) / "../shared/data/dapple";

// `num_servers` of equal size; a microbatch is what the profile measured.
PlannerWork WorkOf(const std::string& name, int num_microbatches,
                   int num_servers, int devices_per_server) {
  std::ifstream file(kData / name);
  std::stringstream text;
  text << file.rdbuf();
  const auto model = ParsePipeDreamGraph(name, text.str());
  EXPECT_TRUE(model.ok()) << model.status();
  PlannerWork work;
  work.num_microbatches = num_microbatches;
  for (const LayerWork& layer : LayersOf(*model, {})) {
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

// Devices of the stages, "8:8".
std::string PlanOf(const PlannerWork& work, bool paper_length) {
  DappleOptions options;
  options.between_bytes_per_second = 1e9;
  options.between_all_reduce_bytes_per_second = 3e9;
  options.inside_bytes_per_second = 25e9;
  options.paper_length = paper_length;
  const auto plan = PlanDapple(work, options);
  if (!plan.ok()) return std::string(plan.status().message());
  return absl::StrJoin(plan->stages, ":", [](std::string* out, const auto& s) {
    absl::StrAppend(out, s.devices.size());
  });
}

struct Published {
  const char* profile;
  int num_microbatches;  // the paper's global batch / that of the profile
  const char* plan;      // the paper's, config A
  const char* public_length;
  const char* paper_length;
};

// Where a column differs from the paper's, it is what the formulas find.
constexpr Published kPublished[] = {
    {"dapple_bert-48-pbs-2.txt", 32, "8:8", "8:8", "8:8"},
    {"dapple_xlnet-36-pbs-1.txt", 128, "8:8", "8:8", "7:8:1"},
    {"dapple_gnmt-16-pbs-64.txt", 16, "8:8", "8:8", "8:8"},
    {"dapple_amoeba-36-pbs-1.txt", 128, "8:8", "8:8", "8:8"},
    {"dapple_vgg-19-pbs-32.txt", 64, "15:1", "14:2", "14:2"},
};

class DapplePublishedTest : public testing::TestWithParam<Published> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kData / GetParam().profile)) {
      GTEST_SKIP() << "no " << kData / GetParam().profile;
    }
  }
};

TEST_P(DapplePublishedTest, PlansForTwoServersOfEight) {
  const Published& published = GetParam();
  const PlannerWork work =
      WorkOf(published.profile, published.num_microbatches, 2, 8);
  EXPECT_EQ(PlanOf(work, false), published.public_length);
  EXPECT_EQ(PlanOf(work, true), published.paper_length);
}

INSTANTIATE_TEST_SUITE_P(Profiles, DapplePublishedTest,
                         testing::ValuesIn(kPublished), [](const auto& info) {
                           return absl::StrCat("plan", info.index);
                         });

// VGG-19's 15:1 is found where every server has one GPU.
TEST(DapplePublishedVggTest, IsFifteenToOneOnSixteenServersOfOne) {
  const char* const kProfile = "dapple_vgg-19-pbs-32.txt";
  if (!std::filesystem::exists(kData / kProfile)) {
    GTEST_SKIP() << "no " << kData / kProfile;
  }
  const PlannerWork work = WorkOf(kProfile, 64, 16, 1);
  EXPECT_EQ(PlanOf(work, false), "15:1");
  EXPECT_EQ(PlanOf(work, true), "15:1");
}

}  // namespace
}  // namespace weir
