// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/megatron_argument_table.h"

#include "plan/frameworks/megatron_argument_groups.h"

namespace weir::plan {

const std::map<std::string, MegatronArgument>& MegatronArgumentTable() {
  static const auto& table = *new std::map<std::string, MegatronArgument>([] {
    std::map<std::string, MegatronArgument> all = ModelArguments();
    for (auto& [name, argument] : all) argument.is_model = true;
    all.merge(ParallelArguments());
    all.merge(TrainingArguments());
    return all;
  }());
  return table;
}

}  // namespace weir::plan
