// SPDX-License-Identifier: Apache-2.0
#include "base/json_syntax.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"

namespace weir {
namespace {

using nlohmann::json;

constexpr size_t kMaxTokenBytes = 40;  // maximum in a message

class SyntaxProbe : public json::json_sax_t {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return Enter(); }
  bool key(string_t&) override { return true; }
  bool end_object() override { return Leave(); }
  bool start_array(std::size_t) override { return Enter(); }
  bool end_array() override { return Leave(); }
  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::detail::exception&) override {
    offset = position;
    token = last_token.substr(0, kMaxTokenBytes);
    return false;
  }

  bool is_too_deep() const { return depth_ > kMaxJsonDepth; }

  std::size_t offset = 0;
  std::string token;

 private:
  bool Enter() { return ++depth_ <= kMaxJsonDepth; }
  bool Leave() {
    --depth_;
    return true;
  }

  int depth_ = 0;
};

}  // namespace

absl::Status CheckJsonSyntax(absl::string_view label, absl::string_view text) {
  SyntaxProbe probe;
  if (json::sax_parse(text.begin(), text.end(), &probe)) {
    return absl::OkStatus();
  }
  if (probe.is_too_deep()) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": is JSON nested deeper than ", kMaxJsonDepth,
                     " levels, the limit"));
  }
  const absl::string_view before = text.substr(
      0, std::min(text.size(), std::max<size_t>(probe.offset, 1) - 1));
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return absl::InvalidArgumentError(absl::StrCat(
      label, ":", std::count(before.begin(), before.end(), '\n') + 1, ":",
      before.size() - line_start + 1, ": is not JSON near \"", probe.token,
      "\""));
}

}  // namespace weir
