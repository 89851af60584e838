// SPDX-License-Identifier: Apache-2.0
// NeMo's names of Megatron-LM's arguments.
#ifndef WEIR_PLAN_FRAMEWORKS_NEMO_KEYS_H_
#define WEIR_PLAN_FRAMEWORKS_NEMO_KEYS_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace weir::plan {

struct NemoKey {
  enum Form {
    kValue,     // the argument's value
    kSwitch,    // true: the argument is given
    kInverted,  // false: the argument is given
  };
  absl::string_view key;       // "model.num_layers"
  absl::string_view argument;  // "num-layers"
  Form form = kValue;
  // Written by weir. Other keys are older or equivalent names, which are only
  // read.
  bool is_written = true;
};

// Returns them in the order in which they are written.
const std::vector<NemoKey>& NemoKeys();

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_NEMO_KEYS_H_
