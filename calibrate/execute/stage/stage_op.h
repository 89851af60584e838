// SPDX-License-Identifier: Apache-2.0
// The operations of a transformer stage, as data. The same list is run in
// double precision on the host (calibrate/execute/reference/) and by CUDA
// kernels (calibrate/gpu/).
//
// Tensors are row-major. T tokens are `sequences` x `sequence_length`, one
// sequence after the other. "half" is the stage's 16-bit format (fp32 when run
// on the host); sums are fp32.
#ifndef WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_OP_H_
#define WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_OP_H_

#include <cstdint>
#include <string>
#include <vector>

#ifndef __CUDACC__
#include "models/layer_work.h"
#endif

#ifdef __CUDACC__
// Launchers only forward a StageOp; nvcc need not parse models/.
namespace weir::models {
struct Kernel;
}  // namespace weir::models
#endif

namespace weir::calibrate {

enum class ElementFormat : uint8_t { kFp32, kBf16, kFp16, kInt32, kUint8 };
int BytesOf(ElementFormat format);
const char* Name(ElementFormat format);  // "bf16"

// Inputs -> outputs, in this order. [r, c] is rows x columns. "+=" outputs are
// accumulated into. An absent optional tensor has buffer -1; the lists always
// have the length given here. A tensor updated in place is the same view in
// both lists; implementations read and write the output.
enum class OpKind : uint8_t {
  // a, b, [bias half [n] | aux half [m, n]] -> d, [aux half [m, n]]
  // d[m, n] = op(a) op(b), or += with `accumulate`. m = rows, n = columns,
  // k = inner. transpose_a: a is stored [k, m]; transpose_b: b is [n, k].
  // d is half, or fp32 for gradients of weights. Epilogues:
  //   kBias          d = a b + bias
  //   kBiasGelu      aux = a b [+ bias if given], d = gelu(aux) (tanh form)
  //   kGeluGradient  d = (a b) gelu'(aux), where aux is an input
  kGemm,
  // d half [rows, columns] -> bias gradient fp32 [columns] +=
  kBiasGradient,
  // x half [r, c], [delta half [r, c]], [bias half [c]], [mask in], gain half
  // [c], [shift half [c]] -> [sum half [r, c]], y half [r, c],
  // statistics fp32 [r, 2], [mask uint8 [r, c]]
  // sum = x + dropout(delta + bias); y = norm(sum) gain + shift. LayerNorm if
  // rms = false (statistics: mean, 1 / deviation), else RMSNorm (statistics: 0,
  // 1 / root mean square). Without delta: sum = x, not written. An input mask
  // is used unchanged; otherwise, with dropout > 0, dropout_mask.h computes the
  // mask from `seed` and the element's index row * c + column.
  kNormForward,
  // dy half, sum half, statistics, gain, [residual half [r, c]] -> dsum half,
  // gain gradient fp32 [c] +=, [shift gradient fp32 [c] +=]
  // dsum = d norm + residual, where residual is the gradient from the residual
  // path.
  kNormBackward,
  // x half [r, c], delta half, [bias half [c]] -> sum half, [mask uint8]
  // sum = x + dropout(delta + bias): the residual at the end of a layer.
  kResidualForward,
  // d half [r, c], mask uint8 -> delta gradient half: d mask / (1 - dropout).
  // Not used without dropout, where the gradient is d.
  kDropoutBackward,
  // x half [r, c], [bias] -> y = gelu(x + bias); used if no GEMM fuses it.
  kGeluForward,
  // dy half, x half, [bias] -> dx
  kGeluBackward,
  // gate and up half [r, 2 c] (gate columns first) -> y half [r, c]
  // y = silu(gate) up
  kGatedForward,
  // dy half [r, c], gate and up half [r, 2 c] -> their gradient [r, 2 c]
  kGatedBackward,
  // packed half [T, (heads + 2 kv_heads) head_size], in place
  // Rotates queries and keys of position i by angles i theta^(-2 j /
  // head_size); the j-th pair is elements j and j + head_size / 2. Backward
  // rotates back.
  kRotaryForward,
  kRotaryBackward,
  // packed half [T, (heads + 2 kv_heads) head_size]: queries, keys, values of
  // all heads -> o half [T, heads head_size], statistics fp32
  // [sequences, heads, s]: log of the sum of exponentials of scaled scores
  // (fused), or probabilities half [sequences, heads, s, s] (unfused).
  // Scores are scaled by head_size^-1/2; causal: keys up to the query's own.
  // Query head h reads key head h / (heads / kv_heads).
  kAttentionForward,
  // d o, o, packed, statistics or probabilities, -> d packed,
  // scratch fp32 [sequences, heads, s] (fused: rows of do . o),
  // or half [sequences, heads, s, s] (unfused: gradient of the scores)
  kAttentionBackward,
  // tokens int32 [T], table half [vocabulary, c], [positions half [s, c]]
  // -> y half [T, c]. rows T, columns c, inner: the table's rows.
  kEmbeddingForward,
  // d half [T, c], tokens int32 [T] -> table gradient fp32 [vocabulary, c] +=,
  // [position gradient fp32 [s, c] +=]
  kEmbeddingBackward,
  // logits half [T, vocabulary], targets int32 [T] -> logits are replaced by
  // (softmax - one_hot) loss_scale; losses fp32 [T]: -log softmax[target].
  kCrossEntropy,
  // gradient, master, first, second moment fp32 [n], weight half [n]: all
  // updated in place (AdamW, decoupled weight decay); gradient is cleared.
  // n = rows x columns. Loshchilov & Hutter 2019, algorithm 2:
  // master -= learning_rate (m / (sqrt(v) + epsilon) + weight_decay master),
  // where m and v are bias-corrected and use gradient_scale times the gradient.
  kAdam,
  // x fp32 [r, c], in place -> zeros
  kClear,
};
const char* Name(OpKind kind);  // "norm_forward"

enum class Epilogue : uint8_t { kNone, kBias, kBiasGelu, kGeluGradient };

// Part of a buffer: `offset` elements from its start, with rows `stride`
// elements apart (0: as wide as the operation's rows).
struct TensorView {
  int buffer = -1;
  int64_t offset = 0;
  int64_t stride = 0;

  bool present() const { return buffer >= 0; }
};

struct AdamStep {
  float learning_rate = 1e-3F, beta1 = 0.9F, beta2 = 0.95F, epsilon = 1e-8F;
  float weight_decay = 0;
  int step = 1;              // the first is 1, for the bias correction
  float gradient_scale = 1;  // 1 / microbatches, for the mean over them
};

struct StageOp {
  OpKind kind = OpKind::kGemm;
  std::string name;  // "block 3 qkv"
  std::vector<TensorView> inputs, outputs;
  int64_t rows = 0, columns = 0, inner = 0;
  bool transpose_a = false, transpose_b = false, accumulate = false;
  Epilogue epilogue = Epilogue::kNone;
  bool rms = false;
  float epsilon = 1e-5F;  // for norms
  float dropout = 0;      // probability of dropping an element
  uint64_t seed = 0;      // for the dropout mask
  float loss_scale = 1;   // factor on the gradient of the loss
  float rotary_base = 1e4F;
  int64_t sequences = 0, sequence_length = 0;
  int heads = 0, kv_heads = 0, head_size = 0;
  bool causal = false, fused = false;
  AdamStep adam;
  // Kernels that models/ counts for it: more than one for unfused attention,
  // none if models/ does not count it (clears).
  std::vector<models::Kernel> kernels;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_STAGE_STAGE_OP_H_
