// SPDX-License-Identifier: Apache-2.0
// Numbers of a message by their path.
#ifndef WEIR_TOOLS_ACCURACY_SET_FIGURE_H_
#define WEIR_TOOLS_ACCURACY_SET_FIGURE_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"

namespace weir {

// Sets "kernel_seconds.value" or "matrix_rates.0.peak_flops.value": fields, and
// the number of an entry after a repeated one. InvalidArgument for a path that
// leads to no number.
absl::Status SetNumber(const std::string& path, double value,
                       google::protobuf::Message* message);

}  // namespace weir

#endif  // WEIR_TOOLS_ACCURACY_SET_FIGURE_H_
