// SPDX-License-Identifier: Apache-2.0
// Tests "weir explain" from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::explain_test {

using Json = nlohmann::json;
using testing::HasSubstr;

constexpr char kRun[] =
    "explain pipedream-flush-gpt-2.2b --gbs 16 --dp 1 --nodes 8 ";

TEST(ExplainCommandTest, PartsAddUpAndFiguresCoverTheTime) {
  const ProgramRun run = RunWeir(std::string(kRun) + "--format json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json result = Json::parse(run.out)["result"];
  double sum = 0;
  for (const Json& part : result["parts"]) sum += part["seconds"].get<double>();
  const double seconds = result["batch_seconds"];
  EXPECT_NEAR(sum, seconds, 1e-9 * seconds);
  // By Euler's theorem, the elasticities to seconds minus those to rates add up
  // to 1, up to the error of finite differences.
  double whole = 0;
  double last = INFINITY;
  for (const Json& figure : result["parameters"]) {
    const std::string path = figure["path"];
    const double elasticity = figure["elasticity"];
    EXPECT_LE(std::abs(elasticity), last) << path;
    last = std::abs(elasticity);
    if (absl::StrContains(path, "per_second") ||
        absl::EndsWith(path, "peak_flops")) {
      whole -= elasticity;
    } else if (absl::EndsWith(path, "_seconds")) {
      whole += elasticity;
    }
  }
  EXPECT_NEAR(whole, 1, 0.01);
}

TEST(ExplainCommandTest, TheTableNamesFiguresKindsAndParts) {
  const ProgramRun run = RunWeir(std::string(kRun) + "--jobs 2");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("feed_forward_gemm"));
  EXPECT_THAT(run.out, HasSubstr("gemm.matrix_rate"));
  EXPECT_THAT(run.out, HasSubstr("others have no influence"));
  EXPECT_THAT(run.out, HasSubstr("datasheet"));
}

TEST(ExplainCommandTest, CostsByHandRestOnNothing) {
  const ProgramRun run = RunWeir(
      "explain --schedule gpipe --costs f=1,b=2 --pp 2 --microbatches 2");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("use no parameters"));
}

}  // namespace weir::cli::explain_test
