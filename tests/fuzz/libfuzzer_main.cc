// SPDX-License-Identifier: Apache-2.0
// Runs a structure-aware target under libFuzzer and prints at the end how many
// inputs passed validation.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/choices.h"
#include "tests/fuzz/target.h"

namespace {

int64_t num_inputs = 0, num_valid = 0;

void PrintShare() {
  std::fprintf(stderr, "inputs: %lld, valid: %lld\n",
               static_cast<long long>(num_inputs),
               static_cast<long long>(num_valid));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool registered = std::atexit(PrintShare) == 0;
  (void)registered;
  weir::fuzz::Choices choices(data, size);
  ++num_inputs;
  num_valid += weir::fuzz::RunInput(&choices);
  return 0;
}
