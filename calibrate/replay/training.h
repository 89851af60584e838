// SPDX-License-Identifier: Apache-2.0
// What is trained on, and from where: the same for every way to train, so that
// losses and weights can be compared.
#ifndef WEIR_CALIBRATE_REPLAY_TRAINING_H_
#define WEIR_CALIBRATE_REPLAY_TRAINING_H_

#include <cstdint>
#include <vector>

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
// StageProgram: normal, 0.02, gains 1, biases 0. A parameter's value depends on
// its layer and its place there, not on how layers are cut into stages. Tied
// embeddings begin equal.
std::vector<double> InitialWeights(const ReplayPlan& plan, int first_layer,
                                   int last_layer);

// Dropout of a microbatch: what is XORed to the seeds of operations.
uint64_t DropoutSeed(const ReplayPlan& plan, int64_t microbatch);

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_TRAINING_H_
