// SPDX-License-Identifier: Apache-2.0
// The interface of structure-aware fuzzers and their macros for invariants.
#ifndef WEIR_TESTS_FUZZ_TARGET_H_
#define WEIR_TESTS_FUZZ_TARGET_H_

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fuzz/choices.h"

namespace weir::fuzz {

// Decodes one input, runs it and checks the invariants of its results. Returns
// true if the input passed validation, so that the share of inputs that test
// more than validation can be reported.
bool RunInput(Choices* choices);

[[noreturn]] inline void InvariantFailed(const char* file, int line,
                                         const char* fact,
                                         const std::string& details) {
  std::fprintf(stderr, "%s:%d: invariant does not hold: %s\n%s\n", file, line,
               fact, details.c_str());
  std::abort();
}

// Aborts with the details, a std::string that is computed only on failure.
#define REQUIRE_THAT(fact, details)                                      \
  do {                                                                   \
    if (!(fact))                                                         \
      ::weir::fuzz::InvariantFailed(__FILE__, __LINE__, #fact, details); \
  } while (false)
#define REQUIRE(fact) REQUIRE_THAT(fact, std::string())
#define REQUIRE_OK(status) REQUIRE_THAT((status).ok(), StatusText(status))

template <typename StatusLike>
std::string StatusText(const StatusLike& status) {
  if constexpr (requires { status.status(); }) {
    return status.status().ToString();
  } else {
    return status.ToString();
  }
}

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_TARGET_H_
