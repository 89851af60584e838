// SPDX-License-Identifier: Apache-2.0
#include "plan/sweep/ranges.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

namespace weir::plan {
namespace {

using google::protobuf::FieldDescriptor;

constexpr size_t kMaxValues = 1000000;

absl::Status BadRange(const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "is \"", text,
      "\", expected A..B, A..B+STEP with a STEP above 0, or A..B*FACTOR with A "
      "above 0 and a FACTOR above 1, and A up to B"));
}

absl::StatusOr<std::vector<std::string>> Expand(const std::string& text) {
  const size_t dots = text.find("..");
  const size_t end = text.find_first_of("+*", dots);
  const bool multiplies = end != std::string::npos && text[end] == '*';
  double first = 0, last = 0, step = 1;
  const absl::string_view view = text;
  const size_t length = end == std::string::npos ? end : end - dots - 2;
  if (!absl::SimpleAtod(view.substr(0, dots), &first) ||
      !absl::SimpleAtod(view.substr(dots + 2, length), &last) ||
      (end != std::string::npos &&
       !absl::SimpleAtod(view.substr(end + 1), &step)) ||
      !(first <= last) || !(multiplies ? first > 0 && step > 1 : step > 0)) {
    return BadRange(text);
  }
  std::vector<std::string> values;
  double value = first;
  // Includes a last value that exceeds the end by rounding.
  while (value <= last + 1e-12 * std::fabs(last)) {
    if (values.size() == kMaxValues) {
      return absl::InvalidArgumentError(absl::StrCat(
          "is \"", text, "\", expected at most ", kMaxValues, " values"));
    }
    values.push_back(absl::StrFormat("%.12g", value));
    value = multiplies ? value * step
                       : first + static_cast<double>(values.size()) * step;
  }
  return values;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandRanges(
    const FieldDescriptor& field,
    const google::protobuf::RepeatedPtrField<std::string>& values) {
  const bool number = field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32 ||
                      field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
  std::vector<std::string> all;
  for (const std::string& value : values) {
    if (!number || value.find("..") == std::string::npos) {
      all.push_back(value);
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> range, Expand(value));
    all.insert(all.end(), range.begin(), range.end());
  }
  return all;
}

}  // namespace weir::plan
