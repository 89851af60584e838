// SPDX-License-Identifier: Apache-2.0
#include "models/kernels.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "models/adapters.h"
#include "models/collectives.h"

namespace weir::models {

Kernel MemoryKernel(double bytes, KernelPart part, int launches) {
  Kernel kernel;
  kernel.launches = launches;
  kernel.part = part;
  kernel.bytes = bytes;
  return kernel;
}

Kernel GemmKernel(double batch, double m, double n, double k,
                  double element_bytes, KernelPart part) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::kGemm;
  kernel.part = part;
  kernel.batch = batch;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.flops = 2 * batch * m * n * k;
  kernel.bytes = element_bytes * batch * (m * k + k * n + m * n);
  return kernel;
}

void SetFormat(OperandFormat format, Operand second, double result_bytes,
               Kernel* kernel) {
  if (format == OPERAND_16_BIT) return;
  kernel->format = format;
  kernel->bytes =
      kernel->batch * (OperandBytes(format) * kernel->m * kernel->k +
                       OperandBytes(format, second) * kernel->k * kernel->n +
                       result_bytes * kernel->m * kernel->n);
}

double RowAlignment(double length, double other_length) {
  constexpr double kMost = 64;
  double alignment = kMost;
  for (const double elements : {length, other_length}) {
    if (!(elements > 0) || elements != std::floor(elements)) return 0;
    while (std::fmod(elements, alignment) != 0) alignment /= 2;
  }
  return alignment;
}

namespace {

// How a tensor of the layer is cast: by the GPUs that have parts of it before
// an all-gather of its copies, or after that.
struct Cast {
  double elements = 0;  // that this GPU casts
  // Bytes of copies per element, written by the cast; and read and written by
  // the GPU's transpose of the gathered copy.
  double copy_bytes = 0, transposed_bytes = 0;
};

Cast CastOf(const WorkSpec& spec, double rows, double local_rows, double width,
            OperandFormat first) {
  const Quantization& formats = spec.quantization;
  const OperandFormat second = formats.weight_gradient;
  Cast cast;
  cast.copy_bytes = CopyBytes(formats, first, second, Operand::kActivation);
  const bool gathered =
      local_rows > 0 && local_rows < rows && formats.gathers_operands;
  cast.elements = (gathered ? local_rows : rows) * width;
  if (!gathered || first != second || first != OPERAND_FP8) return cast;
  if (!formats.transposed_copies) return cast;
  cast.copy_bytes = OperandBytes(first);
  cast.transposed_bytes = 2 * OperandBytes(first) * rows * width;
  return cast;
}

void AddCast(double bytes, int launches, std::vector<Kernel>* kernels) {
  if (bytes <= 0) return;
  kernels->push_back(MemoryKernel(bytes, KernelPart::kCast, launches));
}

// Returns the number of kernels of a cast of the layer's input or output, which
// it reads `reads` times. Transformer Engine casts the tokens of each expert by
// themselves, in one kernel only if scales are known beforehand
// (csrc/extensions/cast.cpp). Current scales take three kernels: maximum, scale
// and cast.
int CastLaunches(const WorkSpec& spec, const Linear& linear,
                 OperandFormat format, int reads) {
  const bool current = format == OPERAND_FP8 && reads > 1;
  const bool delayed = format == OPERAND_FP8 && reads <= 1;
  const int kernels = current ? 3 : 1;
  if (!linear.experts || !spec.launches_each_expert || delayed) return kernels;
  return kernels * std::max(1, static_cast<int>(std::lround(linear.batch)));
}

// Makes the norm before the layer write `saved_bytes` less.
void ShrinkNorm(double saved_bytes, LayerWork* work) {
  for (auto at = work->forward.rbegin(); at != work->forward.rend(); ++at) {
    if (at->part != KernelPart::kNorm) continue;
    at->bytes -= saved_bytes;
    return;
  }
}

void AddForwardCasts(const WorkSpec& spec, const Linear& linear,
                     LayerWork* work) {
  const Quantization& formats = spec.quantization;
  const double e = spec.bytes_per_element;
  Cast cast = CastOf(spec, linear.batch * linear.rows,
                     linear.batch * linear.local_input_rows, linear.in,
                     formats.forward);
  if (cast.copy_bytes > 0) {
    double read = formats.input_reads * e;
    const double first = OperandBytes(formats.forward);
    if (linear.from_norm && formats.norms_cast && first > 0) {
      ShrinkNorm((e - first) * cast.elements, work);
      // The norm has written the first copy, from which the other is made.
      cast.copy_bytes -= first;
      read = cast.copy_bytes > 0 ? first : 0;
    } else if (linear.input_format == formats.forward && first > 0) {
      cast.copy_bytes -= first;
      read = cast.copy_bytes > 0 ? first : 0;
    } else {
      read = std::max(read, OperandBytes(linear.input_format));
    }
    AddCast((read + cast.copy_bytes) * cast.elements,
            CastLaunches(spec, linear, formats.forward, formats.input_reads),
            &work->forward);
  }
  AddCast(cast.transposed_bytes, 1, &work->backward_weight);
  const double weights = linear.batch * linear.in * linear.out;
  const double weight_bytes = WeightCastBytes(formats);
  if (formats.casts_weights_each_pass) {
    AddCast(weight_bytes * weights,
            CastLaunches(spec, linear, formats.forward, formats.weight_reads),
            &work->forward);
  }
  if (weight_bytes > 0) work->quantized_parameters += weights;
}

void AddBackwardCasts(const WorkSpec& spec, const Linear& linear,
                      LayerWork* work) {
  const Quantization& formats = spec.quantization;
  const Cast cast = CastOf(spec, linear.batch * linear.rows,
                           linear.batch * linear.local_output_rows, linear.out,
                           formats.input_gradient);
  if (cast.copy_bytes == 0) return;
  const double read = formats.gradient_reads * spec.bytes_per_element;
  AddCast((read + cast.copy_bytes) * cast.elements,
          CastLaunches(spec, linear, formats.input_gradient,
                       formats.gradient_reads),
          &work->backward_input);
  AddCast(cast.transposed_bytes, 1, &work->backward_weight);
}

// Replaces 16-bit tensors, or adds to them, what the weight gradient reads.
void AddSavedCopies(const WorkSpec& spec, const Linear& linear,
                    LayerWork* work) {
  const double copy = OperandBytes(spec.quantization.weight_gradient);
  if (copy == 0) return;
  const double e = spec.bytes_per_element;
  const double rows_in =
      linear.local_input_rows > 0 ? linear.local_input_rows : linear.rows;
  const double rows_out =
      linear.local_output_rows > 0 ? linear.local_output_rows : linear.rows;
  const double input = linear.batch * rows_in * linear.in;
  const double output = linear.batch * rows_out * linear.out;
  work->stash_bytes +=
      (linear.input == Linear::Input::kOwn ? copy - e : copy) * input;
  work->weight_gradient_stash_bytes +=
      (linear.input == Linear::Input::kShared ? copy : copy - e) * input +
      (copy - e) * output;
}

}  // namespace

void SetColumnPieces(const WorkSpec& spec, Linear* linear) {
  if (!spec.tensor_pieces || !spec.sequence_parallel) return;
  linear->forward_pieces = spec.tensor_parallel;
  linear->input_pieces = 1;
}

void SetRowPieces(const WorkSpec& spec, Linear* linear) {
  if (!spec.tensor_pieces || !spec.sequence_parallel) return;
  if (spec.tensor_parallel == 1) return;
  linear->forward_pieces = kReduceScatterPieces;
  linear->input_pieces = spec.tensor_parallel;
}

WorkSpec WithoutQuantization(WorkSpec spec) {
  spec.quantization = {};
  return spec;
}

bool IsQuantized(const WorkSpec& spec, KernelPart part) {
  return spec.quantization.gemms() && (part == KernelPart::kProjectionGemm ||
                                       part == KernelPart::kFeedForwardGemm);
}

namespace {

// Adds the GEMMs of a layer's weight gradient, and what else it costs.
void AddWeightGradient(const WorkSpec& spec, const Linear& linear,
                       const Kernel& weight, LayerWork* work) {
  const double e = spec.bytes_per_element;
  work->backward_weight.push_back(weight);
  if (!spec.fused_gradient_accumulation) {
    work->backward_weight.push_back(
        MemoryKernel((e + 2.0 * spec.gradient_bytes) * linear.batch *
                     linear.in * linear.out));
  }
  if (linear.bias) {
    work->backward_weight.push_back(
        MemoryKernel(e * linear.batch * linear.rows * linear.out));
  }
}

// Lists the matrices of a linear layer of a block.
void ListMatrices(const Linear& linear, LayerWork* work) {
  if (linear.joined[0] == 0) {
    work->matrices.push_back({linear.batch, linear.in, linear.out});
  }
  for (const double width : linear.joined) {
    if (width > 0) work->matrices.push_back({linear.batch, linear.in, width});
  }
}

// Returns the spec of a layer whose weights are frozen: no GEMM reads its input
// or the gradient of its output for the gradient of the weight.
WorkSpec Frozen(WorkSpec spec) {
  spec.quantization.weight_gradient = OPERAND_16_BIT;
  return spec;
}

// Adds the GEMM of a layer as equal GEMMs of pieces. The layers of blocks are
// modules.
void AddPieces(Kernel gemm, int pieces, std::vector<Kernel>* kernels) {
  kernels->insert(kernels->end(), pieces, gemm);
  if (gemm.part == KernelPart::kProjectionGemm ||
      gemm.part == KernelPart::kFeedForwardGemm) {
    kernels->end()[-pieces].begins_module = true;
  }
}

void AddLinearOf(const WorkSpec& spec, const Linear& linear, LayerWork* work) {
  const double batch = linear.batch, rows = linear.rows;
  const double in = linear.in, out = linear.out, needed = linear.needed;
  const KernelPart part = linear.part;
  const int forward_pieces = linear.forward_pieces;
  const int input_pieces = linear.input_pieces;
  const double e = spec.bytes_per_element;
  const double g = spec.gradient_bytes;
  const double weights = batch * in * out;
  Kernel forward = GemmKernel(batch, rows / forward_pieces, out, in, e, part);
  Kernel input = GemmKernel(batch, rows / input_pieces, in, out, e, part);
  Kernel weight = GemmKernel(batch, out, in, rows, e, part);
  const bool quantized = IsQuantized(spec, part);
  if (quantized) {
    const Quantization& formats = spec.quantization;
    SetFormat(formats.forward, Operand::kWeight, e, &forward);
    SetFormat(formats.input_gradient, Operand::kWeight, e, &input);
    SetFormat(formats.weight_gradient, Operand::kActivation, e, &weight);
    AddForwardCasts(spec, linear, work);
  }
  if (spec.fused_gradient_accumulation) weight.bytes += (2 * g - e) * weights;
  for (Kernel* kernel : {&forward, &input, &weight}) {
    if (linear.experts) {
      kernel->variant = Kernel::Variant::kGrouped;
      if (spec.launches_each_expert) {
        kernel->launches = std::max(1, static_cast<int>(std::lround(batch)));
      }
    }
    // The rows of all three GEMMs are vectors of the input, the output or the
    // weights.
    kernel->row_alignment = RowAlignment(in, out);
    if (needed == 1) continue;
    kernel->performed_flops = kernel->flops;
    kernel->flops *= needed;
  }
  AddPieces(forward, forward_pieces, &work->forward);
  if (quantized) AddBackwardCasts(spec, linear, work);
  AddPieces(input, input_pieces, &work->backward_input);
  if (!spec.lora.active()) AddWeightGradient(spec, linear, weight, work);
  if (quantized) AddSavedCopies(spec, linear, work);
}

}  // namespace

void AddLinear(const WorkSpec& spec, const Linear& linear, LayerWork* work) {
  if (spec.lists_matrices && linear.part != KernelPart::kVocabularyGemm) {
    ListMatrices(linear, work);
  }
  if (!spec.lora.active()) {
    AddLinearOf(spec, linear, work);
    return;
  }
  AddLinearOf(Frozen(spec), linear, work);
  if (spec.lora.Adapts(linear.module)) AddAdapter(spec, linear, work);
}

namespace {

std::array<std::vector<Kernel>*, 4> PassesOf(LayerWork* work) {
  return {&work->forward, &work->backward_input, &work->backward_weight,
          &work->recompute};
}

}  // namespace

GraphPart::GraphPart(bool in_graph, LayerWork* work)
    : work_(in_graph ? work : nullptr) {
  for (size_t i = 0; i < num_kernels_.size(); ++i) {
    num_kernels_[i] = PassesOf(work)[i]->size();
  }
}

void GraphPart::End() {
  if (work_ == nullptr) return;
  for (size_t i = 0; i < num_kernels_.size(); ++i) {
    std::vector<Kernel>& kernels = *PassesOf(work_)[i];
    for (size_t k = num_kernels_[i]; k < kernels.size(); ++k) {
      kernels[k].in_graph = true;
    }
  }
}

void AddPasses(KernelPart part, double forward_bytes, int forward_launches,
               double backward_bytes, int backward_launches, LayerWork* work) {
  if (forward_bytes > 0) {
    work->forward.push_back(
        MemoryKernel(forward_bytes, part, forward_launches));
  }
  if (backward_bytes > 0) {
    work->backward_input.push_back(
        MemoryKernel(backward_bytes, part, backward_launches));
  }
}

}  // namespace weir::models
