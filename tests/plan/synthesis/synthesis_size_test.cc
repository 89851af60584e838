// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/synthesis_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::plan::synthesis_size_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

OrderProblem Problem(int num_ranks, int num_microbatches) {
  return {.num_ranks = num_ranks, .num_microbatches = num_microbatches};
}

TEST(SynthesisSizeTest, GrowsWithPassesAndMoves) {
  const SynthesisOptions options = {.method = SynthesisMethod::kLocal};
  const SizeEstimate small = EstimateSynthesis(Problem(32, 1000), options);
  const SizeEstimate large = EstimateSynthesis(Problem(32, 4000), options);
  // From some size on, the number of moves per run is constant.
  EXPECT_DOUBLE_EQ(large.bytes, 4 * small.bytes);
  EXPECT_DOUBLE_EQ(large.seconds, 4 * small.seconds);
  EXPECT_GT(EstimateSynthesis(Problem(4, 8), {.method = SynthesisMethod::kLocal,
                                              .num_moves = 2'000'000})
                .seconds,
            EstimateSynthesis(Problem(4, 8), options).seconds);
}

TEST(SynthesisSizeTest, LargeRequestsAreRefusedWithAnEstimate) {
  const auto refused = Synthesize(Problem(256, 100'000));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(refused.status().message()),
      AllOf(HasSubstr("is too large: 7.68e+07 passes and 3000 moves"),
            HasSubstr("need about"), HasSubstr(" hours, expected at most"),
            HasSubstr("fewer microbatches, ranks, chunks or --moves")));
}

TEST(SynthesisSizeTest, LimitsOfTheEnvironmentHold) {
  const ScopedSizeLimits limits({1e12, 1e-6});
  EXPECT_EQ(Synthesize(Problem(2, 2)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace weir::plan::synthesis_size_test
