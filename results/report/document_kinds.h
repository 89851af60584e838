// SPDX-License-Identifier: Apache-2.0
// The documents that reports show, and the fields that their pages read.
#ifndef WEIR_RESULTS_REPORT_DOCUMENT_KINDS_H_
#define WEIR_RESULTS_REPORT_DOCUMENT_KINDS_H_

#include <vector>

namespace weir::results {

enum class JsonType {
  kNumber,
  kNumberOrNull,
  kText,
  kArray,
  kObject,
  kBoolean
};

// A field that the page reads. "*" in a path stands for all entries of an
// array.
struct DocumentField {
  const char* path;
  JsonType type;
  bool optional = false;
};

struct DocumentKind {
  const char* type;
  const char* title;
  const char* command;
  // Members of "result" that only this kind has.
  std::vector<const char*> marks;
  std::vector<DocumentField> fields;
  // Members of "result" that the page reads; empty: all.
  std::vector<const char*> kept = {};
};

const std::vector<DocumentKind>& DocumentKinds();

}  // namespace weir::results

#endif  // WEIR_RESULTS_REPORT_DOCUMENT_KINDS_H_
