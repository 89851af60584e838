// SPDX-License-Identifier: Apache-2.0
// Runs a fuzzer's entry point on mutations of its corpus, the same ones every
// time, for machines without libFuzzer. A failure is a crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace weir::fuzz::mutation_test {

constexpr int kMutationsPerFile = 2000;

void Feed(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()),
                         text.size());
}

// Values that break parsers, which replace a number or are inserted anywhere.
const char* const kNasty[] = {
    "0",      "-1",   "4294967296", "1e999", "nan",  "inf",
    "1e-320", "{",    "}",          "[",     "\"",   "\n",
    "\t",     " -- ", "null",       "true",  "\xff", "99999999999999999999"};

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& corpus) : corpus_(corpus) {}

  std::string Mutate(std::string text) {
    for (uint32_t left = 1 + Below(4); left > 0; --left) MutateOnce(&text);
    return text;
  }

 private:
  // Distributions of the standard library differ between implementations.
  size_t Below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  void MutateOnce(std::string* text) {
    const size_t at = Below(text->size());
    switch (Below(7)) {
      case 0:
        if (!text->empty()) (*text)[at] = static_cast<char>(random_());
        break;
      case 1:
        text->erase(at, 1 + Below(20));
        break;
      case 2:
        text->insert(at, text->substr(at, Below(80)));
        break;
      case 3:
        text->insert(at, kNasty[Below(std::size(kNasty))]);
        break;
      case 4:
        ReplaceNumber(text, at);
        break;
      case 5:
        Splice(text, at);
        break;
      case 6:
        if (Below(10) == 0) text->resize(at);
        break;
    }
  }

  void ReplaceNumber(std::string* text, size_t at) {
    const size_t begin = text->find_first_of("0123456789", at);
    if (begin == std::string::npos) return;
    const size_t end = text->find_first_not_of("0123456789.", begin);
    text->replace(begin, std::min(end, text->size()) - begin,
                  Below(2) == 0 ? kNasty[Below(std::size(kNasty))]
                                : absl::StrCat(Below(10000)));
  }

  void Splice(std::string* text, size_t at) {
    const std::string& other = corpus_[Below(corpus_.size())];
    text->insert(at, other.substr(Below(other.size()), Below(200)));
  }

  const std::vector<std::string>& corpus_;
  std::mt19937 random_{20240229};
};

TEST(MutationTest, NoMutationOfTheCorpusCrashes) {
  std::vector<std::string> corpus;
  for (const absl::string_view path : absl::StrSplit(WEIR_FUZZ_CORPUS, ':')) {
    auto text = ReadFile(absl::StrCat(WEIR_SOURCE_DIR, "/", path));
    ASSERT_TRUE(text.ok()) << text.status();
    corpus.push_back(*std::move(text));
  }
  Mutator mutator(corpus);
  for (const std::string& text : corpus) {
    Feed(text);
    for (int i = 0; i < kMutationsPerFile; ++i) Feed(mutator.Mutate(text));
  }
}

}  // namespace weir::fuzz::mutation_test
