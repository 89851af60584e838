// SPDX-License-Identifier: Apache-2.0
// Documents: what --format json of plan, collect, validate, synthesize, explain
// and train-study prints.
#ifndef WEIR_RESULTS_REPORT_DOCUMENT_H_
#define WEIR_RESULTS_REPORT_DOCUMENT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::results {

// A document that a report shows.
// NOLINTNEXTLINE(bugprone-exception-escape): moving JSON throws nothing
struct Document {
  std::string type;   // of its section: "plan", "sweep", "validation", ...
  std::string title;  // "Plans"
  std::string command, version;
  nlohmann::ordered_json section;  // "type", "result"
  std::vector<std::string> warnings;
};

// Reads a document. Returns InvalidArgument if the text is not JSON, is the
// output of another command, or lacks a field of the report or has a value of
// another type in it; `label` is the name of the file.
absl::StatusOr<Document> ReadDocument(absl::string_view label,
                                      absl::string_view text);

}  // namespace weir::results

#endif  // WEIR_RESULTS_REPORT_DOCUMENT_H_
