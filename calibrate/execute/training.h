// SPDX-License-Identifier: Apache-2.0
// Data and initial weights of a training: the same for every way to train, so
// that losses and weights are comparable.
#ifndef WEIR_CALIBRATE_EXECUTE_TRAINING_H_
#define WEIR_CALIBRATE_EXECUTE_TRAINING_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "calibrate/execute/execution_plan.h"

namespace weir::calibrate {

// Tokens and targets (the next tokens) of one microbatch, sequences x
// sequence_length, as whole numbers: text of a random bigram language, which a
// small model can learn. `microbatch` counts over all steps and batches.
struct MicrobatchData {
  std::vector<double> tokens, targets;
};
MicrobatchData DataOf(const ExecutionPlan& plan, int64_t microbatch);

// Returns the initial weights of layers [first, last), laid out as the weights
// of their StageProgram: gains 1, biases 0, all others with mean 0 and
// deviation 0.02, nearly normal and at most 3.5 deviations from 0. They are
// sums of uniform numbers, since a model for a GPU has billions. A parameter's
// value depends on its layer and its position there, not on the partition into
// stages. Tied embeddings begin equal.
std::vector<double> InitialWeights(const ExecutionPlan& plan, int first_layer,
                                   int last_layer);

// Partitions weights of the whole model, laid out as by InitialWeights(plan, 0,
// num_layers), into the stages' weights. Layers are consecutive, each parameter
// at a multiple of 8 elements, so that stages are consecutive ranges; only a
// tied head in another stage than the embedding has an additional table.
std::vector<std::vector<double>> CutWeights(const ExecutionPlan& plan,
                                            absl::Span<const double> whole);

// Returns the value that is XORed to the seeds of operations for a microbatch.
uint64_t DropoutSeed(const ExecutionPlan& plan, int64_t microbatch);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_TRAINING_H_
