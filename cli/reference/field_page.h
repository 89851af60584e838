// SPDX-License-Identifier: Apache-2.0
// The fields of input files as a page of the manual.
#ifndef WEIR_CLI_REFERENCE_FIELD_PAGE_H_
#define WEIR_CLI_REFERENCE_FIELD_PAGE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::cli {

// Returns Markdown: a section for every message and enum of a serialized
// FileDescriptorSet that files of the types `roots` ("weir.Scenario") may
// contain, with the comments of the .proto files, which protoc wrote with
// --include_source_info. `examples` are files for FieldExamples. Returns
// InvalidArgument if the text is no such set, if it lacks a root, or if a field
// that is no message has no example.
absl::StatusOr<std::string> FieldPage(const std::string& descriptors,
                                      const std::vector<std::string>& examples,
                                      const std::vector<std::string>& roots);

}  // namespace weir::cli

#endif  // WEIR_CLI_REFERENCE_FIELD_PAGE_H_
