// SPDX-License-Identifier: Apache-2.0
// Runs a structure-aware target on saved inputs and on random ones from a fixed
// seed: the same inputs in every run and with every compiler.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/files.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/target.h"

namespace weir::fuzz::structured_test {

// The minimum share of inputs that must pass validation; invalid inputs test
// little.
constexpr double kLeastValidShare = 0.6;

std::string current;  // current input, for the signal handler

// Saves the failing input, so that it can be added to the corpus.
void SaveInput(int signal_number) {
  std::FILE* file = std::fopen("crash-input", "wb");
  if (file != nullptr) {
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
    std::fputs("The input is saved in ./crash-input\n", stderr);
  }
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

bool Feed(std::string input) {
  current = std::move(input);
  Choices choices(reinterpret_cast<const uint8_t*>(current.data()),
                  current.size());
  return RunInput(&choices);
}

std::string RandomInput(std::mt19937* random) {
  std::string input(4 + (*random)() % 400, '\0');
  for (char& byte : input) byte = static_cast<char>((*random)());
  return input;
}

int FromEnvironment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

class StructuredTest : public ::testing::Test {
 protected:
  void SetUp() override {
    signal(SIGABRT, SaveInput);
    signal(SIGSEGV, SaveInput);
  }
};

TEST_F(StructuredTest, SavedInputsKeepTheInvariants) {
  std::error_code error;
  std::vector<std::string> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(WEIR_FUZZ_SAVED, error)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const auto input = ReadFile(path);
    ASSERT_TRUE(input.ok()) << input.status();
    Feed(*input);
  }
}

TEST_F(StructuredTest, RandomInputsKeepTheInvariantsAndAreMostlyValid) {
  const int num_inputs = FromEnvironment("WEIR_FUZZ_INPUTS", WEIR_FUZZ_INPUTS);
  std::mt19937 random(FromEnvironment("WEIR_FUZZ_SEED", 20240229));
  int num_valid = 0;
  for (int i = 0; i < num_inputs; ++i) num_valid += Feed(RandomInput(&random));
  std::printf("%d of %d inputs are valid\n", num_valid, num_inputs);
  EXPECT_GE(num_valid, kLeastValidShare * num_inputs);
}

}  // namespace weir::fuzz::structured_test
