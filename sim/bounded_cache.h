// SPDX-License-Identifier: Apache-2.0
// What was made once and may be asked for again.
#ifndef WEIR_SIM_BOUNDED_CACHE_H_
#define WEIR_SIM_BOUNDED_CACHE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace weir {

// By a text that says everything the value depends on. Starts over when what it
// holds weighs too much: values in use live on with those who hold them.
template <typename Value>
class BoundedCache {
 public:
  explicit BoundedCache(size_t most_weight) : most_weight_(most_weight) {}

  // Null: not there.
  std::shared_ptr<const Value> Find(const std::string& key) const {
    const auto at = values_.find(key);
    return at == values_.end() ? nullptr : at->second;
  }

  // Returns the value. One that weighs more than all may together is not kept:
  // it would only stay in memory while something as large is made.
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

#endif  // WEIR_SIM_BOUNDED_CACHE_H_
