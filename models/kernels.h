// SPDX-License-Identifier: Apache-2.0
// Creates kernels.
#ifndef WEIR_MODELS_KERNELS_H_
#define WEIR_MODELS_KERNELS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "models/layer_work.h"

namespace weir::models {

inline constexpr double kStatisticsBytes = 8;  // per row of a norm, in fp32

Kernel MemoryKernel(double bytes, KernelPart part = KernelPart::kElementwise,
                    int launches = 1);

// Returns a kernel of `batch` GEMMs of (m x k) by (k x n), of unknown
// alignment.
Kernel GemmKernel(double batch, double m, double n, double k,
                  double element_bytes,
                  KernelPart part = KernelPart::kProjectionGemm);

// Sets the format of both operands of a GEMM, the second of which is `second`,
// and its bytes. `result_bytes`: of an element of the result.
void SetFormat(OperandFormat format, Operand second, double result_bytes,
               Kernel* kernel);

// Returns the largest power of two, at most 64, that divides both lengths; 0 if
// one of them is not a positive integer.
double RowAlignment(double length, double other_length);

// Returns the same with all GEMMs in 16 bits.
WorkSpec WithoutQuantization(WorkSpec spec);
// Returns true if AddLinear quantizes linear layers of this part.
bool IsQuantized(const WorkSpec& spec, KernelPart part);

// A batch of equal linear layers, each of which maps its own `rows` vectors of
// width `in` to width `out`.
struct Linear {
  KernelPart part = KernelPart::kProjectionGemm;
  double batch = 1;
  double rows = 0;
  double in = 0;
  double out = 0;
  bool bias = false;
  // FLOP that the model requires, over FLOP performed: below 1 if every GPU of
  // the group repeats the same GEMM, or if rows or columns are padding.
  double needed = 1;
  // The forward GEMM and that of the input's gradient run in this many pieces
  // of the rows, so that each can overlap with its part of a collective.
  int forward_pieces = 1;
  int input_pieces = 1;

  // For layers whose GEMMs are quantized (WorkSpec::quantization):
  enum class Input : uint8_t {
    kOwn,     // saved for this layer only
    kKept,    // also saved for the backward-input of another operation
    kShared,  // also saved for the backward-weight of another one
  };
  Input input = Input::kOwn;
  // Rows of the input, and of the output, that this GPU has outside the layer:
  // fewer than `rows` with sequence parallelism. 0: `rows`.
  double local_input_rows = 0;
  double local_output_rows = 0;
  bool from_norm = false;  // a norm computes the input immediately before
  // The input arrives in this format (tokens of experts).
  OperandFormat input_format = OPERAND_16_BIT;

  LoraModule module = LORA_MODULE_UNSPECIFIED;
  bool experts = false;
  // Widths of the matrices that are joined in the output; all 0: one matrix.
  std::array<double, 4> joined = {};
};

// Sets the pieces of a layer that is split by columns, or by rows: with
// WorkSpec::tensor_pieces and sequence parallelism, the GEMM after an
// all-gather has one for each GPU of the group, that before the reduce-scatter
// of a forward kReduceScatterPieces (Transformer Engine, initialize_ub: "ring
// exchange" and "pipeline"). Collectives overlapped with GEMMs of the input's
// gradient of a layer split by columns run in one piece ("bulk").
void SetColumnPieces(const WorkSpec& spec, Linear* linear);
void SetRowPieces(const WorkSpec& spec, Linear* linear);

// Adds the forward GEMM, the two backward GEMMs, the reduction that computes
// the bias gradient, and the accumulation of the weight gradient. If the layer
// is quantized, also adds the casts of its operands and their effect on the
// saved bytes: the caller adds the 16-bit input to them.
void AddLinear(const WorkSpec& spec, const Linear& linear, LayerWork* work);

// Marks the kernels that are added to `work`, also those of recomputation,
// between construction and End as launched by a CUDA graph, if `in_graph`.
class GraphPart {
 public:
  GraphPart(bool in_graph, LayerWork* work);
  void End();

 private:
  LayerWork* work_;  // null: not in a graph
  std::array<size_t, 4> num_kernels_;
};

// Adds a memory-bound kernel to the forward and one to the backward, each
// unless its bytes are 0.
void AddPasses(KernelPart part, double forward_bytes, int forward_launches,
               double backward_bytes, int backward_launches, LayerWork* work);

}  // namespace weir::models

#endif  // WEIR_MODELS_KERNELS_H_
