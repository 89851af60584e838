// SPDX-License-Identifier: Apache-2.0
// "weir-reference FOLDER COMMANDS INPUTS EXAMPLE..." writes manual pages,
// completion scripts and the page of options of weir and weir-calibrate, from
// the definitions of their options, with examples of the file COMMANDS, and the
// page of the fields of input files, from descriptors that protoc wrote to the
// file INPUTS, with values of the files EXAMPLE. The folder gets man/, bash/,
// zsh/, fish/ and manual/.
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/version.h"
#include "cli/options/add_option.h"
#include "cli/options/command_tree.h"
#include "cli/reference/completion.h"
#include "cli/reference/example_lines.h"
#include "cli/reference/field_page.h"
#include "cli/reference/man_page.h"
#include "cli/reference/option_examples.h"
#include "cli/reference/option_pages.h"
#include "cli/weir/weir_app.h"
#include "cli/weir_calibrate/calibrate_app.h"

namespace weir::cli {
namespace {

// What files of users contain.
const std::vector<std::string>& TypesOfFiles() {
  static const auto& types = *new std::vector<std::string>{
      "weir.Scenario",        "weir.Model",      "weir.Cluster",
      "weir.DeviceProfile",   "weir.Runtime",    "weir.Recipe",
      "weir.DefaultSet",      "weir.Sweep",      "weir.PowerModel",
      "weir.MeasuredColumns", "weir.Reliability"};
  return types;
}

class ReferenceWriter {
 public:
  ReferenceWriter(std::string folder, std::string version)
      : folder_(std::move(folder)), version_(std::move(version)) {}

  // Returns false after a failure, which it reports. `lines`: examples, also of
  // other programs; options of an earlier program have its examples.
  bool Write(const std::vector<std::string>& lines, CLI::App* app) {
    const absl::StatusOr<OptionExamples> examples =
        FindOptionExamples(lines, examples_, app);
    if (!examples.ok()) {
      std::cerr << "error: " << examples.status().message() << "\n";
      return false;
    }
    const CLI::App& program = *app;
    WritePage(program, *examples);
    for (const CLI::App* command : AllCommands(program)) {
      WritePage(*command, *examples);
    }
    examples_.insert(examples->begin(), examples->end());
    const std::string& name = program.get_name();
    WriteFile("bash", name, BashCompletion(program));
    WriteFile("zsh", absl::StrCat("_", name), ZshCompletion(program));
    WriteFile("fish", absl::StrCat(name, ".fish"), FishCompletion(program));
    WriteFile("manual", absl::StrCat("options-", name, ".md"),
              OptionPage(program, *examples));
    return ok_;
  }

  // The same for the page of fields.
  bool WriteFields(const std::string& descriptors,
                   const std::vector<std::string>& example_files) {
    std::vector<std::string> examples;
    for (const std::string& file : example_files) {
      const absl::StatusOr<std::string> contents = ReadFile(file);
      if (contents.ok()) examples.push_back(*contents);
    }
    const absl::StatusOr<std::string> contents = ReadFile(descriptors);
    const absl::StatusOr<std::string> page =
        contents.ok() ? FieldPage(*contents, examples, TypesOfFiles())
                      : contents.status();
    if (page.ok()) {
      WriteFile("manual", "fields.md", *page);
      return ok_;
    }
    std::cerr << "error: " << descriptors << ": " << page.status().message()
              << "\n";
    return false;
  }

 private:
  void WritePage(const CLI::App& app, const OptionExamples& examples) {
    WriteFile("man", absl::StrCat(ManPageName(app), ".1"),
              ManPage(app, version_, examples));
  }

  void WriteFile(const std::string& kind, const std::string& name,
                 const std::string& contents) {
    const std::filesystem::path path =
        std::filesystem::path(folder_) / kind / name;
    std::error_code ignored;
    std::filesystem::create_directories(path.parent_path(), ignored);
    const absl::Status status = weir::WriteFile(path.string(), contents);
    if (status.ok()) return;
    std::cerr << "error: " << status.message() << "\n";
    ok_ = false;
  }

  std::string folder_, version_;
  OptionExamples examples_;  // of the programs so far
  bool ok_ = true;
};

// Reads the examples of commands from a file; reports a failure.
absl::StatusOr<std::vector<std::string>> ReadExampleLines(
    const std::string& path, const std::vector<CLI::App*>& programs) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  absl::StatusOr<std::vector<std::string>> lines =
      text.ok() ? ExampleLines(*text, programs) : text.status();
  if (!lines.ok()) {
    std::cerr << "error: " << path << ": " << lines.status().message() << "\n";
  }
  return lines;
}

// Returns the exit code.
int WriteReference(const std::string& folder, const std::string& commands,
                   const std::string& descriptors,
                   const std::vector<std::string>& examples) {
  CommandLine line;
  CalibrateLine calibrate_line;
  const auto weir = MakeWeirApp(&line);
  const auto calibrate = MakeCalibrateApp(&calibrate_line);
  const auto lines = ReadExampleLines(commands, {weir.get(), calibrate.get()});
  if (!lines.ok()) return 1;
  ReferenceWriter writer(folder, absl::StrCat("weir ", WeirVersion()));
  // Reports the failures of both programs.
  const bool wrote_weir = writer.Write(*lines, weir.get());
  const bool wrote_calibrate = writer.Write(*lines, calibrate.get());
  return wrote_weir && wrote_calibrate &&
                 writer.WriteFields(descriptors, examples)
             ? 0
             : 1;
}

}  // namespace
}  // namespace weir::cli

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "error: weir-reference: expected the folder to write, a file "
                 "of commands, a file of descriptors and files of examples\n";
    return 2;
  }
  return weir::cli::WriteReference(argv[1], argv[2], argv[3],
                                   {argv + 4, argv + argc});
}
