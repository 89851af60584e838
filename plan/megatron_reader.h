// SPDX-License-Identifier: Apache-2.0
// Reads the arguments of Megatron-LM's pretrain_gpt.py: those that say what is
// trained and how, as MegatronArguments writes them.
#ifndef WEIR_PLAN_MEGATRON_READER_H_
#define WEIR_PLAN_MEGATRON_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scenarios/scenario.pb.h"

namespace weir {

struct MegatronRun {
  // Without cluster and number of replicas, which the arguments do not say.
  Scenario scenario;
  // Arguments that change neither time nor memory, or that weir does not
  // simulate, each once.
  std::vector<std::string> ignored;
};

// `text` holds arguments as on a command line, over any number of lines; what
// follows '#' in a line is a comment. InvalidArgument names the argument, its
// value and what was expected.
absl::StatusOr<MegatronRun> ReadMegatronArguments(const std::string& label,
                                                  absl::string_view text);

}  // namespace weir

#endif  // WEIR_PLAN_MEGATRON_READER_H_
