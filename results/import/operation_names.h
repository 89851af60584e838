// SPDX-License-Identifier: Apache-2.0
// The names that training programs give to ranges of a trace.
#ifndef WEIR_RESULTS_IMPORT_OPERATION_NAMES_H_
#define WEIR_RESULTS_IMPORT_OPERATION_NAMES_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "results/import/recorded_run.h"

namespace weir::results {

struct NamedOperation {
  RecordedKind kind = RecordedKind::kForward;
  int stage = -1;       // of all; -1: not named
  int chunk = -1;       // of the rank; -1: not named
  int microbatch = -1;  // -1: not named
  // "B" of zero-bubble schedules: backward-input if there is a "W".
  bool input_only = false;
};

// Parses
//   forward-compute, backward-send, params-all-gather, ...: Megatron-LM's
//     timers, which ByteDance's traces use (arXiv 2505.05713, section 3);
//   PP:2F0, PP:2SEND_F0, ...: PyTorch's pipeline runtime (torchtitan), in
//     torch/distributed/pipelining/schedules.py;
//   Forward 3, Backward 3: PyTorch's schedules of one stage per rank;
//   F3.0, B3.0.0, W3.0.0 (microbatch, chunk, part of the sequence): the
//     zero-bubble runtimes of Megatron-LM and Primus.
std::optional<NamedOperation> ParseOperationName(absl::string_view name);

// Parses only the first kind, which needs no other field.
std::optional<RecordedKind> ParseTimerName(absl::string_view name);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_OPERATION_NAMES_H_
