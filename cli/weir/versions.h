// SPDX-License-Identifier: Apache-2.0
// Versions of weir and of its libraries.
#ifndef WEIR_CLI_WEIR_VERSIONS_H_
#define WEIR_CLI_WEIR_VERSIONS_H_

#include <string>

namespace weir::cli {

std::string ProtobufVersion();
std::string AbseilVersion();

// Returns "weir 0.1.0 (git 123456789abc)".
std::string VersionText();

// Returns {"weir": "0.1.0", "git": ..., "simgrid": ..., "protobuf": ...,
// "abseil": ...}.
std::string VersionJson();

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_VERSIONS_H_
