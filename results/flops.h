// SPDX-License-Identifier: Apache-2.0
// Conventions for the FLOP of a batch, behind TFLOP/s and MFU. docs/flops.md
// compares them.
#ifndef WEIR_RESULTS_FLOPS_H_
#define WEIR_RESULTS_FLOPS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/result.pb.h"

namespace weir::results {

// For B sequences of s tokens through l layers of h units with V words, N
// parameters outside the input embedding, and attention over a total width of
// HQ (heads x head size):
//   model         every GEMM of the forward and the backward once: weir's own
//                 count; attention in full, causal or not
//   model-causal  the same without the scores that a causal mask removes
//   megatron      Narayanan et al., SC 2021, equation 3: 96 B s l h^2 (1 + s /
//                 (6 h) + V / (16 l h)) with full recomputation, else 72 B s l
//                 h^2 (1 + s / (6 h) + V / (12 l h)); attention in full
//   palm          Chowdhery et al. 2022, appendix B: B s (6 N + 12 l HQ s);
//                 attention in full. Of experts, N counts those of a token.
//   palm-causal   the same with half of the attention: B s (6 N + 6 l HQ s)
//   hardware      what the GPUs execute, including recomputation; fused
//                 attention skips masked tiles
//   megatron96, model72   the two cases of megatron, whatever the run
//                 recomputes
enum class FlopsFormula {
  kNone,
  kModel,
  kModelCausal,
  kMegatron,
  kPalm,
  kPalmCausal,
  kHardware,
  kMegatron96,
  kModel72,
};

// Parses one of these names; else InvalidArgument "is x, expected ...".
absl::StatusOr<FlopsFormula> ParseFlopsFormula(absl::string_view text);
// Does the same without megatron96 and model72, which a result cannot report.
// Returns InvalidArgument for other names.
absl::StatusOr<FlopsFormula> ParseReportedFormula(absl::string_view text);
absl::string_view NameOf(FlopsFormula formula);

// Returns equation 3 for `passes` forwards' worth of work in the layers: 4 with
// full recomputation, 3 without, 1 for a forward only.
double MegatronFlops(double sequences, double sequence_length,
                     double num_layers, double hidden_size,
                     double vocabulary_size, int passes);

// Returns the FLOP of a batch on all GPUs; absent for given costs and measured
// models, and for megatron96 and model72, which need the model's sizes.
std::optional<double> FlopsOfBatch(const Result& result, FlopsFormula formula);

// Returns the FLOP per second and GPU.
std::optional<double> FlopsPerGpu(const Result& result, FlopsFormula formula);

// Returns FLOP over the peak FLOP of the GPUs. Results without counts have only
// that of the formula model.
std::optional<double> UtilizationOf(const Result& result, FlopsFormula formula);

// Returns the formula that views of the result use.
FlopsFormula FormulaOf(const Result& result);

}  // namespace weir::results

#endif  // WEIR_RESULTS_FLOPS_H_
