// SPDX-License-Identifier: Apache-2.0
// Checks that no name written by a user reaches an interpreter or controls a
// terminal, on any path through the program.
#include "tests/hostile_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/csv.h"
#include "base/files.h"
#include "base/text.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::hostile_names_test {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kCosts[] =
    "costs { stages { forward_seconds: 1 backward_seconds: 2 } }\n"
    "parallelism { pipeline: 2 } num_microbatches: 2\n";

std::string ShellWord(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string Literal(absl::string_view text) {
  return absl::StrCat("\"", absl::CEscape(text), "\"");
}

// Returns the names that a protocol buffer can hold.
std::vector<HostileName> Utf8Names() {
  std::vector<HostileName> names;
  for (const HostileName& name : HostileNames()) {
    if (name.is_utf8) names.push_back(name);
  }
  return names;
}

// Returns the names in a form that is valid for files in the current folder.
std::vector<HostileName> FileNames() {
  std::vector<HostileName> names;
  for (HostileName name : HostileNames()) {
    if (absl::StrContains(name.text, '\0')) continue;
    absl::StrReplaceAll({{"/", "_"}}, &name.text);
    name.text.resize(std::min<size_t>(name.text.size(), 200));
    names.push_back(name);
  }
  return names;
}

void ExpectSafe(const ProgramRun& run, absl::string_view what) {
  EXPECT_TRUE(IsSafeForTerminal(run.out)) << what << ": " << run.out;
  EXPECT_TRUE(IsSafeForTerminal(run.err)) << what << ": " << run.err;
  EXPECT_LT(run.exit_code, 4) << what << ": " << run.err;
  EXPECT_FALSE(fs::exists(absl::StrCat(TestFolder(), "/", kCanary))) << what;
}

ProgramRun RunSafely(absl::string_view arguments, absl::string_view what) {
  ProgramRun run = RunWeir(arguments);
  ExpectSafe(run, what);
  return run;
}

TEST(HostileNamesTest, ScenariosReachNoTerminalOrInterpreter) {
  for (const HostileName& name : Utf8Names()) {
    WriteInput("s.textproto", absl::StrCat("name: ", Literal(name.text),
                                           " schedule: \"gpipe\"\n", kCosts));
    const ProgramRun table = RunSafely("simulate s.textproto", name.kind);
    EXPECT_EQ(table.exit_code, 0) << name.kind << table.err;
    EXPECT_THAT(table.out, HasSubstr("step time")) << name.kind;
    const ProgramRun json = RunSafely(
        "simulate s.textproto --out r.pb --trace t.json --format json",
        name.kind);
    const Json parsed = Json::parse(json.out, nullptr, false);
    ASSERT_TRUE(parsed.is_object()) << name.kind;
    EXPECT_EQ(parsed["result"]["name"], name.text);
    const std::string trace = *ReadFile(TestFolder() + "/t.json");
    EXPECT_FALSE(Json::parse(trace, nullptr, false).is_discarded());
    const ProgramRun csv = RunSafely(
        "compare s.textproto --schedule gpipe,1f1b --format csv", name.kind);
    const auto read = ReadCsv("out", csv.out);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->Column("name")->Text(1), WithoutControls(name.text));
  }
}

TEST(HostileNamesTest, ErrorsAboutFilesAndValuesAreOneLine) {
  for (const char* command :
       {"model show ", "cluster show ", "simulate ", "schedule lint ",
        "collect ", "simulate --costs ", "sweep --costs f=1,b=2 --grid "}) {
    const ProgramRun run =
        RunSafely(absl::StrCat(command, ShellWord("./f=a\nb.csv")), command);
    EXPECT_EQ(run.exit_code, 2) << command;
    EXPECT_THAT(run.err, HasSubstr("a\\u000ab.csv")) << command;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
}

TEST(HostileNamesTest, ModelsClustersAndProfilesReachNoTerminal) {
  const std::string source(WEIR_SOURCE_DIR);
  const std::string model =
      *ReadFile(source + "/models/presets/tiny-gpt.textproto");
  const std::string cluster =
      *ReadFile(source + "/scenarios/cluster/presets/p3-16xlarge.textproto");
  for (const HostileName& name : Utf8Names()) {
    const std::string literal = absl::StrCat("name: ", Literal(name.text));
    WriteInput("m.textproto",
               absl::StrReplaceAll(model, {{"name: \"tiny-gpt\"", literal}}));
    WriteInput(
        "c.textproto",
        absl::StrReplaceAll(cluster, {{"name: \"p3-16xlarge\"", literal},
                                      {"name: \"p3.16xlarge\"", literal}}));
    for (const char* command :
         {"model show m.textproto", "cluster show c.textproto"}) {
      const ProgramRun table = RunSafely(command, name.kind);
      EXPECT_EQ(table.exit_code, 0) << table.err;
      // The first line of the table contains the name and more, so the name is
      // in one line.
      EXPECT_THAT(absl::StrSplit(table.out, '\n').begin()->size(),
                  testing::Gt(5u));
      const Json json = Json::parse(
          RunSafely(absl::StrCat(command, " --format json"), name.kind).out,
          nullptr, false);
      ASSERT_TRUE(json.is_object()) << name.kind;
      EXPECT_EQ(json["name"], name.text);
    }
  }
}

// Returns the number of rows of a query. Fails the test if the text of a row is
// not as in `expected`.
int CheckRows(const std::string& path, const std::string& query,
              const std::vector<HostileName>& expected) {
  sqlite3* database = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(
      sqlite3_prepare_v2(database, query.c_str(), -1, &statement, nullptr),
      SQLITE_OK)
      << sqlite3_errmsg(database);
  int num_rows = 0;
  while (sqlite3_step(statement) == SQLITE_ROW) {
    const std::string text(
        reinterpret_cast<const char*>(sqlite3_column_text(statement, 0)),
        sqlite3_column_bytes(statement, 0));
    EXPECT_EQ(text, expected[num_rows].text);
    ++num_rows;
  }
  sqlite3_finalize(statement);
  sqlite3_close(database);
  return num_rows;
}

TEST(HostileNamesTest, SweepsKeepNamesInTablesDatabasesAndCsv) {
  const std::vector<HostileName> names = Utf8Names();
  std::vector<std::string> values;
  for (const HostileName& name : names) values.push_back(Literal(name.text));
  WriteInput(
      "sweep.textproto",
      absl::StrCat("name: ", values[0], " scenario { schedule: \"gpipe\" ",
                   kCosts, "}\naxes { field: \"name\" values: [",
                   absl::StrJoin(values, ","), "] }\n"));
  const ProgramRun swept = RunSafely("sweep sweep.textproto --out s", "sweep");
  ASSERT_EQ(swept.exit_code, 0) << swept.err;
  EXPECT_THAT(swept.out, HasSubstr("\nbest: point 0"));
  const ProgramRun collected = RunSafely(
      "collect s --complete --csv s.csv --sqlite s.sqlite", "collect");
  ASSERT_EQ(collected.exit_code, 0) << collected.err;
  EXPECT_THAT(collected.out, HasSubstr("\nbest: point 0"));
  const std::string csv = *ReadFile(TestFolder() + "/s.csv");
  EXPECT_TRUE(IsSafeForTerminal(csv));
  const auto table = ReadCsv("s.csv", csv);
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->num_rows(), static_cast<int>(names.size()));
  for (int row = 0; row < table->num_rows(); ++row) {
    EXPECT_EQ(table->Column("name")->Text(row),
              WithoutControls(names[row].text));
  }
  const std::string database = TestFolder() + "/s.sqlite";
  EXPECT_EQ(
      CheckRows(database, "SELECT name FROM points ORDER BY point", names),
      static_cast<int>(names.size()));
  EXPECT_EQ(CheckRows(database, "SELECT name FROM sweep", names), 1);
  // weir reads its own output again.
  const ProgramRun again =
      RunSafely("sweep sweep.textproto --out s --resume", "resume");
  EXPECT_THAT(again.out,
              HasSubstr(absl::StrCat(names.size(), " already done, 0 done")));
  for (const char* format : {"json", "csv", "table"}) {
    RunSafely(absl::StrCat("collect s --format ", format), format);
  }
}

TEST(HostileNamesTest, MeasuredRunsKeepTheirNamesInAllViews) {
  std::string csv = "name,schedule,pp,microbatches,costs,step_seconds\n";
  std::vector<std::string> expected;
  for (const HostileName& name : HostileNames()) {
    absl::StrAppend(&csv, CsvField(name.text), ",gpipe,2,2,\"f=1,b=2\",10\n");
    expected.push_back(WithoutControls(name.text));
  }
  WriteInput("runs.csv", csv);
  RunSafely("validate --measured runs.csv --all", "table");
  const Json json = Json::parse(
      RunSafely("validate --measured runs.csv --format json", "JSON").out,
      nullptr, false);
  ASSERT_TRUE(json.is_object());
  const ProgramRun run =
      RunSafely("validate --measured runs.csv --format csv", "CSV");
  const auto table = ReadCsv("out", run.out);
  ASSERT_TRUE(table.ok()) << table.status();
  std::vector<std::string> found;
  for (int row = 0; row < table->num_rows(); ++row) {
    found.push_back(table->Column("row")->Text(row));
  }
  EXPECT_THAT(found, ElementsAreArray(expected));
}

TEST(HostileNamesTest, ErrorsShowFileNamesWithoutTheirControls) {
  const std::vector<std::string> commands = {
      "simulate",      "simulate --costs f=1,b=2 --schedule",
      "model show",    "collect",
      "schedule lint", "validate --measured"};
  size_t next = 0;
  for (const HostileName& name : FileNames()) {
    // Each command is tested with several names; all commands share
    // base/text.h.
    const std::string& command = commands[next++ % commands.size()];
    const ProgramRun run = RunSafely(
        absl::StrCat(command, " ", ShellWord("./" + name.text + ".json")),
        absl::StrCat(command, ", ", name.kind));
    EXPECT_EQ(run.exit_code, 2) << name.kind << ": " << run.err;
    EXPECT_THAT(run.err, Not(IsEmpty())) << name.kind;
    // The name is neither a command nor an option.
    RunSafely(ShellWord(name.text), name.kind);
  }
}

TEST(HostileNamesTest, FilesHaveTheNamesThatWereAskedFor) {
  for (const HostileName& name : FileNames()) {
    const std::string file = name.text + ".x";
    const std::string csv = name.text + ".csv";
    const auto path = [](const std::string& file) {
      return absl::StrCat(TestFolder(), "/", file);
    };
    // A list of schedules is split at commas.
    if (absl::StrContains(name.text, ',')) continue;
    ASSERT_TRUE(WriteFile(path(csv), "0F0,0B0\n").ok()) << name.kind;
    const ProgramRun run = RunSafely(
        absl::StrCat(
            "simulate --costs f=1,b=2 --schedule=", ShellWord("./" + csv),
            " --pp 1 --out=", ShellWord(file),
            " --trace=", ShellWord(name.text + ".json"), " --format json"),
        name.kind);
    EXPECT_EQ(run.exit_code, name.is_utf8 ? 0 : 2) << run.err;
    EXPECT_EQ(Json::parse(run.out, nullptr, false).is_object(), name.is_utf8);
    EXPECT_EQ(fs::exists(path(file)), name.is_utf8) << name.kind;
    EXPECT_EQ(fs::exists(path(name.text + ".json")), name.is_utf8);
    EXPECT_EQ(absl::StrContains(run.err, "expected UTF-8"), !name.is_utf8);
    const ProgramRun shown = RunSafely(
        absl::StrCat("schedule show ", ShellWord("./" + csv), " --format json"),
        name.kind);
    EXPECT_FALSE(Json::parse(shown.out, nullptr, false).is_discarded());
    fs::remove(path(csv));
    fs::remove(path(file));
    fs::remove(path(name.text + ".json"));
  }
}

// A fake sbatch whose only job runs at once. It checks the script's syntax and
// runs the first task.
constexpr char kSbatch[] = R"(#!/bin/sh
set -e
for script; do :; done
printf '<%s>\n' "$@" >"$FAKE_SLURM/arguments"
bash -n "$script"
SLURM_ARRAY_TASK_ID=0 SLURM_CPUS_ON_NODE=1 sh "$script" >"$FAKE_SLURM/job.out"
echo "7;cluster"
)";

class FakeSlurmTest : public testing::Test {
 protected:
  void SetUp() override {
    WriteInput("bin/sbatch", kSbatch);
    fs::permissions(TestFolder() + "/bin/sbatch", fs::perms::owner_all);
    WriteInput(
        "sweep.textproto",
        absl::StrCat("scenario { schedule: \"gpipe\" ", kCosts,
                     "}\naxes { field: \"num_batches\" values: \"1\" }\n"));
  }

  ProgramRun Submit(absl::string_view arguments) {
    return RunWeirAfter(
        "FAKE_SLURM=$PWD PATH=$PWD/bin:$PATH",
        absl::StrCat("sweep sweep.textproto --slurm --slurm-nodes 1 ",
                     arguments));
  }

  std::vector<std::string> Arguments() {
    return absl::StrSplit(*ReadFile(TestFolder() + "/arguments"), '\n',
                          absl::SkipEmpty());
  }
};

TEST_F(FakeSlurmTest, FoldersReachTheJobAsTheyAre) {
  for (const HostileName& name : FileNames()) {
    const ProgramRun run = Submit(absl::StrCat("--out=", ShellWord(name.text)));
    ExpectSafe(run, name.kind);
    EXPECT_EQ(run.exit_code, 0) << name.kind << ": " << run.err;
    EXPECT_THAT(run.err, HasSubstr("job 7: 1 tasks for 1 points"));
    const ProgramRun collected = RunSafely(
        absl::StrCat("collect --complete ", ShellWord("./" + name.text)),
        name.kind);
    EXPECT_EQ(collected.exit_code, 0) << name.kind << ": " << collected.err;
    fs::remove_all(TestFolder() + "/" + name.text);
  }
}

TEST_F(FakeSlurmTest, ArgumentsAreSplitIntoWordsAndRunNothing) {
  const ProgramRun run = Submit(
      "--out a --slurm-args \"--time=60 --comment='two; words' -q \\\"a "
      "b\\\"\"");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::vector<std::string> arguments = Arguments();
  EXPECT_THAT(arguments,
              testing::IsSupersetOf(
                  {"<--time=60>", "<--comment=two; words>", "<-q>", "<a b>"}));
  for (const char* hostile :
       {"$(touch CANARY)", "`touch CANARY`", "a; touch CANARY",
        "a | touch CANARY", "a > CANARY", "a & touch CANARY", "$NOBODY_KNOWS",
        "'no end"}) {
    const ProgramRun refused =
        Submit(absl::StrCat("--out b --slurm-args ", ShellWord(hostile)));
    ExpectSafe(refused, hostile);
    EXPECT_EQ(refused.exit_code, 2) << hostile;
    EXPECT_THAT(refused.err, HasSubstr("--slurm-args is \"")) << hostile;
  }
}

TEST_F(FakeSlurmTest, SymbolsOfSlurmInAFoldersNameStandForThemselves) {
  ASSERT_EQ(Submit("--out 'a%j'").exit_code, 0);
  EXPECT_THAT(Arguments()[1], testing::EndsWith("/a%%j/slurm-%a.log>"));
}

TEST_F(FakeSlurmTest, WhySlurmRefusesIsAnError) {
  WriteInput("bin/sbatch",
             "#!/bin/sh\nprintf 'no \\033[31mpartition' >&2; exit 1\n");
  const ProgramRun run = Submit("--out c");
  ExpectSafe(run, "sbatch");
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("sbatch rejected the job: no \\u001b[31m"
                                 "partition"));
}

}  // namespace weir::cli::hostile_names_test
