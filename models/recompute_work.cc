// SPDX-License-Identifier: Apache-2.0
#include "models/recompute_work.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "models/collectives.h"
#include "models/cuda_graphs.h"
#include "models/kernels.h"
#include "models/mixers.h"
#include "models/sublayers.h"

namespace weir::models {
namespace {

// Returns the GEMM of `part` of the columns of another.
Kernel PartOfColumns(const Kernel& whole, double part, double element_bytes) {
  Kernel kernel = GemmKernel(whole.batch, whole.m, whole.n * part, whole.k,
                             element_bytes, whole.part);
  if (whole.format != OPERAND_16_BIT) {
    SetFormat(whole.format, Operand::kWeight, element_bytes, &kernel);
  }
  kernel.row_alignment = whole.row_alignment;
  return kernel;
}

// Half of a block: the mixer or the feed-forward layer, each with its norm.
// Modules of a half are recomputed before its backward, and their activations
// exist until its end.
class RecomputedHalf {
 public:
  explicit RecomputedHalf(LayerWork* work) : work_(*work) {}

  // Recomputes kernels whose activations of `bytes` are not saved.
  void Add(const std::vector<Kernel>& kernels, double bytes) {
    work_.recompute.insert(work_.recompute.end(), kernels.begin(),
                           kernels.end());
    work_.stash_bytes -= bytes;
    bytes_ += bytes;
  }
  // Recomputes a part of the block of which `kept_bytes` are saved.
  void Add(const LayerWork& part, double kept_bytes) {
    Add(part.forward, part.stash_bytes - kept_bytes);
    RepeatCollectives(part.forward_collectives, &work_);
  }
  double bytes() const { return bytes_; }

 private:
  LayerWork& work_;
  double bytes_ = 0;
};

// Recomputes the norm's output, which is the input of what follows.
void AddNormOutput(const WorkSpec& spec, const Shape& shape,
                   RecomputedHalf* half) {
  LayerWork norm;
  AddNorm(spec, shape, /*after_residual=*/false, &norm);
  half->Add(norm.forward, LocalBytes(shape));
}

// Recomputes the output of the routed experts' activation function, and without
// fusion that of SiLU and the clamped inputs.
void AddActivation(const Transformer& transformer, const WorkSpec& spec,
                   const Shape& shape, RecomputedHalf* half) {
  LayerWork experts;
  AddRoutedExperts(transformer, spec, shape, &experts);
  std::vector<Kernel> kernels;
  double bytes = 0;
  // After the last GEMM, which reads the output, only biases are added.
  size_t num_kernels = 0;
  for (const Kernel& kernel : experts.forward) {
    if (kernel.part == KernelPart::kElementwise) {
      kernels.push_back(kernel);
    } else if (kernel.kind == Kernel::Kind::kGemm) {
      bytes = shape.element_bytes * kernel.batch * kernel.m * kernel.k;
      num_kernels = kernels.size();
    }
  }
  kernels.resize(num_kernels);
  const bool gated = transformer.gated_feed_forward();
  double kept = gated && !spec.fused_bias_gelu ? 2 : 1;
  if (gated && !spec.fused_clamp && transformer.activation() == CLAMPED_SILU) {
    kept += 2;
  }
  half->Add(kernels, kept * bytes);
}

void AddExpertModules(const Transformer& transformer, const WorkSpec& spec,
                      const Shape& shape, RecomputedHalf* half,
                      LayerWork* work) {
  if (spec.recompute.Has(MOE)) {
    LayerWork experts;
    AddExperts(transformer, spec, shape, &experts);
    half->Add(experts, LocalBytes(shape));
    return;
  }
  if (spec.recompute.Has(MOE_ACT)) {
    AddActivation(transformer, spec, shape, half);
  }
  if (spec.recompute.Has(SHARED_EXPERTS) &&
      SharedExpertWidth(transformer) > 0) {
    LayerWork shared;
    AddSharedExperts(transformer, spec, shape, &shared);
    shared.forward.pop_back();  // the sum is outside of the module
    GraphPart graph(spec.InGraph(CUDA_GRAPH_MOE_ROUTER), work);
    half->Add(shared, 0);
    graph.End();
  }
}

// Returns the layers of one stage with some of them recomputed.
class StageRecomputation {
 public:
  StageRecomputation(const LayerList& layers, const Recompute& recompute)
      : layers_(layers), recompute_(recompute) {}

  void AddStage(int first, int last) {
    int count = 0;               // blocks so far
    std::vector<int32_t> group;  // kinds of the blocks of the current group
    double group_bytes = 0;
    for (int i = first; i < last; ++i) {
      const LayerWork& layer = layers_[i];
      if (layer.role != LayerRole::kBlock &&
          layer.role != LayerRole::kMeasured) {
        Add(i, {layers_.kind_of(i)}, 0, Part::kNone);
        continue;
      }
      const int n = recompute_.num_layers();
      ++count;
      if (recompute_.method() == RECOMPUTE_BLOCK   ? count > n
          : recompute_.method() == RECOMPUTE_EVERY ? count % n != 0
                                                   : false) {
        Add(i, {layers_.kind_of(i)}, 0, Part::kNone);
        continue;
      }
      if (recompute_.method() != RECOMPUTE_UNIFORM || count % n == 1 ||
          n == 1) {
        group.clear();
        group_bytes = 0;
      }
      group.push_back(layers_.kind_of(i));
      Add(i, group, group_bytes,
          group.size() == 1 ? Part::kFirst : Part::kLater);
      group_bytes += layer.stash_bytes;
    }
  }
  LayerList Take() { return std::move(list_); }

 private:
  // kFirst saves the input of a group, kLater nothing.
  enum class Part { kNone, kFirst, kLater };

  // Adds layer i. `kinds` are those of its group up to it; the activations of
  // the others are `group_bytes` while its backward runs.
  void Add(int i, const std::vector<int32_t>& kinds, double group_bytes,
           Part part) {
    // Measured layers differ in their inputs.
    const bool measured = layers_[i].role == LayerRole::kMeasured;
    const auto [at, is_new] =
        kinds_.try_emplace({kinds, part, measured ? i : -1});
    if (is_new) at->second = list_.AddKind(Make(i, kinds, group_bytes, part));
    list_.Add(at->second);
  }

  LayerWork Make(int i, const std::vector<int32_t>& kinds, double group_bytes,
                 Part part) const {
    LayerWork work = layers_[i];
    if (part == Part::kNone) return work;
    const int first = i - static_cast<int>(kinds.size()) + 1;
    work.name += " recomputed";
    RecomputeFully(InputBytes(first), &work);
    if (work.role == LayerRole::kMeasured) {  // inputs are not included
      work.recompute_scratch_bytes = layers_[i].stash_bytes;
    }
    work.recompute_scratch_bytes += group_bytes;
    if (part == Part::kLater) work.stash_bytes = 0;
    return work;
  }

  double InputBytes(int i) const {
    if (layers_[i].role == LayerRole::kBlock) return layers_[i].output_bytes;
    return i > 0 ? layers_[i - 1].output_bytes : 0;
  }

  const LayerList& layers_;
  const Recompute& recompute_;
  LayerList list_;
  std::map<std::tuple<std::vector<int32_t>, Part, int>, int32_t> kinds_;
};

}  // namespace

void RecomputeFully(double input_bytes, LayerWork* work) {
  work->recompute = work->forward;
  if (work->forward_seconds.has_value()) {
    work->recompute_seconds = work->forward_seconds;
  }
  work->recompute_scratch_bytes = work->stash_bytes - input_bytes;
  work->stash_bytes = input_bytes;
  RepeatForwardCollectives(work);
}

void RecomputeOperators(const WorkSpec& spec, const Shape& shape,
                        LayerWork* work) {
  const double e = shape.element_bytes;
  const bool gated = shape.feed_forward_inputs == 2;
  int num_projections = 0, num_feed_forward = 0;
  double rows = 0, width = 0;  // of the inputs of the last GEMM
  for (const Kernel& kernel : work->forward) {
    if (kernel.part == KernelPart::kFeedForwardGemm &&
        ++num_feed_forward == 2) {
      rows = kernel.batch * kernel.m;
      width = kernel.k;
      break;
    }
    // What context parallelism adds to the attention is kept with its output.
    if (kernel.part == KernelPart::kAttentionCore) continue;
    if (kernel.kind == Kernel::Kind::kMemory) {
      work->recompute.push_back(kernel);
    } else if (kernel.part == KernelPart::kProjectionGemm) {
      if (++num_projections == 1) {
        work->recompute.push_back(
            PartOfColumns(kernel, shape.key_value / kernel.n, e));
      } else {
        work->recompute.push_back(kernel);
      }
    } else if (kernel.part == KernelPart::kFeedForwardGemm && gated) {
      work->recompute.push_back(PartOfColumns(kernel, 0.5, e));
    }
  }
  const double kept = LocalBytes(shape) +
                      e * shape.tokens * (2 * shape.query + shape.key_value) +
                      kAttentionStatisticBytes * shape.sequences * shape.heads *
                          shape.sequence_length +
                      e * rows * (width + (gated ? shape.hidden : 0));
  work->recompute_scratch_bytes = std::max(work->stash_bytes - kept, 0.0);
  work->stash_bytes = std::min(work->stash_bytes, kept);
  if (spec.sequence_parallel) RepeatGathers(work);
}

void RecomputeModules(const BlockSpec& block, const WorkSpec& spec,
                      const Shape& shape, const AttentionCore& core,
                      LayerWork* work) {
  const Transformer& transformer = block.transformer;
  const Recompute& recompute = spec.recompute;
  const bool parallel =
      transformer.parallel_block() && block.mixer && block.feed_forward;
  RecomputedHalf mixer(work);
  GraphPart mixer_graph(spec.InGraph(MixerGraphScope(transformer)), work);
  // Fused attention saves no scores that could be recomputed.
  if (recompute.Has(CORE_ATTN) && !spec.flash_attention) {
    mixer.Add(core.forward, core.stash_bytes);
  }
  const bool latent = block.mixer && transformer.has_latent_attention();
  if (latent && recompute.Has(MLA_UP_PROJ)) {
    mixer.Add(LatentExpansion(transformer, spec, shape), 0);
  }
  if (latent && recompute.Has(LAYERNORM)) AddNormOutput(spec, shape, &mixer);
  mixer_graph.End();
  RecomputedHalf feed_forward(work);
  GraphPart feed_forward_graph(
      spec.InGraph(block.experts ? CUDA_GRAPH_MOE : CUDA_GRAPH_MLP), work);
  if (block.feed_forward && block.experts) {
    AddExpertModules(transformer, spec, shape, &feed_forward, work);
    if (recompute.Has(LAYERNORM) && !parallel) {
      GraphPart norm(spec.InGraph(CUDA_GRAPH_MOE_ROUTER), work);
      AddNormOutput(spec, shape, &feed_forward);
      norm.End();
    }
  } else if (block.feed_forward && recompute.Has(MLP)) {
    LayerWork dense;
    AddDenseFeedForward(transformer, spec, shape, !parallel, &dense);
    feed_forward.Add(dense, LocalBytes(shape));
  }
  feed_forward_graph.End();
  work->recompute_scratch_bytes = std::max(mixer.bytes(), feed_forward.bytes());
}

LayerList RecomputeStages(LayerList layers, const Partition& partition,
                          const Recompute& recompute) {
  if (!recompute.by_stage()) return layers;
  StageRecomputation all(layers, recompute);
  for (size_t s = 0; s + 1 < partition.first.size(); ++s) {
    all.AddStage(partition.first[s], partition.first[s + 1]);
  }
  return all.Take();
}

}  // namespace weir::models
