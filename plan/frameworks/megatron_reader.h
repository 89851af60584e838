// SPDX-License-Identifier: Apache-2.0
// Reads arguments of Megatron-LM's pretrain_gpt.py that determine what is
// trained and how: those that MegatronArguments writes.
#ifndef WEIR_PLAN_FRAMEWORKS_MEGATRON_READER_H_
#define WEIR_PLAN_FRAMEWORKS_MEGATRON_READER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scenarios/scenario.pb.h"

namespace weir::plan {

struct MegatronRun {
  // Without the cluster and the number of replicas, which the arguments do not
  // state.
  Scenario scenario;
  // Arguments that affect neither time nor memory, or that weir does not
  // simulate; each once.
  std::vector<std::string> ignored;
};

// `text` holds arguments as on a command line, over any number of lines; '#'
// starts a comment. Returns InvalidArgument with the argument, its value and
// what was expected.
absl::StatusOr<MegatronRun> ReadMegatronArguments(const std::string& label,
                                                  absl::string_view text);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_MEGATRON_READER_H_
