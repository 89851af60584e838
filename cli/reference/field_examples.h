// SPDX-License-Identifier: Apache-2.0
// Examples of the fields of input files, from the presets.
#ifndef WEIR_CLI_REFERENCE_FIELD_EXAMPLES_H_
#define WEIR_CLI_REFERENCE_FIELD_EXAMPLES_H_

#include <map>
#include <string>

#include "google/protobuf/descriptor.pb.h"

namespace weir::cli {

// Returns by full name ("weir.Parallelism.tensor") the value that a field has
// in the first preset that sets it, in text format. Fields whose values are
// messages have none.
std::map<std::string, std::string> FieldExamples(
    const google::protobuf::FileDescriptorSet& files);

}  // namespace weir::cli

#endif  // WEIR_CLI_REFERENCE_FIELD_EXAMPLES_H_
