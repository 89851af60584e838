// SPDX-License-Identifier: Apache-2.0
// What is trained on, and from where: the same for every way to train, so that
// losses and weights can be compared.
#ifndef WEIR_CALIBRATE_REPLAY_TRAINING_H_
#define WEIR_CALIBRATE_REPLAY_TRAINING_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "calibrate/replay/replay_plan.h"

namespace weir {

// Tokens and targets (the next tokens) of one microbatch, sequences x
// sequence_length, as whole numbers: text of a random bigram language, which a
// small model learns. `microbatch` counts over all steps and batches.
struct MicrobatchData {
  std::vector<double> tokens, targets;
};
MicrobatchData DataOf(const ReplayPlan& plan, int64_t microbatch);

// The initial weights of layers [first, last), laid out as the weights of their
// StageProgram: gains 1, biases 0, the rest of mean 0 and deviation 0.02,
// nearly normal, at most 3.5 deviations: a sum of uniform numbers, since a
// model for a GPU has billions. A parameter's value depends on its layer and
// its place there, not on how layers are cut into stages. Tied embeddings begin
// equal.
std::vector<double> InitialWeights(const ReplayPlan& plan, int first_layer,
                                   int last_layer);

// Weights of the whole model, as InitialWeights(plan, 0, num_layers) lays them
// out, cut into the stages' own. Layers lie one behind the other, each
// parameter at a multiple of 8 elements, so that stages are consecutive parts
// of them; only a tied head apart from the embedding has a table besides.
std::vector<std::vector<double>> CutWeights(const ReplayPlan& plan,
                                            absl::Span<const double> whole);

// Dropout of a microbatch: what is XORed to the seeds of operations.
uint64_t DropoutSeed(const ReplayPlan& plan, int64_t microbatch);

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_TRAINING_H_
