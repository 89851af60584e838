// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/assets.h"
#include "plan/frameworks/megatron_argument_table.h"
#include "plan/frameworks/nemo_keys.h"

namespace weir::plan::option_table_test {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kTables[] = {"deepspeed", "megatron-lm", "nemo",
                                   "torchtitan"};

TEST(OptionTableTest, EveryTableNamesVersionAndSource) {
  EXPECT_THAT(ListAssets("plan/frameworks/tables"),
              testing::ElementsAreArray(kTables));
  for (const char* name : kTables) {
    const FrameworkTable& table = OptionTable::Of(name).table();
    EXPECT_FALSE(table.framework().empty()) << name;
    EXPECT_FALSE(table.version().empty()) << name;
    EXPECT_FALSE(table.source().empty()) << name;
    std::set<std::string> names;
    for (const OptionGroup& group : table.groups()) {
      EXPECT_NE(group.effect(), OPTION_EFFECT_UNSPECIFIED);
      EXPECT_EQ(group.subject().empty(), group.effect() == OPTION_READ);
      for (const std::string& option : group.names()) {
        EXPECT_TRUE(names.insert(option).second) << name << ": " << option;
      }
    }
  }
}

// What the table calls read is read, and nothing else.
TEST(OptionTableTest, AgreesWithTheReaders) {
  const OptionTable& megatron = OptionTable::Of("megatron-lm");
  for (const auto& [name, argument] : MegatronArgumentTable()) {
    const OptionGroup* group = megatron.Find(name);
    ASSERT_NE(group, nullptr) << name;
    EXPECT_EQ(group->effect(), OPTION_READ) << name;
    EXPECT_EQ(group->type() != OPTION_SWITCH, argument.has_value) << name;
  }
  for (const OptionGroup& group : megatron.table().groups()) {
    if (group.effect() != OPTION_READ) continue;
    for (const std::string& name : group.names()) {
      EXPECT_TRUE(MegatronArgumentTable().contains(name)) << name;
    }
  }
  for (const NemoKey& key : NemoKeys()) {
    const OptionGroup* group = OptionTable::Of("nemo").Find(key.key);
    ASSERT_NE(group, nullptr) << key.key;
    EXPECT_EQ(group->effect(), OPTION_READ) << key.key;
    EXPECT_TRUE(MegatronArgumentTable().contains(std::string(key.argument)))
        << key.argument;
  }
}

TEST(OptionTableTest, KnowsFamiliesByTheirPrefix) {
  const OptionTable& table = OptionTable::Of("megatron-lm");
  for (const char* name :
       {"hybrid-override-pattern", "mamba-state-dim", "linear-key-head-dim"}) {
    ASSERT_NE(table.Find(name), nullptr) << name;
    EXPECT_EQ(table.Find(name)->effect(), OPTION_UNSUPPORTED) << name;
  }
  EXPECT_EQ(table.Find("hybrid"), nullptr);
  EXPECT_EQ(table.Find("log-interval")->subject(), "logs");
}

TEST(OptionTableTest, RefusesWhatTheFrameworkWouldRefuse) {
  const OptionTable& table = OptionTable::Of("torchtitan");
  const Setting name{"model.name", "llama3", 0, true};
  const Setting flavor{"model.flavor", "8B", 0, true};
  EXPECT_THAT(table.Refusals({name, flavor}), IsEmpty());
  EXPECT_THAT(table.Refusals({name}), ElementsAre("model.flavor is missing"));
  EXPECT_THAT(
      table.Refusals({name, flavor, {"training.seq_length", "1", 0, true}}),
      ElementsAre("training.seq_length is unknown"));
  EXPECT_THAT(
      table.Refusals({name, flavor, {"training.seq_len", "long", 0, true}}),
      ElementsAre("training.seq_len is long, expected a whole number"));
  EXPECT_THAT(
      table.Refusals({name, flavor, {"training.compile", "true", 0, true}}),
      ElementsAre("training.compile exists only until version mid-2025"));
}

}  // namespace weir::plan::option_table_test
