// SPDX-License-Identifier: Apache-2.0
// A cache with a bounded total weight.
#ifndef WEIR_BASE_BOUNDED_CACHE_H_
#define WEIR_BASE_BOUNDED_CACHE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace weir {

// Maps a string that contains everything the value depends on to the value.
// Clears itself when the total weight would exceed `most_weight`; values in use
// are kept alive by their users.
template <typename Value>
class BoundedCache {
 public:
  explicit BoundedCache(size_t most_weight) : most_weight_(most_weight) {}

  // Returns null if the key is absent.
  std::shared_ptr<const Value> Find(const std::string& key) const {
    const auto at = values_.find(key);
    return at == values_.end() ? nullptr : at->second;
  }

  // Stores and returns `value`. Does not store a value that is heavier than the
  // limit, since it would only occupy memory while a similarly large one is
  // computed.
  std::shared_ptr<const Value> Add(const std::string& key, size_t weight,
                                   std::shared_ptr<const Value> value) {
    if (weight > most_weight_) return value;
    if (weight_ + weight > most_weight_) {
      values_.clear();
      weight_ = 0;
    }
    weight_ += weight;
    return values_[key] = std::move(value);
  }

 private:
  const size_t most_weight_;
  size_t weight_ = 0;
  absl::flat_hash_map<std::string, std::shared_ptr<const Value>> values_;
};

}  // namespace weir

#endif  // WEIR_BASE_BOUNDED_CACHE_H_
