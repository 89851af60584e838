// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/shard_calls.h"

#include <numeric>
#include <vector>

namespace weir::sim {
namespace {

// Returns the elements of the matrices of a block in the order of the forward
// pass: queries, keys and values in one; output; feed-forward up and down.
std::vector<double> MatricesOf(const Transformer& transformer, int tensor) {
  const double hidden = transformer.hidden_size();
  const double head = hidden * transformer.head_size();
  const double feed_forward = hidden * transformer.feed_forward_size();
  std::vector<double> matrices = {
      head * (transformer.num_heads() + 2.0 * transformer.num_kv_heads()),
      head * transformer.num_heads(), feed_forward};
  if (transformer.gated_feed_forward()) matrices.push_back(feed_forward);
  matrices.push_back(feed_forward);
  for (double& elements : matrices) elements /= tensor;
  return matrices;
}

// Adds the gathers of weights that a pass uses in this order, block by block.
// A matrix that is used twice in a row is gathered once.
void AddGathers(const std::vector<double>& used, const Runtime& runtime,
                double block, PassGathers* gathers) {
  const double limit = runtime.max_gathered_elements();
  *gathers = {0, 0, 0, 0};
  double before = used.back();
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i] == 0) continue;
    ++gathers->calls;
    gathers->bytes += used[i] / block;
    if (runtime.blocking_gathers() || (limit > 0 && before >= limit)) {
      ++gathers->exposed_calls;
      gathers->exposed_bytes += used[i] / block;
    }
    before = used[i];
  }
}

// Sets the reductions of single tensors.
void SetReductions(const Transformer& transformer, double block, int tensor,
                   size_t num_matrices, ShardCalls* calls) {
  const double hidden = transformer.hidden_size();
  const double per_norm = transformer.rms_norm() ? 1 : 2;
  double elements = 2 * per_norm * hidden;
  calls->small_reductions = 2 * per_norm;
  const auto add_bias = [&](double size) {
    ++calls->small_reductions;
    elements += size;
  };
  if (transformer.attention_bias()) {
    add_bias((transformer.num_heads() + 2.0 * transformer.num_kv_heads()) *
             transformer.head_size() / tensor);
  }
  if (transformer.attention_output_bias()) add_bias(hidden);
  if (transformer.feed_forward_bias()) {
    add_bias(1.0 * transformer.feed_forward_size() / tensor);
    if (transformer.gated_feed_forward())
      add_bias(1.0 * transformer.feed_forward_size() / tensor);
    add_bias(hidden);
  }
  calls->reductions = static_cast<double>(num_matrices);
  calls->small_part = elements / (block + elements);
}

}  // namespace

int MatricesPerBlock(const Transformer& transformer) {
  return static_cast<int>(MatricesOf(transformer, 1).size());
}

ShardCalls ShardCallsOf(const Transformer& transformer, const Runtime& runtime,
                        bool recomputes, int tensor, int shards) {
  ShardCalls calls;
  calls.blocking_reductions = runtime.blocking_reductions();
  calls.list_seconds = shards * runtime.list_rank_seconds().value();
  const std::vector<double> matrices = MatricesOf(transformer, tensor);
  const double block = std::accumulate(matrices.begin(), matrices.end(), 0.0);
  if (runtime.reduces_by_tensor())
    SetReductions(transformer, block, tensor, matrices.size(), &calls);
  std::vector<double> forward = matrices;
  if (!runtime.gathers_by_matrix()) forward = {block};
  std::vector<double> backward(forward.rbegin(), forward.rend());
  if (runtime.regathers_weights() && recomputes) {
    // The last matrix of the repeated forward is the first of the backward.
    std::vector<double> again = forward;
    if (again.size() > 1) again.back() = 0;
    backward.insert(backward.begin(), again.begin(), again.end());
  }
  AddGathers(forward, runtime, block, &calls.forward);
  AddGathers(backward, runtime, block, &calls.backward);
  return calls;
}

}  // namespace weir::sim
