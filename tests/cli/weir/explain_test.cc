// SPDX-License-Identifier: Apache-2.0
// Tests "weir explain" from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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

TEST(ExplainCommandTest, AMeasurementIsComparedAndExplained) {
  const ProgramRun predicted = RunWeir(std::string(kRun) + "--format json");
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  const double seconds = Json::parse(predicted.out)["result"]["batch_seconds"];
  const std::string measured = absl::StrCat(1.1 * seconds);
  const ProgramRun run =
      RunWeir(absl::StrCat(kRun, "--format json --measured ", measured));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json causes = Json::parse(run.out)["result"]["measured"];
  EXPECT_NEAR(causes["error"].get<double>(), 1 / 1.1 - 1, 1e-4);
  EXPECT_TRUE(causes["inside_interval"].get<bool>());
  ASSERT_GT(causes["parameters"].size(), 2);
  EXPECT_GT(causes["insufficient_parameters"].size(), 0);

  // The first cause, set by --set, reproduces the measurement.
  const Json& first = causes["parameters"][0];
  const ProgramRun set = RunWeir(
      absl::StrCat("simulate", std::string(kRun).substr(7),
                   "--format json --set ", first["path"].get<std::string>(),
                   "=", first["explaining_value"].get<double>()));
  ASSERT_EQ(set.exit_code, 0) << set.err;
  EXPECT_NEAR(Json::parse(set.out)["result"]["batch_seconds"].get<double>(),
              1.1 * seconds, 0.006 * seconds);

  const ProgramRun table = RunWeir(absl::StrCat(kRun, "--measured ", measured));
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr(": -9.1 %, inside the 90 % interval"));
  EXPECT_THAT(table.out, HasSubstr("cannot explain it alone: "));
  EXPECT_EQ(RunWeir(absl::StrCat(kRun, "--measured 0")).exit_code, 2);
}

TEST(ExplainCommandTest, CostsByHandRestOnNothing) {
  const ProgramRun run = RunWeir("explain given-costs-1f1b");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("use no parameters"));
  EXPECT_EQ(RunWeir("explain --costs f=1,b=2").exit_code, 2);
}

}  // namespace weir::cli::explain_test
