// SPDX-License-Identifier: Apache-2.0
#include "results/import/primus_file.h"

#include <algorithm>
#include <cmath>
#include <istream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/json_syntax.h"
#include "results/import/recorded_run.h"

namespace weir::results {
namespace {

using nlohmann::json;

// Farther away than any step is long.
constexpr double kMaxMilliseconds = 1e13;

// Receives the tokens of a file. Every function returns false to stop.
class DumpHandler : public nlohmann::json_sax<json> {
 public:
  explicit DumpHandler(TraceSource* source) : source_(source) {}

  bool null() override { return Other("null"); }
  bool boolean(bool value) override { return Other(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override {
    return Number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override {
    return Number(value);
  }
  bool string(string_t& value) override { return Other(value); }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& value) override {
    source_->EndItem();
    key_ = std::move(value);
    if (depth_ == 1) step_key_ = key_;
    if (depth_ == 2) SelectList();
    return true;
  }
  bool start_object(size_t) override {
    if (!Open()) return false;
    if (depth_ != 2) return true;
    int32_t number = 0;
    if (!absl::SimpleAtoi(step_key_, &number) || number < 0 ||
        number > kMaxRecordedNumber) {
      return Fail(absl::StrCat("\"", step_key_,
                               "\" is an object, expected the number of a "
                               "step"));
    }
    if (file_.steps.contains(number)) {
      return Fail(absl::StrCat("has step ", number, " twice, expected once"));
    }
    number_ = number;
    step_ = PrimusStep();
    return true;
  }
  bool end_object() override {
    source_->EndItem();
    if (depth_ == 2) file_.steps.emplace(number_, std::move(step_));
    --depth_;
    list_ = nullptr;
    return true;
  }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override {
    source_->EndItem();
    --depth_;
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    position_ = position;
    return false;
  }

  absl::StatusOr<PrimusFile> Finish(bool parsed) {
    if (!status_.ok()) return status_;
    if (!source_->status().ok()) return source_->status();
    if (!parsed && !source_->at_end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          source_->label(), ": byte ", position_,
          ": is not JSON, expected a file of Primus (docs/traces.md)"));
    }
    file_.cut_off = !parsed || source_->cut_off();
    return std::move(file_);
  }

 private:
  bool Fail(absl::string_view what) {
    status_ =
        absl::InvalidArgumentError(absl::StrCat(source_->label(), ": ", what));
    return false;
  }
  bool Open() {
    source_->EndItem();
    if (++depth_ <= kMaxJsonDepth) return true;
    return Fail(absl::StrCat("nests deeper than ", kMaxJsonDepth,
                             " arrays and objects"));
  }

  // Selects the list of the current key, or none.
  void SelectList() {
    list_ = nullptr;
    for (int kind = 0; kind < kNumPrimusKinds; ++kind) {
      absl::string_view name = key_;
      if (!absl::ConsumePrefix(&name, kPrimusPrefixes[kind])) continue;
      PrimusPasses& passes = step_[kind];
      is_time_ = name == "start" || name == "end";
      if (name == "start") list_ = &passes.start_milliseconds;
      if (name == "end") list_ = &passes.end_milliseconds;
      if (name == "minibatch") list_ = &passes.microbatches;
      if (name == "chunk") list_ = &passes.chunks;
    }
  }

  bool Number(double value) {
    source_->EndItem();
    if (depth_ == 1) file_.numbers[key_] = value;
    if (depth_ != 3 || list_ == nullptr) return true;
    const bool valid = is_time_ ? std::abs(value) <= kMaxMilliseconds
                                : value >= 0 && value <= kMaxRecordedNumber &&
                                      value == std::floor(value);
    if (!valid) return Refuse(absl::StrFormat("%g", value));
    list_->push_back(value);
    return true;
  }

  bool Other(absl::string_view value) {
    source_->EndItem();
    if (depth_ != 3 || list_ == nullptr) return true;
    return Refuse(absl::StrCat("\"", value.substr(0, 40), "\""));
  }

  bool Refuse(absl::string_view value) {
    return Fail(absl::StrCat(
        "step ", number_, ": ", key_, " contains ", value,
        is_time_ ? ", expected milliseconds" : ", expected numbers from 0"));
  }

  TraceSource* source_;
  int depth_ = 0;
  std::string key_, step_key_;
  int32_t number_ = 0;
  PrimusStep step_;
  std::vector<double>* list_ = nullptr;  // of the current key, in step_
  bool is_time_ = false;
  PrimusFile file_;
  size_t position_ = 0;
  absl::Status status_;
};

}  // namespace

bool IsPrimusDump(absl::string_view bytes) {
  bytes = absl::StripLeadingAsciiWhitespace(bytes);
  if (!absl::ConsumePrefix(&bytes, "{")) return false;
  bytes = absl::StripLeadingAsciiWhitespace(bytes);
  if (!absl::ConsumePrefix(&bytes, "\"")) return false;
  const size_t end = bytes.find('"');
  if (end == 0 || end == absl::string_view::npos) return false;
  const absl::string_view key = bytes.substr(0, end);
  if (std::all_of(key.begin(), key.end(),
                  [](unsigned char c) { return absl::ascii_isdigit(c); })) {
    return true;
  }
  return key == "pp_size" || absl::StrContains(bytes, "\"pp_size\"");
}

absl::StatusOr<PrimusFile> ReadPrimusFile(TraceSource* source) {
  std::istream stream(source);
  DumpHandler handler(source);
  const bool parsed = json::sax_parse(stream, &handler);
  return handler.Finish(parsed);
}

}  // namespace weir::results
