// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "cli/options/add_option.h"
#include "cli/options/command_tree.h"
#include "cli/options/program.h"
#include "cli/reference/completion.h"
#include "cli/reference/example_lines.h"
#include "cli/reference/field_page.h"
#include "cli/reference/man_page.h"
#include "cli/reference/markdown.h"
#include "cli/reference/option_examples.h"
#include "cli/reference/option_pages.h"
#include "cli/weir/weir_app.h"
#include "cli/weir_calibrate/calibrate_app.h"
#include "google/protobuf/descriptor.pb.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::reference_test {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

class ReferenceTest : public testing::Test {
 protected:
  const CLI::App& Command(const std::string& name) {
    for (const CLI::App* command : AllCommands(*app_)) {
      if (NameInProgram(*command) == name) return *command;
    }
    ADD_FAILURE() << name;
    return *app_;
  }

  static bool IsInstalled(const char* shell) {
    return std::system(
               absl::StrCat("command -v ", shell, " > /dev/null").c_str()) == 0;
  }

  // Returns what fish would offer for this command line.
  std::vector<std::string> CompleteInFish(const std::string& line) {
    WriteInput("weir.fish", FishCompletion(*app_));
    WriteInput("ask.fish",
               absl::StrCat("source weir.fish\ncomplete -C '", line, "'\n"));
    std::vector<std::string> offers;
    for (const std::string& offer : Output("fish --no-config ask.fish")) {
      offers.push_back(offer.substr(0, offer.find('\t')));
    }
    return offers;
  }

  // Returns the command line after Tab in zsh.
  std::string CompleteInZsh(const std::string& line) {
    WriteInput("functions/_weir", ZshCompletion(*app_));
    WriteInput("ask.zsh", absl::StrCat(R"zsh(
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1= PS2= TERM=dumb; fpath=($PWD/functions \$fpath)"
zpty -w shell 'autoload -Uz compinit && compinit -u -D'
zpty -w shell 'show() { print -r -- "<$BUFFER>" > buffer; exit }'
zpty -w shell 'zle -N show && bindkey "^X" show && bindkey "^I" expand-or-complete'
zpty -w -n shell ')zsh",
                                       line, R"zsh('$'\t\x18'
while zpty -r shell text; do :; done
)zsh"));
    Output("zsh -f ask.zsh");
    const std::vector<std::string> lines = Output("cat buffer");
    return lines.empty() ? "" : lines.front();
  }

  // Returns the lines that a command prints in the folder of the test.
  std::vector<std::string> Output(const std::string& command) {
    const std::string bin =
        std::filesystem::path(WEIR_PROGRAM).parent_path().string();
    const std::string text = absl::StrCat(
        "cd ", TestFolder(), " && PATH=", bin, ":$PATH HOME=", TestFolder(),
        " timeout 60 ", command, " > offers 2> errors");
    EXPECT_EQ(std::system(text.c_str()), 0) << text;
    std::ifstream file(TestFolder() + "/offers");
    return absl::StrSplit(std::string(std::istreambuf_iterator<char>(file), {}),
                          '\n', absl::SkipEmpty());
  }

  // Returns what bash would offer after the last of these words.
  std::vector<std::string> Complete(const std::vector<std::string>& words) {
    std::string script = BashCompletion(*app_);
    absl::StrAppend(&script, "COMP_WORDS=(", absl::StrJoin(words, " "),
                    ")\nCOMP_CWORD=", words.size() - 1,
                    "\n_weir\nprintf '%s\\n' \"${COMPREPLY[@]}\" > offers\n");
    WriteInput("script", script);
    const std::string bin =
        std::filesystem::path(WEIR_PROGRAM).parent_path().string();
    const std::string command =
        absl::StrCat("cd ", TestFolder(), " && PATH=", bin,
                     ":$PATH bash --norc script 2> errors");
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    std::ifstream errors(TestFolder() + "/errors");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(errors), {}), "");
    std::ifstream file(TestFolder() + "/offers");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return absl::StrSplit(text, '\n', absl::SkipEmpty());
  }

  // Returns the examples with which the installed pages are written.
  OptionExamples Examples() {
    CalibrateLine calibrate_line;
    const auto calibrate = MakeCalibrateApp(&calibrate_line);
    const auto text =
        ReadFile(WEIR_SOURCE_DIR "/cli/reference/examples/commands.txt");
    const auto lines =
        ExampleLines(text.value_or(""), {app_.get(), calibrate.get()});
    EXPECT_TRUE(lines.ok()) << lines.status();
    if (!lines.ok()) return {};
    const auto examples = FindOptionExamples(*lines, {}, app_.get());
    EXPECT_TRUE(examples.ok()) << examples.status();
    return examples.ok() ? *examples : OptionExamples();
  }

  CommandLine line_;
  std::unique_ptr<CLI::App> app_ = MakeWeirApp(&line_);
};

TEST_F(ReferenceTest, PagesOfCommandsHaveAllTheirOptions) {
  const OptionExamples examples = Examples();
  for (const CLI::App* command : AllCommands(*app_)) {
    const std::string page = ManPage(*command, "weir 1.2.3", examples);
    EXPECT_THAT(page, HasSubstr(absl::StrCat(".TH ")));
    EXPECT_THAT(page, HasSubstr(EscapeRoff(FullName(*command))));
    for (const CLI::Option* option : OptionsOf(*command)) {
      for (const std::string& name : NamesOf(*option)) {
        EXPECT_THAT(page,
                    HasSubstr(absl::StrCat("\\fB", EscapeRoff(name), "\\fR")));
      }
    }
  }
}

TEST_F(ReferenceTest, PageOfTheProgramListsCommands) {
  const std::string page = ManPage(*app_, "weir 1.2.3", {});
  for (const CLI::App* command : AllCommands(*app_)) {
    EXPECT_THAT(page, HasSubstr(EscapeRoff(ManPageName(*command))));
  }
  EXPECT_THAT(page, HasSubstr("\"weir 1.2.3\""));
}

TEST_F(ReferenceTest, RoffIsEscaped) {
  EXPECT_EQ(EscapeRoff(".so /etc/x\n.ex\\n 'a-b'"),
            "\\&.so /etc/x\n\\&.ex\\en \\(aqa\\-b\\(aq");
}

TEST_F(ReferenceTest, PagesHaveNoWarnings) {
  if (std::system("command -v groff > /dev/null") != 0) {
    GTEST_SKIP() << "groff is not installed";
  }
  const OptionExamples examples = Examples();
  std::vector<const CLI::App*> all = AllCommands(*app_);
  all.push_back(app_.get());
  for (const CLI::App* app : all) {
    WriteInput("page.1", ManPage(*app, "weir 1.2.3", examples));
    const std::string command =
        absl::StrCat("cd ", TestFolder(),
                     " && groff -ww -man -Tutf8 page.1 > text 2> warnings");
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ifstream warnings(TestFolder() + "/warnings");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(warnings), {}), "")
        << ManPageName(*app);
  }
}

TEST_F(ReferenceTest, ChoicesAreThoseOfPlaceholders) {
  for (const CLI::Option* option : OptionsOf(Command("simulate"))) {
    if (NamesOf(*option)[0] == "--recompute") {
      EXPECT_THAT(ChoicesOf(*option),
                  ElementsAre("none", "selective", "operators", "full"));
    }
  }
  for (const CLI::Option* option : OptionsOf(Command("explain"))) {
    if (NamesOf(*option)[0] == "--measured") {
      EXPECT_THAT(ChoicesOf(*option), testing::IsEmpty());
    }
  }
}

TEST_F(ReferenceTest, BashCompletesCommandsAndOptions) {
  EXPECT_THAT(Complete({"weir", "sim"}), ElementsAre("simulate"));
  EXPECT_THAT(Complete({"weir", "''"}),
              IsSupersetOf({"simulate", "schedule", "plan"}));
  EXPECT_THAT(Complete({"weir", "schedule", "''"}),
              IsSupersetOf({"list", "show", "lint"}));
  EXPECT_THAT(Complete({"weir", "simulate", "--context-p"}),
              ElementsAre("--context-parallel-size"));
  EXPECT_THAT(Complete({"weir", "schedule", "show", "--form"}),
              ElementsAre("--format"));
  EXPECT_THAT(Complete({"weir", "--"}), ElementsAre("--help", "--version"));
  EXPECT_THAT(Complete({"weir", "schedule", "--"}), ElementsAre("--help"));
}

TEST_F(ReferenceTest, BashCompletesValues) {
  EXPECT_THAT(Complete({"weir", "simulate", "--recompute", "se"}),
              ElementsAre("selective"));
  EXPECT_THAT(Complete({"weir", "simulate", "--model", "llama-3.1"}),
              Contains("llama-3.1-8b"));
  EXPECT_THAT(Complete({"weir", "simulate", "llama-3-70b-64"}),
              ElementsAre("llama-3-70b-64-h100"));
  EXPECT_THAT(Complete({"weir", "simulate", "--schedule", "zb-"}),
              Contains("zb-h1"));
  EXPECT_THAT(Complete({"weir", "schedule", "lint", "zb-h"}),
              ElementsAre("zb-h1", "zb-h2"));
  EXPECT_THAT(Complete({"weir", "goodput", "--reliability", "bl"}),
              ElementsAre("bloom-176b"));
  EXPECT_THAT(Complete({"weir", "schema", "err"}), ElementsAre("error"));
  // Bash divides "--schedule=zb-h" into three words.
  EXPECT_THAT(Complete({"weir", "simulate", "--schedule", "=", "zb-h"}),
              ElementsAre("zb-h1", "zb-h2"));
  EXPECT_THAT(Complete({"weir", "simulate", "--schedule", "="}),
              Contains("gpipe"));
  EXPECT_THAT(Complete({"weir", "simulate", "--schedule=zb-h"}),
              ElementsAre("--schedule=zb-h1", "--schedule=zb-h2"));
  EXPECT_THAT(Complete({"weir", "compare", "--schedule", "gpipe,1f1b,zb-h"}),
              ElementsAre("gpipe,1f1b,zb-h1", "gpipe,1f1b,zb-h2"));
  // Files are completed by bash.
  EXPECT_THAT(Complete({"weir", "simulate", "--trace", "''"}),
              testing::IsEmpty());
}

TEST_F(ReferenceTest, FishHasALineForEveryOption) {
  const std::string script = FishCompletion(*app_);
  EXPECT_THAT(script, HasSubstr("__weir_is \\'simulate\\'"));
  EXPECT_THAT(script, HasSubstr(" -l context-parallel-size"));
  EXPECT_THAT(script, Not(HasSubstr("\n\n")));
}

TEST_F(ReferenceTest, FishCompletesCommandsOptionsAndValues) {
  if (!IsInstalled("fish")) GTEST_SKIP() << "fish is not installed";
  EXPECT_THAT(CompleteInFish("weir sim"), ElementsAre("simulate"));
  EXPECT_THAT(CompleteInFish("weir schedule li"), ElementsAre("lint", "list"));
  EXPECT_THAT(CompleteInFish("weir simulate --context-p"),
              ElementsAre("--context-parallel-size"));
  EXPECT_THAT(CompleteInFish("weir simulate --recompute se"),
              ElementsAre("selective"));
  EXPECT_THAT(CompleteInFish("weir simulate --model llama-3.1-8"),
              ElementsAre("llama-3.1-8b"));
  EXPECT_THAT(CompleteInFish("weir simulate llama-3-70b-64"),
              ElementsAre("llama-3-70b-64-h100"));
  EXPECT_THAT(CompleteInFish("weir schema err"), ElementsAre("error"));
  EXPECT_THAT(CompleteInFish("weir --"), ElementsAre("--help", "--version"));
  EXPECT_THAT(CompleteInFish("weir compare --schedule gpipe,zb-h"),
              ElementsAre("gpipe,zb-h1", "gpipe,zb-h2"));
  EXPECT_THAT(CompleteInFish("weir schedule show zb-h"),
              ElementsAre("zb-h1", "zb-h2"));
  // "show" has no options of "schedule show".
  EXPECT_THAT(CompleteInFish("weir show --microb"), testing::IsEmpty());
  EXPECT_THAT(CompleteInFish("weir schedule show --microb"),
              ElementsAre("--microbatches"));
}

TEST_F(ReferenceTest, ZshCompletesCommandsOptionsAndValues) {
  if (!IsInstalled("zsh")) GTEST_SKIP() << "zsh is not installed";
  EXPECT_EQ(CompleteInZsh("weir sim"), "<weir simulate >");
  EXPECT_EQ(CompleteInZsh("weir simulate --context-p"),
            "<weir simulate --context-parallel-size >");
  EXPECT_EQ(CompleteInZsh("weir simulate --recompute se"),
            "<weir simulate --recompute selective >");
  EXPECT_EQ(CompleteInZsh("weir simulate llama-3-70b-64"),
            "<weir simulate llama-3-70b-64-h100 >");
  EXPECT_EQ(CompleteInZsh("weir simulate --recompute=se"),
            "<weir simulate --recompute=selective >");
}

TEST_F(ReferenceTest, PageOfOptionsHasEveryCommandAndOption) {
  const OptionExamples examples = Examples();
  const std::string page = OptionPage(*app_, examples);
  for (const CLI::App* command : AllCommands(*app_)) {
    EXPECT_THAT(page,
                HasSubstr(absl::StrCat("\n## ", FullName(*command), "\n")));
    for (const CLI::Option* option : OptionsOf(*command)) {
      EXPECT_THAT(page, HasSubstr(MarkdownCell(NamesOf(*option)[0])));
      if (option->get_group() == kOptionsOfAllCommands) continue;
      const auto example = examples.find(option);
      ASSERT_NE(example, examples.end()) << NamesOf(*option)[0];
      EXPECT_THAT(page, HasSubstr(MarkdownCode(example->second)));
    }
  }
}

// Returns a program with two commands, "p a" with the option --both and "p b"
// with --both and --one and an example in its help.
std::unique_ptr<CLI::App> SmallProgram() {
  auto program = MakeProgram("p", "Does nothing.");
  const auto ignore = [](std::string) {};
  CLI::App* a = AddCommand(program.get(), "a", "Does nothing.");
  AddText(a, "--both", "X", "both", ignore);
  CLI::App* b = AddCommand(program.get(), "b", "Does nothing.",
                           {"b --one 'x y'", "b --one z > file"});
  AddText(b, "--both", "X", "both", ignore);
  AddText(b, "--one", "X", "one", ignore);
  return program;
}

TEST_F(ReferenceTest, LinesOfExamplesAreContinued) {
  const auto program = SmallProgram();
  const auto lines = ExampleLines(
      "# comment\n\np a --both 1\np a ...\np b ...\n... --both 2\n"
      "... --one 3\n",
      {program.get()});
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(*lines, ElementsAre("p a --both 1", "p a --both 2",
                                  "p b --both 2", "p b --one 3"));
}

TEST_F(ReferenceTest, LinesOfExamplesAreValid) {
  const auto program = SmallProgram();
  const auto lines = ExampleLines(
      "p a --two 1\np a --both 1 | cat\nq a\np a ...\n... --one 3\n",
      {program.get()});
  EXPECT_THAT(std::string(lines.status().message()),
              HasSubstr("\np a --two 1\np a --both 1 | cat\nq a\n... --one 3"));
}

TEST_F(ReferenceTest, ExamplesAreThoseOfTheHelpOrTheShortest) {
  const auto program = SmallProgram();
  const auto examples = FindOptionExamples(
      {"p a --both 10", "p a --both 1", "p b --one 1", "p b --both 1"}, {},
      program.get());
  ASSERT_TRUE(examples.ok()) << examples.status();
  const auto example = [&](const char* command, const char* option) {
    return examples->at(program->get_subcommand(command)->get_option(option));
  };
  EXPECT_EQ(example("a", "--both"), "p a --both 1");
  EXPECT_EQ(example("b", "--both"), "p b --both 1");
  EXPECT_EQ(example("b", "--one"), "p b --one 'x y'");
  EXPECT_THAT(OptionPage(*program, *examples),
              HasSubstr("| both |  | <code>p a --both 1</code> |"));
  EXPECT_THAT(ManPage(*program->get_subcommand("a"), "p 1", *examples),
              HasSubstr("\n.br\nExample: p a \\-\\-both 1\n"));
}

TEST_F(ReferenceTest, ExamplesMayBeThoseOfAnotherProgram) {
  const auto program = SmallProgram(), other = SmallProgram();
  const auto others =
      FindOptionExamples({"p a --both 10", "p b --both 1"}, {}, other.get());
  ASSERT_TRUE(others.ok()) << others.status();
  const auto examples = FindOptionExamples({}, *others, program.get());
  ASSERT_TRUE(examples.ok()) << examples.status();
  EXPECT_EQ(examples->at(program->get_subcommand("a")->get_option("--both")),
            "p b --both 1");
}

TEST_F(ReferenceTest, OptionsWithoutExampleAreNamed) {
  const auto program = SmallProgram();
  const auto examples = FindOptionExamples({"p a --both 1"}, {}, program.get());
  EXPECT_THAT(std::string(examples.status().message()),
              HasSubstr("no example of\np b --both"));
}

TEST_F(ReferenceTest, MarkupIsEscaped) {
  EXPECT_EQ(MarkdownCell("a|b <c> _d_\n*e*"),
            "a&#124;b &lt;c&gt; \\_d\\_ \\*e\\*");
}

TEST_F(ReferenceTest, PageOfFieldsHasTypesAndComments) {
  google::protobuf::FileDescriptorSet files;
  google::protobuf::FileDescriptorProto* file = files.add_file();
  file->set_name("a.proto");
  file->set_package("p");
  auto* message = file->add_message_type();
  message->set_name("Step");
  auto* field = message->add_field();
  field->set_name("wait_seconds");
  field->set_number(1);
  field->set_type(google::protobuf::FieldDescriptorProto::TYPE_DOUBLE);
  field->set_label(google::protobuf::FieldDescriptorProto::LABEL_REPEATED);
  auto* location = file->mutable_source_code_info()->add_location();
  for (int index : {4, 0, 2, 0}) location->add_path(index);
  location->set_leading_comments(
      " Waiting (models/layout.h). Default: 0.5 s as in Step.wait. More is "
      "possible.\n");
  location->set_trailing_comments(" of a\n rank\n");
  const auto page =
      FieldPage(files.SerializeAsString(),
                {"# proto-message: p.Step\nwait_seconds: 7\n"}, {"p.Step"});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page, HasSubstr("## a.proto\n\n### Step\n"));
  EXPECT_THAT(
      *page,
      HasSubstr(
          "| <code>wait\\_seconds</code> | <code>repeated "
          "double</code> | s | 0.5 s as in Step.wait | <code>7</code> | of a "
          "rank. Waiting. Default: 0.5 s as in Step.wait. More is possible. "
          "|"));
  EXPECT_FALSE(FieldPage(files.SerializeAsString(), {}, {"p.No"}).ok());
  EXPECT_FALSE(FieldPage("no descriptors", {}, {}).ok());
  EXPECT_THAT(std::string(FieldPage(files.SerializeAsString(), {}, {"p.Step"})
                              .status()
                              .message()),
              HasSubstr("p.Step.wait_seconds"));
}

TEST_F(ReferenceTest, ZshIsAnAutoloadedFunction) {
  EXPECT_EQ(ZshCompletion(*app_).rfind("#compdef weir\n", 0), 0);
}

}  // namespace weir::cli::reference_test
