// SPDX-License-Identifier: Apache-2.0
#include "schedules/lint/lint.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/comm/reorder.h"
#include "schedules/interop/lower.h"
#include "schedules/interop/pytorch_check.h"
#include "schedules/lint/lint_text.h"
#include "schedules/source.h"
#include "tests/schedules/test_schedules.h"

namespace weir::schedules::lint_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ScheduleRows Rows(absl::string_view text) {
  return ParseScheduleRows("a.csv", text).value();
}

LintReport Lint(absl::string_view text, const LintOptions& options = {}) {
  absl::StatusOr<LintReport> report = LintRows(Rows(text), options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *report : LintReport();
}

// Returns findings such as "error deadlock 1:5" and "note rendezvous".
std::vector<std::string> Short(const LintReport& report) {
  std::vector<std::string> findings;
  for (const Finding& finding : report.findings) {
    findings.push_back(absl::StrCat(
        finding.severity == Finding::Severity::kError ? "error " : "note ",
        finding.rule,
        finding.line > 0 ? absl::StrCat(" ", finding.line, ":", finding.column)
                         : ""));
  }
  return findings;
}

struct CorpusCase {
  std::string file;
  std::vector<std::string> findings;
  std::string cycle;       // one of its waits
  std::string reordering;  // of the first finding
};

// The findings for each file as described in tests/schedules/corpus/README.md.
TEST(LintTest, CorpusOfReportedFaults) {
  const std::vector<CorpusCase> cases = {
      {"pytorch_172668_send_send",
       {"error one-stream 1:18"},
       "rank 0 waits at position 3 (0SEND_F1) for 1RECV_F1 at position 3 of "
       "rank 1 to start",
       "move 1RECV_F1 of rank 1 from position 3 to 2, before 1SEND_F0"},
      {"pytorch_172668_swapped",
       {"error one-stream 1:75"},
       "rank 1 waits at position 10 (3SEND_B0) for 2RECV_B0 at position 12 of "
       "rank 0 to start",
       "move 2RECV_B0 of rank 0 from position 12 to 11, before 0SEND_F2"},
      {"torchtitan_2209_early_receive", {"note early-receive 1:32"}, "", ""},
      {"pytorch_188833_front_loaded",
       {"note head-of-line 1:93", "note early-receive 1:14"},
       "",
       ""},
      {"pytorch_127332_criss_cross",
       {"error one-stream 1:18"},
       "rank 1 waits at position 2 (1SEND_F0) for 2RECV_F0 at position 4 of "
       "rank 0 to start",
       "move 1RECV_F1 of rank 1 from position 3 to 2, before 1SEND_F0; then "
       "move 3RECV_F0 of rank 1 from position 6 to 5, before 1SEND_F1; then "
       "move 1RECV_B0 of rank 1 from position 14 to 13, before 3SEND_B1; then "
       "move 1RECV_B1 of rank 1 from position 17 to 16, before 1SEND_B0"},
      {"pytorch_138134_passes",
       {"error deadlock 1:5"},
       "rank 1 waits at position 1 (1F1) for 0F1 at position 2 of rank 0",
       "move 1B0 of rank 1 from position 2 to 1, before 1F1"},
      {"torchtitan_775_few_microbatches",
       {"note pytorch", "note rendezvous"},
       "",
       ""},
      {"megatron_5100_two_ranks", {"note rendezvous", "note megatron"}, "", ""},
      {"llmservingsim_55_sizes",
       {"error size 2:1", "error size 2:5", "error size 2:17",
        "error size 2:21", "note pytorch", "note pytorch"},
       "",
       ""},
      {"two_forwards_per_backward",
       {"error memory 1:85", "note rendezvous"},
       "",
       ""},
      {"unmatched_receive", {"error transfer 1:40"}, "", ""},
      {"crossed_transfers", {"error transfer 1:9"}, "", ""},
      {"idle_between_transfers", {"error idle 1:14"}, "", ""},
      {"compute_on_sharded", {"error sharding 2:32"}, "", ""},
      {"gradient_reduced_early", {"error gradient 1:27"}, "", ""},
      {"replicated_stage", {"error placement", "note pytorch"}, "", ""},
      {"no_backward_of_one", {"error completeness", "note pytorch"}, "", ""},
  };
  for (const CorpusCase& one : cases) {
    absl::StatusOr<ScheduleRows> rows = ReadScheduleRows(absl::StrCat(
        WEIR_SOURCE_DIR, "/tests/schedules/corpus/", one.file, ".csv"));
    ASSERT_TRUE(rows.ok()) << rows.status();
    absl::StatusOr<LintReport> report = LintRows(*rows, {});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(Short(*report), one.findings) << one.file << "\n"
                                            << LintText(*report);
    if (report->findings.empty()) continue;
    const Finding& first = report->findings[0];
    if (!one.cycle.empty()) {
      EXPECT_THAT(first.cycle, testing::Contains(one.cycle)) << one.file;
    }
    EXPECT_EQ(first.reordering, one.reordering) << one.file;
  }
}

TEST(LintTest, CorpusOfTheDialectOf2024IsRefused) {
  for (absl::string_view file :
       {"pytorch_2024_dialect", "pytorch_2024_dialect_bw",
        "pytorch_mixed_dialects"}) {
    const std::string path =
        absl::StrCat(WEIR_SOURCE_DIR, "/tests/schedules/corpus/", file, ".csv");
    EXPECT_THAT(ReadScheduleRows(path).status().message(), HasSubstr("2024"));
    const bool mixed = absl::StrContains(file, "mixed");
    EXPECT_NE(ReadScheduleRows(path, CsvDialect::kPyTorchLegacy).ok(), mixed);
  }
}

TEST(LintTest, EveryKindIsWithoutError) {
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    int num_shapes = 0;
    for (int chunks : {1, 2}) {
      for (int microbatches : {4, 8}) {
        const ScheduleSpec spec = {4, microbatches, chunks, kind.flush ? 1 : 4};
        if (!kind.check(spec).ok()) continue;
        ++num_shapes;
        const LintReport report = LintSchedule(kind.generate(spec), {});
        EXPECT_EQ(report.num_errors(), 0) << LintText(report);
      }
    }
    EXPECT_GT(num_shapes, 0) << kind.name;
  }
}

// Checks that the moves proposed by a deadlock's finding resolve it.
void ExpectMovesEndIt(const ScheduleRows& rows) {
  const LintReport report = LintRows(rows, {}).value();
  ASSERT_FALSE(report.findings.empty()) << rows.label;
  const Finding& finding = report.findings[0];
  ASSERT_FALSE(finding.cycle.empty()) << LintText(report);
  ASSERT_FALSE(finding.moves.empty()) << LintText(report);
  CommProgram changed = rows.program;
  for (const Move& move : finding.moves) ApplyMove(move, &changed);
  EXPECT_FALSE(changed.ranks == rows.program.ranks);
  const LintReport after = Lint(PrintCsv(changed));
  EXPECT_EQ(after.num_errors(), 0) << finding.reordering << "\n"
                                   << LintText(after);
}

TEST(LintTest, FixOfADeadlockRuns) {
  int num_deadlocks = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           absl::StrCat(WEIR_SOURCE_DIR, "/tests/schedules/corpus"))) {
    if (entry.path().extension() != ".csv") continue;
    absl::StatusOr<ScheduleRows> rows = ReadScheduleRows(entry.path().string());
    if (!rows.ok()) continue;  // the dialect of 2024
    const LintReport report = LintRows(*rows, {}).value();
    for (const Finding& finding : report.findings) {
      if (finding.severity != Finding::Severity::kError) continue;
      if (finding.rule != "deadlock" && finding.rule != "one-stream") continue;
      ++num_deadlocks;
      ExpectMovesEndIt(*rows);
    }
  }
  EXPECT_EQ(num_deadlocks, 4);
}

TEST(LintTest, FixTakesAsManyMovesAsItNeeds) {
  for (absl::string_view text : {"1F0,0F0,0B0,1B0", "2F0,1F0,0F0,2B0,1B0,0B0",
                                 "0F0,0B0,0F1,0B1,0F2,0B2\n"
                                 "1F0,1F1,1F2,1B0,1B1,1B2"}) {
    ExpectMovesEndIt(Rows(text));
  }
  EXPECT_EQ(Lint("1F0,0F0,0B0,1B0").findings[0].moves.size(), 2);
  // Moving 0B0 after 0F1, which resolves the first cycle, is not sufficient.
  const absl::string_view far =
      "0F0,2F0,0B0,0F1,2F1,2B0,2B1,0B1\n1F0,1F1,1B0,1B1";
  ExpectMovesEndIt(Rows(far));
  EXPECT_EQ(Lint(far).findings[0].reordering,
            "move 0B0 of rank 0 from position 2 to 5, after 2B0");
}

TEST(LintTest, DeadlocksWithoutASmallFixSaySo) {
  // Sixteen stages on one rank in reverse order: fifteen forwards must move.
  std::string text;
  for (int stage = 16; stage-- > 0;) absl::StrAppend(&text, stage, "F0,");
  for (int stage = 16; stage-- > 0;) {
    absl::StrAppend(&text, stage, "B0", stage > 0 ? "," : "");
  }
  const Finding passes = Lint(text).findings[0];
  EXPECT_TRUE(passes.moves.empty()) << passes.reordering;
  EXPECT_THAT(passes.advice, HasSubstr("no reordering of up to "));
  EXPECT_THAT(passes.advice, HasSubstr("to try all"));
}

TEST(LintTest, NotesBecomeErrorsForARuntimeThatIsAskedFor) {
  const Schedule schedule = Generated("interleaved-1f1b", {2, 4, 2});
  EXPECT_EQ(LintSchedule(schedule, {}).num_errors(), 0);
  EXPECT_EQ(LintSchedule(schedule, {.rendezvous = true}).num_errors(), 1);
  EXPECT_THAT(Short(LintSchedule(schedule, {.megatron = true})),
              testing::Contains("error megatron"));
  EXPECT_EQ(
      LintSchedule(Generated("pipedream", {2, 4, 1, 4}), {.pytorch = true})
          .num_errors(),
      1);
}

// The lint accepts the orders that Megatron-LM runs.
TEST(LintTest, MegatronsOrdersRunInItsBatches) {
  for (int ranks : {2, 3, 4, 8}) {
    for (int microbatches : {1, 2, 3, 4, 8, 16, 24}) {
      const ScheduleSpec plain = {ranks, microbatches};
      EXPECT_EQ(LintSchedule(Generated("1f1b", plain), {.megatron = true})
                    .num_errors(),
                0)
          << ranks << " " << microbatches;
      if (ranks == 2 || microbatches % ranks != 0) continue;
      for (int chunks : {2, 3, 4}) {
        const LintReport report = LintSchedule(
            Generated("interleaved-1f1b", {ranks, microbatches, chunks}),
            {.megatron = true});
        EXPECT_EQ(report.num_errors(), 0) << ranks << " " << microbatches << " "
                                          << chunks << LintText(report);
      }
    }
  }
}

TEST(LintTest, OtherOrdersAreNotMegatrons) {
  EXPECT_THAT(Short(LintSchedule(Generated("interleaved-zb", {2, 4, 1}),
                                 {.megatron = true})),
              testing::Contains("error megatron"));
}

TEST(LintTest, LoweredKindsAreCleanFiles) {
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    const Schedule schedule = kind.generate(LegalSpec(kind));
    if (schedule.num_routes() > 1 || schedule.forward_only) continue;
    absl::StatusOr<CommProgram> program = LowerSchedule(schedule, {});
    ASSERT_TRUE(program.ok()) << program.status();
    const LintReport report = Lint(PrintCsv(*program));
    EXPECT_EQ(report.num_errors(), 0) << LintText(report);
  }
}

TEST(LintTest, GPipeIsANoteOnceMicrobatchesAreMany) {
  EXPECT_THAT(Short(LintSchedule(Generated("gpipe", {2, 16}), {})),
              ElementsAre("note memory-all"));
  EXPECT_THAT(Short(LintSchedule(Generated("gpipe", {2, 4}), {})), IsEmpty());
}

TEST(LintTest, ActivationsThatRiseFromBatchToBatchAreAnError) {
  // One stage, four batches of two. Every batch keeps one more activation until
  // the end.
  Schedule schedule = Generated("pipedream", {1, 2, 1, 4});
  schedule.rank_actions[0] =
      FromText(
          "0F0,0F1,0B1,0F2,0F3,0B3,0F4,0F5,0B5,0F6,0F7,0B7,0B0,0B2,0B4,"
          "0B6")
          .rank_actions[0];
  const LintReport report = LintSchedule(schedule, {});
  EXPECT_THAT(Short(report), testing::Contains("error memory"));
  EXPECT_THAT(LintText(report), HasSubstr("in every batch: 2, 3, 4, 5"));
}

TEST(LintTest, APipelineThatSeveralBatchesFillIsNoError) {
  // Rank 0 holds 2, 4, 6 and 7 activations; a full pipeline has 7.
  const LintReport report =
      LintSchedule(Generated("pipedream", {7, 2, 1, 4}), {});
  EXPECT_EQ(report.num_errors(), 0) << LintText(report);
}

TEST(LintTest, TransferFaultsAreToldApart) {
  const auto message = [](absl::string_view text) {
    const LintReport report = Lint(text);
    return report.findings.empty() ? std::string() : report.findings[0].message;
  };
  EXPECT_THAT(message("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0"),
              HasSubstr("1F0 comes before 1RECV_F0"));
  EXPECT_THAT(message("0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0"),
              HasSubstr("0SEND_F0 comes before 0F0"));
  EXPECT_THAT(message("0F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0\n"
                      "1RECV_F0,1F0,1B0,1SEND_B0"),
              HasSubstr("appears a second time"));
  EXPECT_THAT(message("0F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0"),
              HasSubstr("1F0 has no RECV_F"));
  EXPECT_THAT(message("0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0"),
              HasSubstr("is sent to its own rank"));
}

// Two pipelines run in opposite directions. Rank 0 posts a receive of the
// second pipeline before a pass of the first.
TEST(LintTest, AReceiveBeforeThePassOfTheOtherPipelineIsEarly) {
  const std::string rank1 =
      "\n0F1,0SEND_F1,1RECV_F0,1F0,1B0,0RECV_B1,1SEND_B0,0B1";
  const auto early = [&](const std::string& start) {
    std::vector<std::string> found;
    for (const Finding& finding :
         Lint(absl::StrCat(start, ",0SEND_F0,1F1,1B1,1SEND_B1,0RECV_B0,0B0",
                           rank1))
             .findings) {
      if (finding.rule == "early-receive") found.push_back(finding.message);
    }
    return found;
  };
  EXPECT_THAT(early("1RECV_F1,0F0"),
              ElementsAre("1 receives are posted before a pass that does not "
                          "need them, such as 1RECV_F1 before 0F0"));
  EXPECT_THAT(early("0F0,1RECV_F1"), IsEmpty());
}

TEST(LintTest, PyTorchsVerdictsAreItsOwn) {
  EXPECT_EQ(PyTorchVerdict(Rows("0F0,0B0\n1F0,1B0")), "");
  EXPECT_EQ(PyTorchVerdict(Rows("0F0,,0B1,0B0\n1F0,1B0")),
            "Rank 0, step 2: Running Full Backward for stage 0, microbatch 1 "
            "without first running Forward");
  EXPECT_EQ(PyTorchVerdict(Rows("0F0,0W0")),
            "Rank 0, step 1: Running Backward Weight for stage 0, microbatch 0 "
            "without first running Backward Input");
  EXPECT_EQ(PyTorchVerdict(Rows("0I0,0F0")),
            "Rank 0, step 0: Running Backward Input for stage 0, microbatch 0 "
            "without first running Forward");
  EXPECT_EQ(PyTorchVerdict(Rows("0F0,0B0\n0F1,0B1")),
            "Rank 1, step 0: Stage 0 is assigned to both rank 1 and rank 0");
  EXPECT_EQ(PyTorchVerdict(Rows("0F0,0F1,0B0,0B1\n1F0,1B0")),
            "Got 1 F microbatches for stage 1, expected 2");
  EXPECT_EQ(PyTorchVerdict(Rows("0F0,0I0")),
            "Invalid backward microbatches for stage 0: I and W must have "
            "equal counts, but got I=1, W=0");
  EXPECT_EQ(PyTorchVerdict(Rows("0F0")),
            "Invalid backward microbatches for stage 0: expected 1 total "
            "backwards, but got B=0, I=0, W=0");
  // PyTorch does not detect this.
  EXPECT_EQ(PyTorchVerdict(Rows("0F0,0F0,0B0\n1F0,1B0")), "");
}

TEST(LintTest, ReportsAreTextAndJson) {
  const LintReport report = Lint("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1");
  EXPECT_THAT(LintText(report),
              AllOf(HasSubstr("a.csv: 2 ranks, 2 stages, 2 microbatches: 1 "
                              "error, 0 notes\n"),
                    HasSubstr("error deadlock: a.csv:1:5: rank 0 position 1: "),
                    HasSubstr("\n  fix: move ")));
  // The cycle is printed with one wait per line.
  ASSERT_FALSE(report.findings.empty());
  ASSERT_EQ(report.findings[0].cycle.size(), 2u);
  for (const std::string& wait : report.findings[0].cycle) {
    EXPECT_THAT(LintText(report), HasSubstr(absl::StrCat("\n  ", wait, "\n")));
  }
  EXPECT_THAT(
      LintJson(report),
      AllOf(HasSubstr("\"rule\": \"deadlock\""), HasSubstr("\"line\": 1"),
            HasSubstr("\"column\": 5"), HasSubstr("\"reordering\": \"move ")));
}

std::string MessageAt(const LintReport& report, int line, int column) {
  for (const Finding& finding : report.findings) {
    if (finding.line == line && finding.column == column) {
      return finding.message;
    }
  }
  return absl::StrCat("nothing at ", line, ":", column);
}

// For the outer stages, no transfer beyond the pipeline is expected.
TEST(LintTest, TransfersBeyondThePipelineNameNoStageThatDoesNotExist) {
  const LintReport report =
      Lint("0F0,0B0,0SEND_B0,0RECV_F0\n1F0,1B0,1SEND_F0,1RECV_B0");
  EXPECT_EQ(MessageAt(report, 1, 9),
            "0SEND_B0 sends before stage 0, the first, expected no SEND_B for "
            "it");
  EXPECT_EQ(MessageAt(report, 1, 18),
            "0RECV_F0 receives from before stage 0, the first, expected no "
            "RECV_F for it");
  EXPECT_EQ(MessageAt(report, 2, 9),
            "1SEND_F0 sends after stage 1, the last, expected no SEND_F for "
            "it");
  EXPECT_EQ(MessageAt(report, 2, 18),
            "1RECV_B0 receives from after stage 1, the last, expected no "
            "RECV_B for it");
  for (const Finding& finding : report.findings) {
    EXPECT_THAT(finding.message, Not(HasSubstr("-1")));
    EXPECT_THAT(finding.message, Not(HasSubstr("2RECV")));
  }
}

TEST(LintTest, AGapBetweenStagesIsSaidOnceAndWhere) {
  const LintReport report = Lint("0F0,0B0\n3F0,3B0");
  EXPECT_THAT(Short(report), ElementsAre("error placement 2:1"));
  EXPECT_EQ(report.findings[0].message,
            "stage 1 has no action, but 3F0 is of stage 3, expected stages "
            "from 0 on");
  const auto schedule = ScheduleFromRows(Rows("0F0,0B0\n3F0,3B0"));
  EXPECT_THAT(std::string(schedule.status().message()),
              HasSubstr("a.csv:2:1: stage 1 has no action"));
}

TEST(LintTest, TransfersOfStagesWithoutPassesAreNamedWithTheirPlace) {
  const auto report = LintRows(
      Rows("0F0,0SEND_F0,0B0,3RECV_F0\n1RECV_F7,1F0,4UNSHARD,1B0"), {});
  EXPECT_EQ(std::string(report.status().message()),
            "a.csv:1:18: 3RECV_F0 is of stage 3, which has no pass, expected 0 "
            "to 1\n"
            "a.csv:2:1: 1RECV_F7 is of microbatch 7, which has no pass, "
            "expected 0 to 0\n"
            "a.csv:2:14: 4UNSHARD is of stage 4, which has no pass, expected 0 "
            "to 1");
}

TEST(LintTest, PassesOnTwoRanksAreNamedWithTheirPlace) {
  const auto schedule =
      ScheduleFromRows(Rows("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,0B1,1B1"));
  EXPECT_THAT(std::string(schedule.status().message()),
              HasSubstr("a.csv:2:13: rank 1: 0B1 is of stage 0, which rank 0 "
                        "holds for microbatch 1"));
  const auto absurd = ScheduleFromRows(Rows("0F0,0B0\n1F0,\t99F0"));
  EXPECT_THAT(std::string(absurd.status().message()),
              HasSubstr("a.csv:2:6: 99F0 is of stage 99"));
}

}  // namespace weir::schedules::lint_test
