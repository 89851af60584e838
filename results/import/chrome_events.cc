// SPDX-License-Identifier: Apache-2.0
#include "results/import/chrome_events.h"

#include <cmath>
#include <istream>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json_syntax.h"
#include "results/import/recorded_run.h"

namespace weir::results {
namespace {

using nlohmann::json;

constexpr double kMaxMicroseconds =
    kMaxRecordedSeconds / kSecondsPerMicrosecond;
constexpr size_t kMaxProperties = 1000, kMaxOpenEvents = 1 << 20;

std::string TextOf(const TraceValue& value) {
  return value.is_number ? absl::StrFormat("%.0f", value.number) : value.text;
}

std::string ValueText(const TraceValue& value) {
  if (value.is_null) return "null";
  return value.is_number ? absl::StrFormat("%g", value.number)
                         : absl::StrCat("\"", value.text, "\"");
}

// Receives the tokens of the file. Every function returns false to stop.
class Handler : public nlohmann::json_sax<json> {
 public:
  Handler(TraceSource* source,
          const std::function<absl::Status(const ChromeEvent&)>& take)
      : source_(source), take_(take) {}

  bool null() override { return Value({"", 0, false, true}); }
  bool boolean(bool value) override {
    return Value({"", value ? 1.0 : 0.0, true});
  }
  bool number_integer(number_integer_t value) override {
    return Value({"", static_cast<double>(value), true});
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Value({"", static_cast<double>(value), true});
  }
  bool number_float(number_float_t value, const string_t&) override {
    return Value({"", value, true});
  }
  bool string(string_t& value) override {
    return Value({std::move(value), 0, false});
  }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& value) override {
    source_->EndItem();
    keys_.back() = std::move(value);
    return true;
  }
  bool start_object(size_t) override {
    if (!Open()) return false;
    if (depth() == events_depth_ + 1 && InEvents()) Reset();
    return true;
  }
  bool end_object() override {
    const bool is_event = InEvents() && depth() == events_depth_ + 1;
    keys_.pop_back();
    if (!is_event) return true;
    if (!TakeEvent()) return false;
    ++trace_.num_events;
    return true;
  }
  bool start_array(size_t) override {
    if (!Open()) return false;
    const bool is_list =
        depth() == 1 || (depth() == 2 && keys_[0] == "traceEvents");
    if (events_depth_ == 0 && is_list) events_depth_ = depth();
    return true;
  }
  bool end_array() override {
    if (depth() == events_depth_) events_ended_ = true;
    keys_.pop_back();
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    position_ = position;
    message_ = error.what();
    return false;
  }

  absl::StatusOr<ChromeTrace> Finish(bool parsed) {
    if (!status_.ok()) return status_;
    if (!source_->status().ok()) return source_->status();
    const bool early = source_->at_end() && events_depth_ > 0;
    if (!parsed && !early) {
      // "[json.exception.parse_error.101] parse error at line 1, ...: why"
      const size_t why = message_.rfind(": ");
      return absl::InvalidArgumentError(absl::StrCat(
          source_->label(), ": byte ", position_, ": is not JSON: ",
          why == std::string::npos ? message_ : message_.substr(why + 2)));
    }
    if (events_depth_ == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(source_->label(),
                       ": has no events, expected an array of events, or an "
                       "object with \"traceEvents\""));
    }
    // Chrome's array may lack its end; Perfetto accepts that.
    trace_.cut_off = !parsed || source_->cut_off();
    for (const auto& [thread, open] : open_) {
      trace_.num_unpaired += static_cast<int64_t>(open.size());
    }
    return std::move(trace_);
  }

 private:
  int depth() const { return static_cast<int>(keys_.size()); }
  bool InEvents() const { return events_depth_ > 0 && !events_ended_; }

  bool Fail(absl::string_view what) {
    status_ = absl::InvalidArgumentError(absl::StrCat(
        source_->label(), ": event ", trace_.num_events + 1, ": ", what));
    return false;
  }

  bool Open() {
    source_->EndItem();
    if (depth() == kMaxJsonDepth) {
      return Fail(absl::StrCat("nests deeper than ", kMaxJsonDepth,
                               " arrays and objects"));
    }
    keys_.emplace_back();
    return true;
  }

  bool Value(TraceValue value) {
    source_->EndItem();
    if (InEvents()) {
      if (depth() == events_depth_ + 1) return Field(std::move(value));
      if (depth() == events_depth_ + 2 && keys_[events_depth_] == "args") {
        event_.arguments.emplace_back(keys_.back(), std::move(value));
      }
    } else if (depth() <= 2 && depth() > 0 &&
               trace_.properties.size() < kMaxProperties) {
      std::string path = keys_[0];
      if (depth() == 2) absl::StrAppend(&path, ".", keys_[1]);
      trace_.properties[path] = std::move(value);
    }
    return true;
  }

  bool Field(TraceValue value) {
    const std::string& name = keys_.back();
    if (name == "name") {
      event_.name = TextOf(value);
    } else if (name == "cat") {
      event_.category = TextOf(value);
    } else if (name == "ph") {
      event_.phase = value.text.size() == 1 ? value.text[0] : 0;
    } else if (name == "pid") {
      event_.process = TextOf(value);
    } else if (name == "tid") {
      event_.thread = TextOf(value);
    } else if (name == "ts") {
      has_start_ = true;
      return Time(name, value, &event_.start_microseconds);
    } else if (name == "dur") {
      return Time(name, value, &event_.microseconds);
    }
    return true;
  }

  bool Time(absl::string_view name, const TraceValue& value, double* time) {
    const bool valid = value.is_number && std::isfinite(value.number) &&
                       std::abs(value.number) <= kMaxMicroseconds;
    if (!valid) {
      return Fail(absl::StrFormat(
          "%s is %s, expected microseconds from %g to %g", name,
          ValueText(value), -kMaxMicroseconds, kMaxMicroseconds));
    }
    *time = value.number;
    return true;
  }

  void Reset() {
    event_ = ChromeEvent();
    has_start_ = false;
  }

  bool Take(const ChromeEvent& event) {
    status_ = take_(event);
    return status_.ok();
  }

  bool TakeEvent() {
    source_->EndItem();
    if (!has_start_ && absl::StrContains("XBE", event_.phase)) {
      return Fail("has no ts, expected microseconds");
    }
    switch (event_.phase) {
      case 'X':
        if (event_.microseconds < 0) {
          return Fail(
              absl::StrFormat("dur is %g, expected microseconds of at least 0",
                              event_.microseconds));
        }
        return Take(event_);
      case 'M':
        return Take(event_);
      case 'B':
        if (num_open_ == kMaxOpenEvents) return Fail("too many open events");
        ++num_open_;
        open_[{event_.process, event_.thread}].push_back(std::move(event_));
        return true;
      case 'E':
        return Close();
      default:
        return true;
    }
  }

  bool Close() {
    const auto found = open_.find({event_.process, event_.thread});
    if (found == open_.end() || found->second.empty()) {
      ++trace_.num_unpaired;
      return true;
    }
    ChromeEvent begun = std::move(found->second.back());
    found->second.pop_back();
    --num_open_;
    begun.phase = 'X';
    begun.microseconds = event_.start_microseconds - begun.start_microseconds;
    for (auto& argument : event_.arguments) {
      begun.arguments.push_back(std::move(argument));
    }
    if (begun.microseconds < 0) {
      return Fail("\"E\" is earlier than its \"B\"");
    }
    return Take(begun);
  }

  TraceSource* source_;
  const std::function<absl::Status(const ChromeEvent&)>& take_;
  std::vector<std::string> keys_;  // of the open objects and arrays
  int events_depth_ = 0;           // of the array of events; 0: not yet open
  bool events_ended_ = false;
  ChromeEvent event_;
  bool has_start_ = false;
  std::map<std::pair<std::string, std::string>, std::vector<ChromeEvent>> open_;
  size_t num_open_ = 0;
  ChromeTrace trace_;
  size_t position_ = 0;
  std::string message_;
  absl::Status status_;
};

}  // namespace

const TraceValue* ChromeEvent::Argument(absl::string_view key) const {
  for (const auto& [name, value] : arguments) {
    if (name == key) return &value;
  }
  return nullptr;
}

int64_t ChromeEvent::Integer(absl::string_view key, int64_t otherwise) const {
  const TraceValue* value = Argument(key);
  const bool valid = value != nullptr && value->is_number &&
                     std::abs(value->number) < 9e15 &&
                     value->number == std::floor(value->number);
  return valid ? static_cast<int64_t>(value->number) : otherwise;
}

absl::StatusOr<ChromeTrace> ReadChromeTrace(
    TraceSource* source,
    const std::function<absl::Status(const ChromeEvent&)>& take) {
  std::istream stream(source);
  Handler handler(source, take);
  const bool parsed = json::sax_parse(stream, &handler);
  return handler.Finish(parsed);
}

}  // namespace weir::results
