// SPDX-License-Identifier: Apache-2.0
// Files that the reader of a document has, or a command of another page made.
#ifndef WEIR_TESTS_CLI_REFERENCE_DOCUMENT_FILES_H_
#define WEIR_TESTS_CLI_REFERENCE_DOCUMENT_FILES_H_

#include <string>

namespace weir::cli::document_runs_test {

// Makes a folder with the programs weir, weir-calibrate (bin/) and ./run,
// blocks of the document that are files, and files of inputs/ and those made by
// commands that the document's commands name; the document is named from the
// root ("docs/x.md"). Returns the folder.
std::string PrepareFiles(const std::string& document, const std::string& text);

}  // namespace weir::cli::document_runs_test

#endif  // WEIR_TESTS_CLI_REFERENCE_DOCUMENT_FILES_H_
