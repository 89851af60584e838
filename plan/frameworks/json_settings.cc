// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/problems.h"
#include "plan/frameworks/setting.h"

namespace weir::plan {
namespace {

constexpr size_t kMaxJsonDepth = 50;

// Counts the lines that the parser has read, which nlohmann's parser does not
// tell its handlers.
class LineCounter {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineCounter(const char* at, int* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  LineCounter& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  LineCounter operator++(int) {
    LineCounter old = *this;
    ++*this;
    return old;
  }
  bool operator==(const LineCounter& other) const { return at_ == other.at_; }
  bool operator!=(const LineCounter& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  int* line_;
};

class JsonLeaves : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonLeaves(const int* line) : line_(*line) {}

  bool null() override { return true; }
  bool boolean(bool value) override { return Add(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override {
    return Add(absl::StrCat(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Add(absl::StrCat(value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return Add(text);
  }
  bool string(string_t& value) override {
    return Add(value, Setting::Form::kString);
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return Push(); }
  bool key(string_t& value) override {
    keys_.back() = value;
    key_line_ = line_;
    return true;
  }
  bool end_object() override { return Pop(); }
  bool start_array(std::size_t) override {
    // Items of lists are not needed, only that there is a list.
    Add("[...]");
    ++num_lists_;
    return Push();
  }
  bool end_array() override {
    --num_lists_;
    return Pop();
  }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    error_ = error.what();
    return false;
  }

  const std::string& error() const { return error_; }
  std::vector<Setting> Take() { return std::move(settings_); }

 private:
  bool Push() {
    if (keys_.size() > kMaxJsonDepth) {
      error_ = absl::StrCat("has more than ", kMaxJsonDepth, " levels");
      return false;
    }
    keys_.emplace_back();
    return true;
  }
  bool Pop() {
    keys_.pop_back();
    return true;
  }
  bool Add(std::string value, Setting::Form form = Setting::Form::kLiteral) {
    if (keys_.empty() || num_lists_ > 0) return true;
    settings_.push_back(
        {absl::StrJoin(keys_, "."), std::move(value), key_line_, true, form});
    return true;
  }

  const int& line_;
  int key_line_ = 0, num_lists_ = 0;
  std::vector<std::string> keys_;
  std::vector<Setting> settings_;
  std::string error_;
};

}  // namespace

absl::StatusOr<std::vector<Setting>> ReadJsonSettings(const std::string& label,
                                                      absl::string_view text) {
  int line = 1;
  JsonLeaves leaves(&line);
  const bool parsed = nlohmann::json::sax_parse(
      LineCounter(text.data(), &line),
      LineCounter(text.data() + text.size(), &line), &leaves);
  if (parsed) return leaves.Take();
  Problems problems(label);
  problems.AddAt(line, "", absl::StrCat("is not JSON: ", leaves.error()));
  return problems.ToStatus();
}

}  // namespace weir::plan
