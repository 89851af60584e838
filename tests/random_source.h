// SPDX-License-Identifier: Apache-2.0
// The source of all choices in random test inputs: a seeded generator in
// property tests, the bytes of an input in fuzzers. The same input generators
// serve both.
#ifndef WEIR_TESTS_RANDOM_SOURCE_H_
#define WEIR_TESTS_RANDOM_SOURCE_H_

#include <algorithm>
#include <random>
#include <vector>

namespace weir {

class RandomSource {
 public:
  virtual ~RandomSource() = default;

  // Draws from [low, high], both ends included.
  virtual int Int(int low, int high) = 0;
  virtual double Real(double low, double high) = 0;
  virtual void Shuffle(std::vector<int>* items) = 0;

  // Returns true for one of n equally likely draws.
  bool OneIn(int n) { return Int(1, n) == 1; }
  template <typename T>
  T Of(const std::vector<T>& choices) {
    return choices[Int(0, static_cast<int>(choices.size()) - 1)];
  }
};

// Draws from a Mersenne Twister, which must outlive this object.
class MersenneSource : public RandomSource {
 public:
  explicit MersenneSource(std::mt19937* random) : random_(*random) {}

  int Int(int low, int high) override {
    return std::uniform_int_distribution<>(low, high)(random_);
  }
  double Real(double low, double high) override {
    return std::uniform_real_distribution<>(low, high)(random_);
  }
  void Shuffle(std::vector<int>* items) override {
    std::shuffle(items->begin(), items->end(), random_);
  }

 private:
  std::mt19937& random_;
};

}  // namespace weir

#endif  // WEIR_TESTS_RANDOM_SOURCE_H_
