// SPDX-License-Identifier: Apache-2.0
// Generates models in every form that weir reads.
#ifndef WEIR_TESTS_FUZZ_GENERATE_MODEL_H_
#define WEIR_TESTS_FUZZ_GENERATE_MODEL_H_

#include <string>

#include "models/layer_work.h"
#include "models/model.pb.h"
#include "tests/fuzz/choices.h"

namespace weir::fuzz {

// Generates a Hugging Face config.json of any supported family, with keys that
// weir does not know, nulls where they are allowed, and occasionally a value of
// the wrong type.
std::string GenerateHuggingFaceConfig(Choices* choices);

// Generates a PipeDream profile graph.
std::string GenerateProfileGraph(Choices* choices);

// Generates a transformer or a chain of measured layers.
Model GenerateModel(Choices* choices);

// Generates a configuration for running a valid model.
models::WorkSpec GenerateWorkSpec(const Model& model, Choices* choices);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_GENERATE_MODEL_H_
