// SPDX-License-Identifier: Apache-2.0
// Decodes the bytes of a fuzzer's input into choices, so that every input is a
// structure and mutating the bytes mutates that structure.
//
// The first four bytes seed a generator that makes all choices for which there
// are no bytes left. A short input is a complete random structure, and each
// further byte determines one more choice.
#ifndef WEIR_TESTS_FUZZ_CHOICES_H_
#define WEIR_TESTS_FUZZ_CHOICES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/random_source.h"

namespace weir::fuzz {

class Choices : public RandomSource {
 public:
  // The bytes must outlive this object.
  Choices(const uint8_t* data, size_t size);

  int Int(int low, int high) override;
  double Real(double low, double high) override;
  void Shuffle(std::vector<int>* items) override;

  // Draws a value whose logarithm is uniform. Requires: 0 < low <= high.
  double LogReal(double low, double high);

  // Draws valid UTF-8 of at most `max_length` characters: mostly an identifier,
  // else text with control characters, quotes, format characters of other
  // programs and non-ASCII letters.
  std::string Text(int max_length = 12);

  // Draws arbitrary bytes.
  std::string Bytes(int max_size);

 private:
  uint64_t Bits(int num_bytes);

  absl::string_view rest_;
  uint64_t state_;  // state of the generator
};

// Flips, inserts, removes or repeats a few bytes.
std::string Damage(std::string bytes, Choices* choices);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_CHOICES_H_
