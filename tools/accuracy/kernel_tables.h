// SPDX-License-Identifier: Apache-2.0
// Reads the published tables of kernels (github.com/ai-dynamo/aiconfigurator).
// All return the errors of ReadFile and ReadCsv, and no rows for a system
// without measurements.
#ifndef WEIR_TOOLS_ACCURACY_KERNEL_TABLES_H_
#define WEIR_TOOLS_ACCURACY_KERNEL_TABLES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/fit/fit_collectives.h"

namespace weir {

// One forward pass of causal attention over whole sequences.
struct AttentionRow {
  int line = 0;
  double batch = 0, sequence_length = 0, heads = 0, key_heads = 0;
  double head_size = 0, value_size = 0;
  double seconds = 0;
};

// Returns the bf16 rows of one kernel without a window, from 512 tokens.
absl::StatusOr<std::vector<AttentionRow>> ReadAttentionRows(
    const std::string& tables, absl::string_view system,
    absl::string_view kernel);

// Returns the bf16 rows of multi-head latent attention from 512 tokens; medians
// of repeated measurements.
absl::StatusOr<std::vector<AttentionRow>> ReadLatentRows(
    const std::string& tables, absl::string_view system);

// The experts of one GPU, with balanced routing.
struct ExpertRow {
  int line = 0;
  // tokens: of the whole expert-parallel group.
  double tokens = 0, hidden = 0, width = 0, topk = 0, experts = 0;
  double tensor_parallel = 1, expert_parallel = 1;
  bool gated = true;
  double seconds = 0;
};

// Returns the bf16 rows with at least 256 tokens per expert, as in training,
// from the first folder that has the system's table.
absl::StatusOr<std::vector<ExpertRow>> ReadExpertRows(
    const std::vector<std::string>& folders, absl::string_view system);

// The kernels of a linear recurrence, or of its convolution, over whole
// sequences.
struct RecurrenceRow {
  int line = 0;
  double batch = 0, sequence_length = 0;
  double key_heads = 0, key_size = 0;  // Mamba-2: groups, state
  double value_heads = 0, value_size = 0;
  double chunk = 0;  // Mamba-2
  bool mamba = false;
  double seconds = 0;
};

// Returns the rows of one kernel from 2,048 tokens.
absl::StatusOr<std::vector<RecurrenceRow>> ReadRecurrenceRows(
    const std::string& path, absl::string_view system,
    absl::string_view kernel);

// Returns the medians of the collectives of fp16 from 1 KiB, as they were
// measured with an NCCL version in one node with the links of `node`.
absl::StatusOr<std::vector<calibrate::CollectiveSample>> ReadNcclRows(
    const std::string& tables, absl::string_view system,
    absl::string_view version, const calibrate::CollectiveGroup& node);

// Dispatch of tokens to experts on other GPUs, or their return.
struct ExchangeRow {
  int line = 0;
  double gpus = 0, tokens = 0, hidden = 0, topk = 0, experts = 0;
  double element_bytes = 1;
  double seconds = 0;
  double nodes = 1, multiprocessors = 0;
};

// Returns the rows of DeepEP with 256 and more tokens per GPU and 12 and more
// multiprocessors; the fastest of repeated measurements.
absl::StatusOr<std::vector<ExchangeRow>> ReadDeepEpRows(
    const std::string& tables, absl::string_view system, bool dispatch);

// Returns the rows of TensorRT-LLM's two-sided all-to-all in bf16, in a rack of
// GB200, with 256 and more tokens per GPU.
absl::StatusOr<std::vector<ExchangeRow>> ReadRackRows(const std::string& tables,
                                                      bool dispatch);

}  // namespace weir

#endif  // WEIR_TOOLS_ACCURACY_KERNEL_TABLES_H_
