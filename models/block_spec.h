// SPDX-License-Identifier: Apache-2.0
// The kinds of blocks that a transformer consists of.
#ifndef WEIR_MODELS_BLOCK_SPEC_H_
#define WEIR_MODELS_BLOCK_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.pb.h"

namespace weir::models {

// A kind of block: the fields of the model, replaced by those of the kind.
struct BlockSpec {
  std::string name = "block";  // unique in a model
  Transformer transformer;     // without kinds and encoder
  bool mixer = true;           // attention, or what replaces it
  bool feed_forward = true;
  bool experts = false;  // instead of a dense feed-forward layer
};

struct BlockList {
  std::vector<BlockSpec> kinds;
  std::vector<int> kind_of;  // [block]: index in `kinds`
  std::vector<int> mtp;      // kinds of the blocks of one MTP module
};

// Returns the blocks of a validated transformer. Without Transformer.kinds they
// differ only in whether they have experts.
BlockList BlocksOf(const Transformer& transformer);

// Returns the number of token-mixer heads (attention or its replacement) that
// tensor parallelism shards.
uint32_t MixerHeads(const Transformer& transformer);

// Returns true for attention in which every head has its own or a grouped
// key-value head, and no latent vectors.
bool IsPlainAttention(const Transformer& transformer);
// Returns true for Mamba-2, delta nets and lightning attention.
bool IsLinearMixer(const Transformer& transformer);

// Returns the name of a block that recomputation of operators does not support:
// it keeps the outputs of every second GEMM of plain attention and one
// feed-forward layer. Returns "" if it supports all.
std::string BlockWithOtherOperators(const Transformer& transformer);

// Returns the name of a block, or "encoder", whose tokens context parallelism
// does not divide: it exchanges the keys and values of plain and latent
// attention. Returns "" if it supports all.
std::string BlockWithoutContext(const Transformer& transformer);
// Returns true if a block's attention has a sliding window.
bool HasWindow(const Transformer& transformer);

// Returns the names of the given fields that describe more than GPT-2, Llama
// and Mixtral have. Programs that execute or export only such models refuse
// them.
std::vector<std::string> SpecialFields(const Transformer& transformer);

}  // namespace weir::models

#endif  // WEIR_MODELS_BLOCK_SPEC_H_
