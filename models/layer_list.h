// SPDX-License-Identifier: Apache-2.0
// A list of the layers of a model that stores equal layers only once.
#ifndef WEIR_MODELS_LAYER_LIST_H_
#define WEIR_MODELS_LAYER_LIST_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "models/layer_work.h"

namespace weir::models {

// Stores each kind of layer once, because a block takes kilobytes and thousands
// of copies of it do not fit into a cache.
class LayerList {
 public:
  LayerList() = default;
  // Makes each layer a separate kind. Implicit, so that the result of LayersOf
  // can be passed as a LayerList.
  LayerList(std::vector<LayerWork> layers);  // NOLINT(google-explicit-*)

  // Adds a kind that has no layers yet. Returns its number.
  int32_t AddKind(LayerWork layer);
  // Adds a layer of the kind with this number.
  void Add(int32_t kind) { kind_of_.push_back(kind); }

  size_t size() const { return kind_of_.size(); }
  bool empty() const { return kind_of_.empty(); }
  const LayerWork& operator[](size_t i) const { return kinds_[kind_of_[i]]; }
  const LayerWork& front() const { return (*this)[0]; }
  const LayerWork& back() const { return (*this)[size() - 1]; }
  // Returns the number of the kind of a layer.
  int32_t kind_of(size_t i) const { return kind_of_[i]; }
  size_t num_kinds() const { return kinds_.size(); }
  const LayerWork& kind(int32_t number) const { return kinds_[number]; }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = LayerWork;
    using difference_type = std::ptrdiff_t;
    using pointer = const LayerWork*;
    using reference = const LayerWork&;

    Iterator(const LayerList* list, size_t at) : list_(list), at_(at) {}
    reference operator*() const { return (*list_)[at_]; }
    pointer operator->() const { return &**this; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const LayerList* list_;
    size_t at_;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  std::vector<LayerWork> kinds_;
  std::vector<int32_t> kind_of_;  // [layer]
};

// Returns the layers of LayersOf, with the same requirements.
LayerList ListLayers(const Model& model, const WorkSpec& spec);

// Returns the layers with the MTP modules as a part of the head, without copies
// of the embedding: for programs that partition embedding, blocks and head.
LayerList JoinMtpWithHead(const LayerList& layers);

// See the functions of the same names in layer_work.h.
double ModelFlops(const LayerList& layers, int tensor_parallel);
double ForwardFlops(const LayerList& layers, int tensor_parallel);
double StageParameters(const LayerList& layers, int first, int last);
double StageExpertParameters(const LayerList& layers, int first, int last);
double StageQuantizedParameters(const LayerList& layers, int first, int last);
// Returns the parameters of adapters in a stage, and those of experts'
// adapters.
double StageAdapterParameters(const LayerList& layers, int first, int last);
double StageExpertAdapterParameters(const LayerList& layers, int first,
                                    int last);

}  // namespace weir::models

#endif  // WEIR_MODELS_LAYER_LIST_H_
