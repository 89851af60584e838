// SPDX-License-Identifier: Apache-2.0
// Circular, endless, huge or deeply nested files and paths that are not files,
// and runs of a program with them.
#ifndef WEIR_TESTS_CLI_WEIR_PATHOLOGICAL_FILES_H_
#define WEIR_TESTS_CLI_WEIR_PATHOLOGICAL_FILES_H_

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir::cli {

class PathologicalFiles {
 public:
  // Creates the files in `folder`, which must not exist.
  explicit PathologicalFiles(std::string folder);

  std::string Path(absl::string_view name) const;

  // Inputs that are refused when they are opened or before.
  const std::vector<std::string>& quick() const { return quick_; }
  // Inputs that are read at least in part.
  const std::vector<std::string>& slow() const { return slow_; }
  // A FIFO without a writer.
  std::string unwritten() const { return Path("unwritten"); }
  const std::vector<std::string>& outputs() const { return outputs_; }

  // Fails the test if a program has written to one of slow(), or replaced or
  // removed a folder, link, pipe, socket or device.
  void ExpectUnchanged() const;

 private:
  void Fill(absl::string_view name, size_t bytes, absl::string_view piece);
  void MakeQuick();
  void MakeSlow();
  void MakeOutputs();

  const std::string folder_;
  std::vector<std::string> quick_, slow_, outputs_;
  std::map<std::string, std::filesystem::file_time_type> written_;
  std::map<std::string, std::filesystem::file_type> types_;
};

struct Trial {
  std::string label;               // shown in failures
  std::vector<std::string> words;  // the program and its arguments
};

// Runs each trial in an empty folder, on `num_threads` threads, and returns
// their standard error. Fails the test for each trial that hangs, is killed by
// a signal, exits with an undocumented code or prints too much. `name`
// distinguishes concurrent calls.
std::vector<std::string> RunTrials(const std::string& name,
                                   const std::vector<Trial>& trials,
                                   size_t num_threads);

}  // namespace weir::cli

#endif  // WEIR_TESTS_CLI_WEIR_PATHOLOGICAL_FILES_H_
