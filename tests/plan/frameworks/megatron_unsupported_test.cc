// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/megatron_unsupported.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace weir::plan::megatron_unsupported_test {

// Arguments of Megatron-LM for models with Mamba and linear attention layers.
TEST(MegatronUnsupportedTest, KnowsFamiliesByTheirPrefix) {
  for (const char* name :
       {"hybrid-override-pattern", "hybrid-attention-ratio", "mamba-state-dim",
        "mamba-num-groups", "linear-attention-freq", "linear-key-head-dim"}) {
    EXPECT_TRUE(IsUnsupportedMegatronArgument(name)) << name;
  }
}

TEST(MegatronUnsupportedTest, KnowsOtherNamesAsAWhole) {
  for (const char* name : {"yaml-cfg", "spec", "external-cuda-graph"}) {
    EXPECT_TRUE(IsUnsupportedMegatronArgument(name)) << name;
    EXPECT_FALSE(IsUnsupportedMegatronArgument(absl::StrCat(name, "-of")));
    EXPECT_FALSE(IsUnsupportedMegatronArgument(absl::StrCat("no-", name)));
  }
  for (const char* name : {"", "hybrid", "is-hybrid", "linear", "log-interval",
                           "num-layers", "save"}) {
    EXPECT_FALSE(IsUnsupportedMegatronArgument(name)) << name;
  }
}

}  // namespace weir::plan::megatron_unsupported_test
