// SPDX-License-Identifier: Apache-2.0
// What Megatron-LM takes: names, kinds and choices of arguments, and rules of
// its validate_args and configuration, typed in from NVIDIA/Megatron-LM commit
// 000c4ac24f61159c138b0975def722c65245983c (November 2025):
// megatron/training/arguments.py, megatron/core/transformer/moe and
// megatron/core/optimizer.
#ifndef WEIR_TESTS_PLAN_MEGATRON_RULES_H_
#define WEIR_TESTS_PLAN_MEGATRON_RULES_H_

#include <map>
#include <string>
#include <vector>

namespace weir {

// Argument and value ("" of a switch), in the form of a .args file.
using MegatronArgs = std::map<std::string, std::string>;

// Fails the test for a line that is no argument, and for one that comes twice.
MegatronArgs ParseMegatronArgs(const std::string& text);

// What Megatron-LM would refuse on so many GPUs, one line each.
std::vector<std::string> MegatronRefusals(const MegatronArgs& args,
                                          int num_gpus);

}  // namespace weir

#endif  // WEIR_TESTS_PLAN_MEGATRON_RULES_H_
