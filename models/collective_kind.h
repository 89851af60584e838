// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_MODELS_COLLECTIVE_KIND_H_
#define WEIR_MODELS_COLLECTIVE_KIND_H_

#include <cstdint>

namespace weir::models {

// What a communication operation does, in NCCL's terms.
enum class CollectiveKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kSendReceive,
};

const char* Name(CollectiveKind kind);  // "all_reduce"

}  // namespace weir::models

#endif  // WEIR_MODELS_COLLECTIVE_KIND_H_
