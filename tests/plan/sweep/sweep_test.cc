// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/textproto.h"
#include "plan/sweep/fields.h"
#include "plan/sweep/short_names.h"

namespace weir::plan::sweep_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

Sweep Parse(absl::string_view text) {
  Sweep sweep;
  const absl::Status status = ParseTextProto("test", text, &sweep);
  EXPECT_TRUE(status.ok()) << status;
  return sweep;
}

ResolvedSweep Resolve(absl::string_view text) {
  const auto resolved = ResolveSweep("test", Parse(text));
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  return resolved.value_or(ResolvedSweep{});
}

std::string ErrorOf(absl::string_view text) {
  return std::string(ResolveSweep("test", Parse(text)).status().message());
}

// Returns the points as text, such as "2 gpipe; 2 1f1b; ...".
std::string Values(const ResolvedSweep& sweep) {
  std::vector<std::string> points;
  for (uint32_t point = 0; point < sweep.num_points; ++point) {
    std::vector<std::string> values;
    for (const auto& setting : SettingsOf(sweep, point)) {
      values.push_back(setting.second);
    }
    points.push_back(absl::StrJoin(values, " "));
  }
  return absl::StrJoin(points, "; ");
}

TEST(SweepTest, AGridIsTheProductOfItsAxesTheLastFastest) {
  const ResolvedSweep sweep = Resolve(R"(
    base: "given-costs-1f1b"
    axes { field: "parallelism.pipeline" values: ["2", "4"] }
    axes { field: "schedule" values: ["gpipe", "1f1b", "zb-h1"] }
  )");
  EXPECT_EQ(sweep.num_points, 6);
  EXPECT_EQ(Values(sweep),
            "2 gpipe; 2 1f1b; 2 zb-h1; 4 gpipe; 4 1f1b; 4 zb-h1");
  const Scenario scenario = ScenarioOfPoint(sweep, 3);
  EXPECT_EQ(scenario.parallelism().pipeline(), 4);
  EXPECT_EQ(scenario.schedule(), "gpipe");
  EXPECT_EQ(scenario.num_microbatches(), 8);  // the base's
}

TEST(SweepTest, EveryPointIsCombinedWithTheAxes) {
  const ResolvedSweep sweep = Resolve(R"(
    points { set: "parallelism.pipeline=2" set: "parallelism.chunks=1" }
    points { set: "schedule=pipedream:vertical-sync=no" }
    axes { field: "num_microbatches" values: ["4", "8"] }
  )");
  EXPECT_THAT(sweep.fields,
              ElementsAre("parallelism.pipeline", "parallelism.chunks",
                          "schedule", "num_microbatches"));
  EXPECT_EQ(sweep.num_points, 4);
  EXPECT_THAT(SettingsOf(sweep, 1),
              ElementsAre(Pair("parallelism.pipeline", "2"),
                          Pair("parallelism.chunks", "1"),
                          Pair("num_microbatches", "8")));
  EXPECT_THAT(SettingsOf(sweep, 2),
              ElementsAre(Pair("schedule", "pipedream:vertical-sync=no"),
                          Pair("num_microbatches", "4")));
}

TEST(SweepTest, ATableOfPointsLeavesFieldsOfEmptyCellsAsTheyAre) {
  const std::string path = absl::StrCat(testing::TempDir(), "points.csv");
  ASSERT_TRUE(
      WriteFile(path, "schedule,parallelism.pipeline\ngpipe,2\n,4\n").ok());
  const ResolvedSweep sweep = Resolve(absl::StrCat("points_csv: '", path, "'"));
  EXPECT_EQ(Values(sweep), "gpipe 2; 4");
  // The resolved sweep contains the points themselves.
  EXPECT_EQ(sweep.sweep.points_csv(), "");
  ASSERT_TRUE(WriteFile(path, "shedule,parallelism.pipeline\ngpipe,x\n").ok());
  EXPECT_THAT(ErrorOf(absl::StrCat("points_csv: '", path, "'")),
              AllOf(HasSubstr(absl::StrCat(path,
                                           ": points[0]: shedule is not "
                                           "a field")),
                    HasSubstr("did you mean schedule?"),
                    HasSubstr("parallelism.pipeline is \"x\"")));
}

TEST(SweepTest, RangesAreSpelledOut) {
  const auto expand = [](absl::string_view field, absl::string_view range) {
    return Values(Resolve(
        absl::StrCat("axes { field: '", field, "' values: '", range, "' }")));
  };
  EXPECT_EQ(expand("num_microbatches", "1..4"), "1; 2; 3; 4");
  EXPECT_EQ(expand("num_microbatches", "1..8+3"), "1; 4; 7");
  EXPECT_EQ(expand("num_microbatches", "2..64*2"), "2; 4; 8; 16; 32; 64");
  EXPECT_EQ(expand("costs.hop_seconds", "0..0.3+0.1"), "0; 0.1; 0.2; 0.3");
  EXPECT_EQ(expand("schedule", "a..b"), "a..b");
  for (const char* bad :
       {"4..1", "1..4+0", "1..4*1", "0..4*2", "1..x", "1.."}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("axes { field: 'num_nodes' values: '", bad,
                                     "' }")),
                HasSubstr("expected A..B"))
        << bad;
  }
}

TEST(SweepTest, AllThatIsWrongIsSaidAtOnce) {
  EXPECT_EQ(ErrorOf(R"(
              axes { field: "paralelism.tensor" values: "1" }
              axes { field: "num_nodes" values: ["1", "two", "1"] }
              axes { field: "num_nodes" values: "1" }
              axes { field: "num_batches" }
              points { set: "schedule" }
              points { set: "schedule=a" set: "schedule=b" }
            )"),
            "test: points[0]: schedule has no value, expected FIELD=VALUE\n"
            "test: points[1]: schedule is set twice\n"
            "test: paralelism.tensor is not a field of Scenario; did you mean "
            "parallelism.tensor?\n"
            "test: num_nodes is \"two\", expected a whole number from 0 to "
            "2147483647\n"
            "test: num_nodes has 1 twice\n"
            "test: num_nodes is swept twice\n"
            "test: num_batches has no values");
  EXPECT_THAT(ErrorOf("name: 'x'"), HasSubstr("has nothing to sweep"));
  EXPECT_THAT(ErrorOf("axes { field: 'num_nodes' values: '1..100000' } "
                      "axes { field: 'num_batches' values: '1..100000' }"),
              HasSubstr("1e+10 points"));
}

TEST(SweepTest, AGridOfTheCommandLine) {
  const auto axes =
      ParseGrid("parallelism.pipeline=2,4,schedule=1f1b,pipedream:replicas=2");
  ASSERT_TRUE(axes.ok());
  ASSERT_EQ(axes->size(), 2);
  EXPECT_THAT((*axes)[0].values(), ElementsAre("2", "4"));
  EXPECT_THAT((*axes)[1].values(), ElementsAre("1f1b", "pipedream:replicas=2"));
  EXPECT_FALSE(ParseGrid("2,4").ok());
}

TEST(SweepTest, NamesOfFlagsAreFields) {
  const auto axes = ParseGrid("tp=2,4,mbs=1");
  ASSERT_TRUE(axes.ok());
  ASSERT_EQ(axes->size(), 2);
  EXPECT_EQ((*axes)[0].field(), "parallelism.tensor");
  EXPECT_EQ((*axes)[1].field(), "batch.microbatch_size");
  EXPECT_EQ(ShortField("parallelism.tensor"), "tp");
  EXPECT_EQ(ShortField("parallelism.chunks"), "chunks");
  EXPECT_EQ(LongField("vpp"), "parallelism.chunks");
  EXPECT_EQ(LongField("name"), "name");
  const ResolvedSweep sweep = Resolve(R"(
    base: "given-costs-1f1b" points { set: "pp=2" set: "num_batches=1" }
    axes { field: "chunks" values: "1" })");
  EXPECT_THAT(sweep.fields, ElementsAre("parallelism.pipeline", "num_batches",
                                        "parallelism.chunks"));
}

// Every short name leads to a field of a scenario.
TEST(SweepTest, ShortNamesLeadToFields) {
  for (const ShortName& name : ShortNames()) {
    EXPECT_EQ(LongField(name.name), name.path);
    EXPECT_TRUE(FindField(*Scenario::descriptor(), name.path).ok())
        << name.name;
  }
  EXPECT_EQ(LongField("lora_rank"), "training.lora.rank");
}

// Values of the new fields are spelled like those of their flags.
TEST(SweepTest, ValuesAreSpelledLikeThoseOfFlags) {
  const auto set = [](absl::string_view name, absl::string_view value) {
    Scenario scenario;
    const absl::Status status = SetField(LongField(name), value, &scenario);
    EXPECT_TRUE(status.ok()) << status;
    return scenario;
  };
  EXPECT_EQ(set("moe_token_dispatcher_type", "flex")
                .communication()
                .token_dispatcher(),
            TOKENS_DEEPEP);
  EXPECT_EQ(set("moe_token_dispatcher_type", "hybridep")
                .communication()
                .token_dispatcher(),
            TOKENS_HYBRID_EP);
  EXPECT_EQ(set("vocabulary_parallel", "one-barrier")
                .parallelism()
                .vocabulary_parallel(),
            VOCABULARY_ONE_BARRIER);
  EXPECT_EQ(
      set("vocabulary_parallel", "none").parallelism().vocabulary_parallel(),
      VOCABULARY_NOT_SHARDED);
  EXPECT_EQ(set("optimizer", "dist_muon").training().optimizer(), DIST_MUON);
  EXPECT_EQ(set("dispatch_format", "fp8").training().dispatch_format(),
            OPERAND_FP8);
  EXPECT_EQ(set("packed_sequences", "2k").batch().packed_sequences().fixed(),
            2048);
  EXPECT_EQ(set("packed_sequences", "uniform:1-9")
                .batch()
                .packed_sequences()
                .uniform()
                .longest(),
            9);
  EXPECT_EQ(set("lora_target_modules", "linear_qkv/linear_fc1")
                .training()
                .lora()
                .target_modules_size(),
            2);
}

TEST(SweepTest, TheResolvedSweepAloneSaysWhatIsSwept) {
  const ResolvedSweep sweep = Resolve(R"(
    base: "given-costs-1f1b"
    axes { field: "parallelism.pipeline" values: "2..4" }
  )");
  const ResolvedSweep again = Resolve(PrintTextProto(sweep.sweep));
  EXPECT_EQ(PrintTextProto(again.sweep), PrintTextProto(sweep.sweep));
  EXPECT_EQ(again.sweep.base(), "");
  EXPECT_TRUE(CheckSameSweep(HeadOf(sweep), HeadOf(again)).ok());
}

TEST(SweepTest, ReplicasOfTheBaseAreDroppedWithItsSizes) {
  const auto replicas = [](absl::string_view text) {
    return ScenarioOfPoint(
               Resolve(absl::StrCat("base: 'llama-3-70b-64-h100' ", text)), 0)
        .parallelism()
        .data();
  };
  EXPECT_EQ(replicas("axes { field: 'tp' values: '4' }"), 0);
  EXPECT_EQ(replicas("axes { field: 'schedule' values: '1f1b' }"), 2);
  EXPECT_EQ(replicas("axes { field: 'tp' values: '4' } "
                     "scenario { parallelism { data: 1 } }"),
            1);
}

TEST(SweepTest, WhatChangedIsNamed) {
  const std::string path = absl::StrCat(testing::TempDir(), "model.textproto");
  const auto head = [&](absl::string_view values) {
    return HeadOf(Resolve(
        absl::StrCat("axes { field: 'num_nodes' values: [", values,
                     "] } axes { field: 'model' values: '", path, "' }")));
  };
  ASSERT_TRUE(WriteFile(path, "one").ok());
  const SweepHead before = head("'1', '2'");
  EXPECT_THAT(std::string(CheckSameSweep(before, head("'1', '3'")).message()),
              AllOf(HasSubstr("axes[0].values[1]: \"2\" -> \"3\""),
                    Not(HasSubstr("model"))));
  ASSERT_TRUE(WriteFile(path, "two").ok());
  EXPECT_EQ(CheckSameSweep(before, head("'1', '2'")).message(),
            absl::StrCat("  contents of ", path));
  ASSERT_TRUE(WriteFile(path, "one").ok());
  SweepHead other = head("'1', '2'");
  other.set_git_revision("other");
  EXPECT_THAT(std::string(CheckSameSweep(before, other).message()),
              HasSubstr("(git other)"));
}

}  // namespace weir::plan::sweep_test
