// SPDX-License-Identifier: Apache-2.0
// Sets numbers of a message by path.
#ifndef WEIR_TOOLS_ACCURACY_SET_FIGURE_H_
#define WEIR_TOOLS_ACCURACY_SET_FIGURE_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"

namespace weir {

// Sets the number at a path such as "kernel_seconds.value" or
// "matrix_rates.0.peak_flops.value": fields, each repeated one followed by the
// index of an entry. Returns InvalidArgument if the path does not lead to a
// number.
absl::Status SetNumber(const std::string& path, double value,
                       google::protobuf::Message* message);

}  // namespace weir

#endif  // WEIR_TOOLS_ACCURACY_SET_FIGURE_H_
