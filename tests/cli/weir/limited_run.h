// SPDX-License-Identifier: Apache-2.0
// Runs a program with limits on time and memory.
#ifndef WEIR_TESTS_CLI_WEIR_LIMITED_RUN_H_
#define WEIR_TESTS_CLI_WEIR_LIMITED_RUN_H_

#include <cstddef>
#include <string>
#include <vector>

namespace weir::cli {

struct RunLimits {
  // Distinguishes a hang from slow work: the slowest runs take 5 s of CPU time,
  // and several times as long on a busy machine.
  double seconds = 60;
  size_t address_space_bytes = size_t{6} << 30;
};

struct LimitedRun {
  bool hung = false;   // killed at its time limit
  int exit_code = -1;  // -1 if it hung or was ended by a signal
  int signal = 0;      // the signal that ended it
  std::string err;     // standard error
};

// Runs `arguments` (the program first) in `folder`, in its own session and thus
// without a terminal, with /dev/null as standard input and output. Kills all
// processes that it started. Thread-safe. With a sanitizer, the program has ten
// times as long and no memory limit.
LimitedRun RunLimited(const std::vector<std::string>& arguments,
                      const std::string& folder, const RunLimits& limits = {});

}  // namespace weir::cli

#endif  // WEIR_TESTS_CLI_WEIR_LIMITED_RUN_H_
