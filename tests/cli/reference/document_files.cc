// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/reference/document_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "tests/cli/reference/document_commands.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::document_runs_test {
namespace {

// A block of a document that the reader saves as a file.
struct SavedBlock {
  const char* document;
  const char* first_line;
  const char* name;
};
constexpr SavedBlock kSavedBlocks[] = {
    {"docs/check-your-own-runs.md", "num_layers,hidden_size", "runs.csv"},
    {"docs/check-your-own-runs.md", "# proto-file: results/compare",
     "map.textproto"},
    {"docs/ci-recipes.md", "import json, sys", "annotate.py"},
    {"docs/defaults.md", "name: \"our-team\"", "our-team.textproto"},
    {"docs/sweep.md", "# proto-file: plan/sweep", "my.textproto"},
};

// A file that is made for documents with a command that contains its name. Of
// several rules for a name, the first whose document matches counts.
struct MadeFile {
  const char* name;
  const char* document;  // part of its name
  const char* command;
};
constexpr MadeFile kMadeFiles[] = {
    {"my.textproto", "docs/calibrate-a-gpu.md",
     "weir profile show h100-sxm --format textproto > $FILE"},
    {"my.textproto", "docs/ci-recipes.md",
     "weir scenario show llama-3-70b-64-h100 > $FILE"},
    {"my.textproto", "docs/check-your-own-runs.md",
     "weir scenario show --model gpt2 --cluster dgx-a100 --nodes 1 --pp 2 "
     "--gbs 64 --seq 1024 --schedule 1f1b > $FILE"},
    {"my.textproto", "", "weir scenario show pipedream-2bw-gpt-2.2b > $FILE"},
    {"config.json", "", "cp $MODELS/mistral-7b-v0.1.json $FILE"},
    {"out/compare.pb", "",
     "weir compare given-costs-1f1b --schedule 1f1b,gpipe --out $FILE"},
    {"my_schedule.csv", "",
     "weir schedule convert 1f1b --pp 4 --microbatches 8 -o $FILE"},
    {"notes.txt", "", "echo mine > $FILE"},
    // 8 H100 as in the tutorial: rank 3 has the vocabulary and a slow GPU.
    {"timeline.json.gz", "docs/tutorial-slow-run.md",
     "python3 $MAKE timeline $FILE --microbatches 64 --hop 0.0002 --forward "
     "0.0352,0.0346,0.0346,0.062 --backward 0.0716,0.0705,0.0705,0.1045"},
    {"timeline.json.gz", "docs/traces.md",
     "python3 $MAKE timeline $FILE --replicas 2 --steps 25 --slow 1.15"},
    {"timeline.json.gz", "",
     "python3 $MAKE timeline $FILE --replicas 8 --steps 3 --slow 1.15"},
    {"timeline-AR.json.gz", "",
     "python3 $MAKE timeline $FILE --forward 0.11,0.1,0.1,0.13 --backward "
     "0.2,0.2,0.2,0.24"},
    {"trace.json.gz", "", "python3 $MAKE timeline $FILE"},
    {"measured.csv", "",
     "weir simulate my.textproto --out .events.pb && weir trace .events.pb "
     "--replica 0 -o .events.json && python3 $MAKE events $FILE .events.json"},
    {"gpt3.csv", "", "python3 $MAKE profile $FILE"},
    {"profile.csv", "docs/energy.md", "python3 $MAKE profile $FILE"},
    {"profile.csv", "examples", "python3 $MAKE profile $FILE"},
    {"profile.csv", "docs/report.md", "python3 $MAKE profile $FILE"},
    {"gemm.csv", "", "python3 $MAKE gemms $FILE"},
    {"attention.csv", "", "python3 $MAKE attention $FILE"},
    {"plans.json", "",
     "weir plan --model gpt2 --cluster dgx-h100 --gpus 8 --gbs 32 --pp 2,4 "
     "--schedule 1f1b --objective pareto --time-limit 1 --format json > $FILE"},
    {"weir-sweep", "",
     "weir sweep --model gpt2 --cluster dgx-h100 --nodes 1 --gbs 32 --schedule "
     "1f1b --grid tp=1,2 --grid pp=1,2 --out $FILE"},
    {"half.textproto", "examples",
     "weir scenario show llama-3-70b-64-h100 --model llama-3.1-8b --nodes 2 "
     "--tp 4 --pp 2 --dp 1 --gbs 16 --placement 0,1,2,3,8,9,10,11 > $FILE"},
    {"times.csv", "examples", "printf 'step_seconds\\n0.05\\n' > $FILE"},
    {"points.csv", "examples",
     "printf 'pp,schedule\\n2,gpipe\\n4,1f1b\\n' > $FILE"},
    {"map.textproto", "examples",
     "awk '/^```/ {inside = 0} /^# proto-file: results.compare/ {inside = 1} "
     "inside' $DOCS/check-your-own-runs.md > $FILE"},
    {"old_schedule.csv", "examples",
     "weir schedule convert zb-h1 | sed s/I/B/g > $FILE"},
    {"graph.txt", "examples", "cp $CORPUS/graph.txt $FILE"},
    {"predicted.pb", "examples",
     "weir compare replay-cpu --schedule gpipe,1f1b --out $FILE"},
    {"replay.pb", "examples",
     "weir simulate replay-cpu --schedule 1f1b --out $FILE"},
    {"costs.textproto", "examples",
     "weir energy profile.csv --blocking-power 83.64 --microbatches 12 "
     "--costs $FILE"},
    {"errors.csv", "",
     "weir validate --measured $INPUTS/runs.csv --cluster dgx-h100 --format "
     "csv > $FILE"},
};

bool Succeeds(const std::string& folder, const std::string& commands) {
  const std::string line = absl::StrCat("cd '", folder, "' && PATH='", folder,
                                        "/bin':\"$PATH\" && { ", commands,
                                        " ; } > .made 2>&1 < /dev/null");
  return std::system(line.c_str()) == 0;
}

void WriteProgram(const std::string& path, const std::string& script) {
  EXPECT_TRUE(WriteFile(path, absl::StrCat("#!/bin/sh\n", script)).ok());
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

bool HasCommandWith(const std::vector<Command>& commands,
                    const std::string& text) {
  return std::any_of(commands.begin(), commands.end(), [&](const Command& c) {
    return absl::StrContains(c.text, text);
  });
}

void WritePrograms(const std::string& folder,
                   const std::vector<Command>& commands) {
  const auto programs = std::filesystem::path(WEIR_PROGRAM).parent_path();
  for (const char* name : {"weir", "weir-calibrate"}) {
    const std::string script =
        absl::StrCat("exec '", (programs / name).string(), "' \"$@\"\n");
    WriteProgram(absl::StrCat(folder, "/bin/", name), script);
    // Elsewhere, a file of this name would be taken for a runtime's.
    if (HasCommandWith(commands, absl::StrCat("./", name, " "))) {
      WriteProgram(absl::StrCat(folder, "/", name), script);
    }
  }
  const std::string script = ReadFile(WEIR_SOURCE_DIR "/run").value_or("");
  EXPECT_TRUE(absl::StrContains(script, "interleaved-1f1b,zb-h1,zb-v"));
  // Without arguments it runs what the script does after building.
  WriteProgram(absl::StrCat(folder, "/run"),
               "[ $# -eq 0 ] || exec weir \"$@\"\n"
               "weir compare llama-3-70b-64-h100 --schedule "
               "gpipe,1f1b,interleaved-1f1b,zb-h1,zb-v --out out/compare.pb "
               "--trace out/ --force\n");
}

void SaveBlocks(const std::string& folder, const std::string& document,
                const std::string& text) {
  const std::vector<Block> blocks = BlocksOf(text);
  for (const SavedBlock& saved : kSavedBlocks) {
    if (document != saved.document) continue;
    const auto block =
        std::find_if(blocks.begin(), blocks.end(), [&](const Block& b) {
          return !b.lines.empty() &&
                 absl::StartsWith(b.lines.front(), saved.first_line);
        });
    ASSERT_NE(block, blocks.end()) << document << ": " << saved.first_line;
    EXPECT_TRUE(WriteFile(absl::StrCat(folder, "/", saved.name),
                          absl::StrCat(absl::StrJoin(block->lines, "\n"), "\n"))
                    .ok());
  }
}

}  // namespace

std::string PrepareFiles(const std::string& document, const std::string& text) {
  const std::string inputs = WEIR_SOURCE_DIR "/tests/cli/reference/inputs";
  const std::string folder =
      absl::StrCat(TestFolder(), "/",
                   absl::StrReplaceAll(document, {{"/", "-"}, {".md", ""}}));
  std::filesystem::create_directories(folder + "/out");
  std::filesystem::create_directories(folder + "/bin");
  const std::vector<Command> commands = CommandsOf(text);
  WritePrograms(folder, commands);
  for (const auto& file : std::filesystem::directory_iterator(inputs)) {
    const std::string name = file.path().filename().string();
    if (HasCommandWith(commands, name)) {
      std::filesystem::copy(file.path(), absl::StrCat(folder, "/", name));
    }
  }
  SaveBlocks(folder, document, text);
  for (const MadeFile& file : kMadeFiles) {
    const std::string path = absl::StrCat(folder, "/", file.name);
    if (!absl::StrContains(document, file.document) ||
        !HasCommandWith(commands, file.name) || std::filesystem::exists(path)) {
      continue;
    }
    const std::string command = absl::StrReplaceAll(
        file.command, {{"$FILE", file.name},
                       {"$MAKE", inputs + "/make_inputs.py"},
                       {"$INPUTS", inputs},
                       {"$DOCS", WEIR_SOURCE_DIR "/docs"},
                       {"$CORPUS", WEIR_SOURCE_DIR "/tests/fuzz/corpus"},
                       {"$MODELS", WEIR_SOURCE_DIR "/models/presets"}});
    EXPECT_TRUE(Succeeds(folder, command))
        << document << ": " << command << "\n"
        << ReadFile(absl::StrCat(folder, "/.made")).value_or("");
  }
  return folder;
}

}  // namespace weir::cli::document_runs_test
