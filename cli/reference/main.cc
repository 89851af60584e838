// SPDX-License-Identifier: Apache-2.0
// Writes manual pages and completion scripts of weir and weir-calibrate, from
// the definitions of their options, to man/, bash/, zsh/ and fish/ in a folder.
#include <filesystem>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/version.h"
#include "cli/options/add_option.h"
#include "cli/reference/commands.h"
#include "cli/reference/completion.h"
#include "cli/reference/man_page.h"
#include "cli/weir/weir_app.h"
#include "cli/weir_calibrate/calibrate_app.h"

namespace weir::cli {
namespace {

class ReferenceWriter {
 public:
  ReferenceWriter(std::string folder, std::string version)
      : folder_(std::move(folder)), version_(std::move(version)) {}

  // Returns false after a failure, which it reports.
  bool Write(const CLI::App& program) {
    WritePage(program);
    for (const CLI::App* command : AllCommands(program)) WritePage(*command);
    const std::string name = program.get_name();
    WriteFile("bash", name, BashCompletion(program));
    WriteFile("zsh", absl::StrCat("_", name), ZshCompletion(program));
    WriteFile("fish", absl::StrCat(name, ".fish"), FishCompletion(program));
    return ok_;
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
  if (argc != 2) {
    std::cerr << "error: weir-reference: expected the folder to write\n";
    return 2;
  }
  weir::cli::CommandLine line;
  weir::cli::CalibrateLine calibrate_line;
  weir::cli::ReferenceWriter writer(argv[1],
                                    absl::StrCat("weir ", weir::WeirVersion()));
  const bool weir = writer.Write(*weir::cli::MakeWeirApp(&line));
  const bool calibrate =
      writer.Write(*weir::cli::MakeCalibrateApp(&calibrate_line));
  return weir && calibrate ? 0 : 1;
}
