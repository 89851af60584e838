// SPDX-License-Identifier: Apache-2.0
// Number formats of the GEMMs of a layer, and the casts that they need
// (docs/number-formats.md).
#ifndef WEIR_MODELS_QUANTIZATION_H_
#define WEIR_MODELS_QUANTIZATION_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "models/recipe.pb.h"

namespace weir::models {

// What is cast: scales of weights may cover larger blocks.
enum class Operand : uint8_t { kActivation, kWeight };

// Returns the bytes of an element with its part of the scale factors; 0 for
// OPERAND_16_BIT. Per-tensor scales do not count. Block scales: DeepSeek-V3,
// section 3.3.2; MX formats: OCP Microscaling Formats 1.0, section 5; NVFP4:
// Pretraining Large Language Models with NVFP4 (arXiv 2509.25149), section 2.
double OperandBytes(OperandFormat format,
                    Operand operand = Operand::kActivation);

// Returns the name of the format in device profiles ("fp8_block"); "" for
// OPERAND_16_BIT.
const char* Name(OperandFormat format);

// Returns the format of that name, or OPERAND_16_BIT.
OperandFormat OperandFormatNamed(absl::string_view name);

// The part of a recipe that changes layers. Default: all GEMMs have 16-bit
// operands.
struct Quantization {
  OperandFormat forward = OPERAND_16_BIT;
  OperandFormat input_gradient = OPERAND_16_BIT;
  OperandFormat weight_gradient = OPERAND_16_BIT;
  // How often a cast reads the 16-bit tensor.
  int input_reads = 1, gradient_reads = 1, weight_reads = 1;
  bool norms_cast = false;
  bool gathers_operands = false;
  // Operands in FP8 with one scale per tensor are copied for each direction in
  // which GEMMs read them (MatrixRate.transposed_copies).
  bool transposed_copies = false;
  // Weights are cast in every forward instead of once per step: sharded weights
  // are freed after each use.
  bool casts_weights_each_pass = false;
  int first_blocks = 0, last_blocks = 0;  // that remain in 16 bits
  OperandFormat attention = OPERAND_16_BIT;
  OperandFormat dispatch = OPERAND_16_BIT;  // of tokens to experts

  // Returns true if GEMMs of linear layers are quantized.
  bool gemms() const {
    return forward != OPERAND_16_BIT || input_gradient != OPERAND_16_BIT ||
           weight_gradient != OPERAND_16_BIT;
  }
  bool any() const {
    return gemms() || attention != OPERAND_16_BIT || dispatch != OPERAND_16_BIT;
  }
  bool operator==(const Quantization&) const = default;
};

// Returns the bytes, per element, of the copies of a tensor that two GEMMs
// read, in formats `a` and `b`, along different dimensions. Both may be
// OPERAND_16_BIT, which needs no copy.
double CopyBytes(const Quantization& quantization, OperandFormat a,
                 OperandFormat b, Operand operand);

// Returns CopyBytes of the weights: in the forward and for the gradient of the
// input.
double WeightCopyBytes(const Quantization& quantization);
// Returns the bytes per weight that a cast from 16 bits reads and writes.
double WeightCastBytes(const Quantization& quantization);

}  // namespace weir::models

#endif  // WEIR_MODELS_QUANTIZATION_H_
