// SPDX-License-Identifier: Apache-2.0
// Imports measured fused attention, such as that of a framework, from a CSV
// file with the columns attention_pass ("forward", or "backward" for the whole
// backward pass), batch (sequences), heads, sequence_length, head_size, causal
// (0 or 1) and seconds, and optionally dtype ("bf16", the same in all rows) and
// kernel (its name, the same in all rows). Other columns are ignored.
// tools/torch_attention writes such a file.
#ifndef WEIR_CALIBRATE_FIT_IMPORT_ATTENTION_H_
#define WEIR_CALIBRATE_FIT_IMPORT_ATTENTION_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/fit/import.h"

namespace weir::calibrate {

// Entries of MeasurementFormats(). Replaces attention_efficiency,
// attention_backward_efficiency and attention_ramp_keys as far as the rows
// determine them (FitAttention).
bool LooksLikeAttention(absl::string_view text);
absl::StatusOr<Import> ImportAttention(absl::string_view label,
                                       absl::string_view text,
                                       const DeviceProfile& start,
                                       absl::string_view source);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_IMPORT_ATTENTION_H_
