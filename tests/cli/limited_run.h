// SPDX-License-Identifier: Apache-2.0
// Runs a program under limits of time and memory.
#ifndef WEIR_TESTS_CLI_LIMITED_RUN_H_
#define WEIR_TESTS_CLI_LIMITED_RUN_H_

#include <cstddef>
#include <string>
#include <vector>

namespace weir {

struct RunLimits {
  // Tells a hang from slow work: the slowest runs take 5 s of processor time,
  // and several times as long on a busy machine.
  double seconds = 60;
  size_t address_space_bytes = size_t{6} << 30;
};

struct LimitedRun {
  bool hung = false;   // it was killed at the end of its time
  int exit_code = -1;  // -1: it hung or a signal ended it
  int signal = 0;      // that ended it
  std::string err;     // standard error
};

// Runs `arguments` (the program first) in `folder`, in a session of its own, so
// without a terminal, standard input and output being /dev/null. Ends all that
// it started. May be called from several threads. Built with a sanitizer, the
// program has ten times as long and no limit of memory.
LimitedRun RunLimited(const std::vector<std::string>& arguments,
                      const std::string& folder, const RunLimits& limits = {});

}  // namespace weir

#endif  // WEIR_TESTS_CLI_LIMITED_RUN_H_
