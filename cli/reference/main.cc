// SPDX-License-Identifier: Apache-2.0
// "weir-reference FOLDER INPUTS EXAMPLE..." writes manual pages, completion
// scripts and the page of options of weir and weir-calibrate, from the
// definitions of their options, and the page of the fields of input files, from
// descriptors that protoc wrote to the file INPUTS, with values of the files
// EXAMPLE. The folder gets man/, bash/, zsh/, fish/ and manual/.
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
#include "cli/reference/field_page.h"
#include "cli/reference/man_page.h"
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

  // Returns false after a failure, which it reports.
  bool Write(const CLI::App& program) {
    WritePage(program);
    for (const CLI::App* command : AllCommands(program)) WritePage(*command);
    const std::string& name = program.get_name();
    WriteFile("bash", name, BashCompletion(program));
    WriteFile("zsh", absl::StrCat("_", name), ZshCompletion(program));
    WriteFile("fish", absl::StrCat(name, ".fish"), FishCompletion(program));
    WriteFile("manual", absl::StrCat("options-", name, ".md"),
              OptionPage(program));
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
  void WritePage(const CLI::App& app) {
    WriteFile("man", absl::StrCat(ManPageName(app), ".1"),
              ManPage(app, version_));
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
  bool ok_ = true;
};

}  // namespace
}  // namespace weir::cli

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "error: weir-reference: expected the folder to write, a file "
                 "of descriptors and files of examples\n";
    return 2;
  }
  weir::cli::CommandLine line;
  weir::cli::CalibrateLine calibrate_line;
  weir::cli::ReferenceWriter writer(argv[1],
                                    absl::StrCat("weir ", weir::WeirVersion()));
  const bool weir = writer.Write(*weir::cli::MakeWeirApp(&line));
  const bool calibrate =
      writer.Write(*weir::cli::MakeCalibrateApp(&calibrate_line));
  return weir && calibrate &&
                 writer.WriteFields(argv[2], {argv + 3, argv + argc})
             ? 0
             : 1;
}
