// SPDX-License-Identifier: Apache-2.0
#include "scenarios/describe_scenario.h"

#include <gtest/gtest.h>

#include "tests/scenarios/small_scenarios.h"

namespace weir::scenarios::describe_scenario_test {

TEST(DescribeSizesTest, NamesOnlyTheSizesThatAreSet) {
  EXPECT_EQ(DescribeSizes(Scenario()), "");
  EXPECT_EQ(DescribeSizes(Small()), "pp 4, dp 2, mbs 2, gbs 32");
  EXPECT_EQ(DescribeSizes(Parse(R"(
                transformer { num_layers: 24 hidden_size: 1024 }
                parallelism { tensor: 2 pipeline: 4 data: 1 }
                batch { sequence_length: 512 microbatch_size: 4
                        global_batch_size: 32 })")),
            "layers 24, hidden 1024, seq 512, tp 2, pp 4, dp 1, mbs 4, gbs 32");
}

}  // namespace weir::scenarios::describe_scenario_test
