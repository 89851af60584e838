// SPDX-License-Identifier: Apache-2.0
// The data of a report: a JSON header and columns of numbers.
#ifndef WEIR_RESULTS_REPORT_DATA_BLOCK_H_
#define WEIR_RESULTS_REPORT_DATA_BLOCK_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace weir::results {

// Format, little-endian:
//
//   u32      length of the header in bytes
//   header   JSON, UTF-8, padded with spaces so that columns begin at a
//            multiple of 8
//   columns  back to back, each padded to a multiple of 8
//
// The header is {"version": 1, "sections": [...], "columns": [{"type": "u8",
// "length": 3, "offset": 0}, ...]}; offsets count from the first column.
// Sections name columns by their index. A reader must refuse other versions and
// skip sections of unknown type.
inline constexpr int kDataBlockVersion = 1;

class DataBlock {
 public:
  // Adds a column with the narrowest of u8, u16 and u32; returns its index.
  int Add(std::span<const uint32_t> values);
  int AddDoubles(std::span<const double> values);  // f64

  // Returns the block. Sets "version" and "columns" of the header.
  std::string Finish(nlohmann::ordered_json header) const;

 private:
  int AddBytes(const char* type, size_t length, const void* data, size_t size);

  nlohmann::ordered_json columns_ = nlohmann::ordered_json::array();
  std::string bytes_;
};

// Numbers every distinct value.
class ValueTable {
 public:
  uint32_t IndexOf(double value);
  const std::vector<double>& values() const { return values_; }

 private:
  absl::flat_hash_map<double, uint32_t> index_;
  std::vector<double> values_;
};

// Counts time in steps so small that a run fits 32 bits.
class Ticks {
 public:
  // Chooses the smallest power of ten, in seconds, with which `end_seconds` is
  // less than 4e9 ticks.
  explicit Ticks(double end_seconds);

  double tick_seconds() const { return tick_seconds_; }
  // Rounds; keeps the order of times.
  uint32_t Of(double seconds) const;

 private:
  double tick_seconds_;
};

}  // namespace weir::results

#endif  // WEIR_RESULTS_REPORT_DATA_BLOCK_H_
