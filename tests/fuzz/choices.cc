// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/choices.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/split_mix.h"

namespace weir::fuzz {
namespace {

constexpr int kSeedBytes = 4;

uint64_t Next(uint64_t* state) { return SplitMix(*state += kSplitMixStep); }

const char* const kUnusual[] = {
    "`id`",   "$(id)", "\"",   "'",    "\\",   "\n",   "\t",     "\x1b[31m",
    "=1+1",   "+1",    "-1",   "@x",   ",",    ";",    "{",      "}",
    "<b>",    "&amp;", "%s%n", "/",    "../",  "a b",  "\u00e9", "\u4e2d",
    "\u202e", "nan",   "inf",  "1e99", "null", "true", "\x7f",   "#"};

}  // namespace

Choices::Choices(const uint8_t* data, size_t size)
    : rest_(reinterpret_cast<const char*>(data), size), state_(0) {
  state_ = Bits(kSeedBytes);
}

uint64_t Choices::Bits(int num_bytes) {
  if (rest_.size() < static_cast<size_t>(num_bytes)) {
    rest_ = {};
    return Next(&state_) >> (64 - 8 * num_bytes);
  }
  uint64_t bits = 0;
  for (int i = 0; i < num_bytes; ++i) {
    bits = bits << 8 | static_cast<uint8_t>(rest_[i]);
  }
  rest_.remove_prefix(num_bytes);
  return bits;
}

int Choices::Int(int low, int high) {
  const uint64_t range = static_cast<int64_t>(high) - low + 1;
  if (range == 1) return low;
  const int num_bytes = range <= 1 << 8 ? 1 : range <= 1 << 16 ? 2 : 4;
  return static_cast<int>(low + static_cast<int64_t>(Bits(num_bytes) % range));
}

double Choices::Real(double low, double high) {
  const double part = static_cast<double>(Bits(2)) / 0xffff;
  return std::min(low + part * (high - low), high);
}

void Choices::Shuffle(std::vector<int>* items) {
  for (size_t left = items->size(); left > 1; --left) {
    std::swap((*items)[left - 1], (*items)[Int(0, static_cast<int>(left) - 1)]);
  }
}

double Choices::LogReal(double low, double high) {
  return std::clamp(std::exp(Real(std::log(low), std::log(high))), low, high);
}

std::string Choices::Text(int max_length) {
  const bool unusual = OneIn(4);
  std::string text;
  for (int left = Int(0, max_length); left > 0; --left) {
    if (unusual && OneIn(2)) {
      text += kUnusual[Int(0, static_cast<int>(std::size(kUnusual)) - 1)];
    } else {
      text += static_cast<char>('a' + Int(0, 25));
    }
  }
  return text;
}

std::string Choices::Bytes(int max_size) {
  std::string bytes;
  for (int left = Int(0, max_size); left > 0; --left) {
    bytes += static_cast<char>(Bits(1));
  }
  return bytes;
}

std::string Damage(std::string bytes, Choices* choices) {
  for (int left = choices->Int(1, 4); left > 0 && !bytes.empty(); --left) {
    const size_t at = choices->Int(0, static_cast<int>(bytes.size()) - 1);
    const size_t length = choices->Int(1, 24);
    switch (choices->Int(0, 4)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << choices->Int(0, 7)));
        break;
      case 1:
        bytes.erase(at, length);
        break;
      case 2:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 3:
        bytes.insert(at, choices->Bytes(8));
        break;
      default:
        if (choices->OneIn(2)) bytes.resize(at);
        break;
    }
  }
  return bytes;
}

}  // namespace weir::fuzz
