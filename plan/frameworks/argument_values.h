// SPDX-License-Identifier: Apache-2.0
// Arguments of Megatron-LM by the form of their value. Each applies its value
// with a function.
#ifndef WEIR_PLAN_FRAMEWORKS_ARGUMENT_VALUES_H_
#define WEIR_PLAN_FRAMEWORKS_ARGUMENT_VALUES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "plan/frameworks/megatron_argument_table.h"
#include "plan/frameworks/megatron_settings.h"
#include "scenarios/scenario.pb.h"

namespace weir::plan {

// Returns an argument without a value.
MegatronArgument SwitchArgument(std::function<void(MegatronSettings*)> set);

// Returns an argument whose value is a whole number from 0.
MegatronArgument CountArgument(
    std::function<void(MegatronSettings*, uint32_t)> set);

// Returns an argument whose value is a whole number from 1.
MegatronArgument SizeArgument(
    std::function<void(MegatronSettings*, uint32_t)> set);

// Returns an argument whose value is any number.
MegatronArgument NumberArgument(
    std::function<void(MegatronSettings*, double)> set);

// Returns an argument whose value is one of these words.
MegatronArgument WordArgument(
    std::map<std::string, std::function<void(MegatronSettings*)>> words);

// Returns an argument whose value is the format of a value that the optimizer
// keeps.
MegatronArgument StateWordArgument(void (Training::*set)(StateFormat));

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_ARGUMENT_VALUES_H_
