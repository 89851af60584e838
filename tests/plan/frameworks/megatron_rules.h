// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's rules: names, kinds and choices of arguments, and the rules of
// its validate_args and configuration, copied by hand from NVIDIA/Megatron-LM
// commit 000c4ac24f61159c138b0975def722c65245983c (November 2025):
// megatron/training/arguments.py, megatron/core/transformer/moe and
// megatron/core/optimizer.
#ifndef WEIR_TESTS_PLAN_FRAMEWORKS_MEGATRON_RULES_H_
#define WEIR_TESTS_PLAN_FRAMEWORKS_MEGATRON_RULES_H_

#include <map>
#include <string>
#include <vector>

namespace weir::plan {

// Arguments and their values ("" for a switch), as in an .args file.
using MegatronArgs = std::map<std::string, std::string>;

// Fails the test for a line that is not an argument and for duplicates.
MegatronArgs ParseMegatronArgs(const std::string& text);

// Returns the reasons why Megatron-LM would refuse these arguments on
// `num_gpus` GPUs.
std::vector<std::string> MegatronRefusals(const MegatronArgs& args,
                                          int num_gpus);

}  // namespace weir::plan

#endif  // WEIR_TESTS_PLAN_FRAMEWORKS_MEGATRON_RULES_H_
