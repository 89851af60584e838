// SPDX-License-Identifier: Apache-2.0
#include "models/context_parallel.h"

#include "models/collectives.h"
#include "models/kernels.h"

namespace weir::models {
namespace {

// Bytes of this GPU's queries (or outputs, on average), and of its keys and
// values.
struct Widths {
  double query = 0, key_value = 0;
};

Widths WidthsOf(const Shape& shape) {
  const double row = shape.element_bytes * shape.tokens;
  return {row * (shape.query + shape.output()) / 2,
          row * (shape.key_value + shape.value())};
}

bool IsRingMethod(const ContextSpec& context) {
  return context.method != CONTEXT_ALL_GATHER && context.ring > 1;
}

Kernel Copy(double bytes, int launches) {
  return MemoryKernel(bytes, KernelPart::kAttentionCore, launches);
}

// Returns the shape in which a GPU has whole sequences of its part of the
// heads, or, with a ring, all keys and values of these.
Shape WholeSequences(const WorkSpec& spec, const Shape& shape) {
  Shape whole = shape;
  whole.sequence_length = spec.sequence_length;
  whole.tokens = shape.sequences * spec.sequence_length;
  whole.heads /= spec.context.heads_parallel;
  whole.query /= spec.context.heads_parallel;
  whole.key_value /= spec.context.heads_parallel;
  return whole;
}

// Divides a kernel over whole sequences by queries and keys into equal parts.
// Every part performs the same FLOP whether the attention is causal or not: in
// step 0 of a ring the queries of both chunks meet the keys of both under the
// mask, later all queries meet the keys of the earlier chunk or the queries of
// the later chunk meet all keys, in each case half of the scores.
Kernel PartOf(const Kernel& whole, double query_parts, double key_parts) {
  Kernel part = whole;
  part.m /= query_parts;
  part.n /= key_parts;
  part.flops /= query_parts * key_parts;
  part.performed_flops /= query_parts * key_parts;
  return part;
}

}  // namespace

const char* ContextMethodName(ContextMethod method) {
  switch (method) {
    case CONTEXT_ALL_GATHER:
      return "all_gather";
    case CONTEXT_A2A:
      return "a2a";
    case CONTEXT_A2A_P2P:
      return "a2a+p2p";
    default:
      return "p2p";
  }
}

ContextSpec ContextSpecOf(ContextMethod method, int size,
                          const std::vector<int>& hierarchy) {
  ContextSpec context;
  context.method = method == CONTEXT_METHOD_UNSPECIFIED ? CONTEXT_P2P : method;
  if (context.method == CONTEXT_A2A) {
    context.heads_parallel = size;
  } else if (context.method == CONTEXT_A2A_P2P && hierarchy.size() == 2) {
    context.heads_parallel = hierarchy[0];
    context.ring = hierarchy[1];
  } else {
    context.ring = size;
  }
  return context;
}

AttentionCore ContextAttention(const Transformer& transformer,
                               const WorkSpec& spec, const Shape& shape) {
  const ContextSpec& context = spec.context;
  const AttentionCore whole =
      FusedAttention(transformer, spec, WholeSequences(spec, shape));
  const auto [query, key_value] = WidthsOf(shape);
  const double statistics = whole.stash_bytes / context.ring;
  AttentionCore core;
  core.stash_bytes = statistics;
  core.backward_scratch_bytes = whole.backward_scratch_bytes / context.ring;
  // Keys and values that a kernel reads, and whose gradients it writes.
  const bool ring = IsRingMethod(context);
  const bool gathers = !ring && context.ring > 1;
  const double kernels = ring ? context.ring : gathers ? 2 : 1;
  const double read = gathers ? context.ring * key_value / 2 : key_value;
  const double queries = gathers ? query / 2 : query;
  Kernel forward = PartOf(whole.forward[0],
                          gathers ? 2.0 * context.ring : 1.0 * context.ring,
                          ring ? context.ring : 1);
  forward.bytes = 2 * queries + read + statistics / (gathers ? 2 : 1);
  Kernel backward = PartOf(whole.backward[0],
                           gathers ? 2.0 * context.ring : 1.0 * context.ring,
                           ring ? context.ring : 1);
  backward.bytes = 4 * queries + 2 * read + statistics / (gathers ? 2 : 1);
  core.forward.assign(static_cast<size_t>(kernels), forward);
  core.backward.assign(static_cast<size_t>(kernels), backward);
  if (ring) {
    // The output of every step is rescaled and added to the sum, and so are the
    // gradients. One block of keys and values arrives while another is used;
    // backward, their gradients travel with them.
    core.forward.push_back(Copy(3 * query * context.ring, context.ring));
    core.backward.push_back(
        Copy(3 * (query + key_value) * context.ring, 2 * context.ring));
    core.forward_scratch_bytes += query + 2 * key_value;
    core.backward_scratch_bytes += query + 4 * key_value;
  } else if (gathers) {
    // Chunks are brought into the order of the sequence, gradients back.
    const double all = context.ring * key_value;
    core.forward.push_back(Copy(2 * all, 2));
    core.backward.push_back(Copy(4 * all, 4));
    core.forward_scratch_bytes += 2 * all;
    core.backward_scratch_bytes += 2 * all;
  }
  if (context.heads_parallel > 1) {
    // Every tensor is copied before and after its all-to-all.
    const double moved = 4 * (2 * query + key_value);
    core.forward.push_back(Copy(moved, 8));
    core.backward.push_back(Copy(moved, 8));
    core.forward_scratch_bytes += query;
    core.backward_scratch_bytes += 2 * query + key_value;
  }
  return core;
}

void AddContextExchange(const WorkSpec& spec, const Shape& shape,
                        LayerWork* work) {
  const ContextSpec& context = spec.context;
  if (context.size() == 1) return;
  const auto [query, key_value] = WidthsOf(shape);
  const auto call = [](CollectiveKind kind, double bytes, int count) {
    return LayerCollective{.kind = kind,
                           .group = LayerCollective::Group::kContext,
                           .bytes = bytes,
                           .count = count};
  };
  const auto forward = [&](CollectiveKind kind, double bytes, int count) {
    AddCollective(call(kind, bytes, count), &work->forward_collectives);
  };
  // In reverse order: a backward's collectives are added at the front.
  const auto backward = [&](CollectiveKind kind, double bytes, int count) {
    if (count == 0) return;
    AddFrontCollective(call(kind, bytes, count), &work->backward_collectives);
  };
  const bool swaps = context.heads_parallel > 1;
  if (swaps) {
    forward(CollectiveKind::kAllToAll, query, 1);
    forward(CollectiveKind::kAllToAll, key_value / 2, 2);
    backward(CollectiveKind::kAllToAll, key_value / 2, 2);
    backward(CollectiveKind::kAllToAll, query, 1);
  }
  if (IsRingMethod(context)) {
    // Keys and values, then both with their gradients, then these alone return
    // to their owner (Transformer Engine, AttnFuncWithCPAndKVP2P).
    forward(CollectiveKind::kSendReceive, key_value, context.ring - 1);
    backward(CollectiveKind::kSendReceive, key_value, 1);
    backward(CollectiveKind::kSendReceive, 2 * key_value, context.ring - 2);
    backward(CollectiveKind::kSendReceive, key_value, 1);
  } else if (context.ring > 1) {
    const double all = context.ring * key_value / 2;
    forward(CollectiveKind::kAllGather, all, 2);
    backward(CollectiveKind::kReduceScatter, all, 2);
    backward(CollectiveKind::kAllGather, all, 2);
  }
  if (swaps) {
    forward(CollectiveKind::kAllToAll, query, 1);
    backward(CollectiveKind::kAllToAll, query, 1);
  }
}

}  // namespace weir::models
