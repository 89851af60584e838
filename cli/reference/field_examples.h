// SPDX-License-Identifier: Apache-2.0
// Examples of the fields of input files.
#ifndef WEIR_CLI_REFERENCE_FIELD_EXAMPLES_H_
#define WEIR_CLI_REFERENCE_FIELD_EXAMPLES_H_

#include <map>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.pb.h"

namespace weir::cli {

// Returns by full name ("weir.Parallelism.tensor") the value that a field has
// in the first preset that sets it, or else in the first of `more`, in text
// format. These are texts that name their message as presets do. Fields of type
// bool are true and those of an enum its first value where neither sets them.
// Figures are shortened to their value; other messages have no example.
std::map<std::string, std::string> FieldExamples(
    const google::protobuf::FileDescriptorSet& files,
    const std::vector<std::string>& more);

}  // namespace weir::cli

#endif  // WEIR_CLI_REFERENCE_FIELD_EXAMPLES_H_
