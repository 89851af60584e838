// SPDX-License-Identifier: Apache-2.0
#include "results/report/data_block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/json_text.h"

namespace weir::results {
namespace {

constexpr size_t kAlignment = 8;

void AppendLittleEndian(uint64_t value, size_t num_bytes, std::string* out) {
  for (size_t i = 0; i < num_bytes; ++i) {
    out->push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
}

void Pad(char with, std::string* out) {
  while (out->size() % kAlignment != 0) out->push_back(with);
}

}  // namespace

int DataBlock::Add(std::span<const uint32_t> values) {
  const uint32_t most =
      values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  const size_t width = most <= 0xff ? 1 : (most <= 0xffff ? 2 : 4);
  const size_t offset = bytes_.size();
  for (const uint32_t value : values) {
    AppendLittleEndian(value, width, &bytes_);
  }
  Pad('\0', &bytes_);
  columns_.push_back(
      {{"type", width == 1 ? "u8" : (width == 2 ? "u16" : "u32")},
       {"length", values.size()},
       {"offset", offset}});
  return static_cast<int>(columns_.size()) - 1;
}

int DataBlock::AddDoubles(std::span<const double> values) {
  const size_t offset = bytes_.size();
  for (const double value : values) {
    AppendLittleEndian(std::bit_cast<uint64_t>(value), sizeof(value), &bytes_);
  }
  Pad('\0', &bytes_);
  columns_.push_back(
      {{"type", "f64"}, {"length", values.size()}, {"offset", offset}});
  return static_cast<int>(columns_.size()) - 1;
}

std::string DataBlock::Finish(nlohmann::ordered_json header) const {
  header["version"] = kDataBlockVersion;
  header["columns"] = columns_;
  const std::string text = DumpJson(header);
  std::string block;
  block.reserve(text.size() + bytes_.size() + 2 * kAlignment);
  AppendLittleEndian(text.size(), 4, &block);
  block += text;
  Pad(' ', &block);
  return block + bytes_;
}

uint32_t ValueTable::IndexOf(double value) {
  const auto [at, added] =
      index_.emplace(value, static_cast<uint32_t>(values_.size()));
  if (added) values_.push_back(value);
  return at->second;
}

Ticks::Ticks(double end_seconds) {
  constexpr double kMostTicks = 4e9;
  const double exponent =
      end_seconds > 0 ? std::ceil(std::log10(end_seconds / kMostTicks)) : -9;
  tick_seconds_ = std::pow(10, std::clamp(exponent, -300.0, 300.0));
}

uint32_t Ticks::Of(double seconds) const {
  const double ticks = std::round(seconds / tick_seconds_);
  return static_cast<uint32_t>(
      std::clamp(ticks, 0.0, double{std::numeric_limits<uint32_t>::max()}));
}

}  // namespace weir::results
