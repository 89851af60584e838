// SPDX-License-Identifier: Apache-2.0
// Sets one parameter of a message that a path names ("gemm.sustained_rate").
#ifndef WEIR_CALIBRATE_PROFILE_SET_FIGURE_H_
#define WEIR_CALIBRATE_PROFILE_SET_FIGURE_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::calibrate {

// Which fields other than Figures a path may name.
enum class ScalarFields {
  kNone,     // device profiles, whose other numbers belong to measurements
  kDoubles,  // clusters, whose counts determine what else is valid
  kAll,      // runtimes: switches, sizes
};

// Returns all paths that may be set, in field order: Figures and scalars of
// present messages, whether they are set or not. Elements of repeated messages
// are "[0]", "[1]", ....
std::vector<std::string> SettablePaths(const google::protobuf::Message& message,
                                       ScalarFields scalars);

// Sets the field at `path`, where "[]" stands for every element of a repeated
// message. `value` is "0.85" or "0.85+-5%" for a Figure, which becomes ASSUMED
// with the source "--set" and the given relative error, otherwise 0; a number
// or "true" or "false" for a scalar. Returns the previous value as text,
// "unset" if there was none. Returns InvalidArgument for a value that does not
// fit, and NotFound for a path that is not one of SettablePaths; the messages
// are "expected ...".
absl::StatusOr<std::string> SetFigure(absl::string_view path,
                                      absl::string_view value,
                                      ScalarFields scalars,
                                      google::protobuf::Message* message);

// Returns "; did you mean a or b?" with the closest of the known paths: those
// with the same last name, else the most similar one. Empty if there is none.
std::string DidYouMeanPath(absl::string_view path,
                           const std::vector<std::string>& known);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_PROFILE_SET_FIGURE_H_
