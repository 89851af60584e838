// SPDX-License-Identifier: Apache-2.0
#include "results/store.h"

#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "results/validate.h"

namespace weir::results {
namespace {

constexpr size_t kMaxBytes = std::numeric_limits<int>::max();

// Returns the field of Results with which files begin.
std::string MarkField() {
  constexpr int kGenerator = 2;
  google::protobuf::UnknownFieldSet mark;
  mark.AddLengthDelimited(kGenerator, std::string(kOutputMark));
  std::string bytes;
  mark.SerializeToString(&bytes);
  return bytes;
}

}  // namespace

absl::Status SaveResults(const std::string& path, const Results& results,
                         const ReplaceOptions& replace) {
  const size_t size = results.ByteSizeLong();
  if (size > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": results take ", size, " bytes, expected at most ",
                     kMaxBytes, ": omit timelines"));
  }
  google::protobuf::LogSilencer silencer;  // our own messages suffice
  for (const Result& result : results.results()) {
    // Does not write what LoadResults would refuse.
    Result copy;
    if (!copy.ParseFromString(WithoutTimeline(result).SerializeAsString())) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": result \"", absl::CHexEscape(result.name()),
                       "\" contains text that is not UTF-8"));
    }
  }
  return WriteOutput(
      path, absl::StrCat(MarkField(), results.SerializeAsString()), replace);
}

absl::StatusOr<Results> ParseResults(absl::string_view label,
                                     absl::string_view bytes) {
  const absl::Status foreign = absl::InvalidArgumentError(
      absl::StrCat(label, ": is not a result file of weir"));
  if (bytes.size() > kMaxBytes) return foreign;
  absl::ConsumePrefix(&bytes, MarkField());
  Results results;
  {
    google::protobuf::LogSilencer silencer;
    if (!results.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return foreign;
    }
  }
  const auto& unknown = results.GetReflection()->GetUnknownFields(results);
  if (results.results_size() == 0 || !unknown.empty()) return foreign;

  for (int i = 0; i < results.results_size(); ++i) {
    RETURN_IF_ERROR(ValidateResult(absl::StrCat(label, ": results[", i, "]"),
                                   results.results(i)));
  }
  return results;
}

bool IsResultFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const std::string mark = MarkField();
  std::string begin(mark.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == mark;
}

absl::StatusOr<Results> LoadResults(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMaxBytes));
  return ParseResults(path, bytes);
}

}  // namespace weir::results
