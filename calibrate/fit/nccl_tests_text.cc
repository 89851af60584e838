// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "calibrate/fit/nccl_tests_internal.h"

namespace weir::calibrate {
namespace {

using Words = std::vector<absl::string_view>;

Words WordsOf(absl::string_view line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
}

class TextReader {
 public:
  explicit TextReader(Problems* problems) : problems_(*problems) {}

  std::vector<NcclTestsRun> Read(absl::string_view text) {
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++line_;
      const Words words = WordsOf(line);
      if (words.empty()) continue;
      if (words[0][0] == '#') {
        ReadComment(line, words);
      } else if (!columns_.empty() && words[0][0] >= '0' &&
                 words[0][0] <= '9') {
        ReadRow(words);
      }  // otherwise a line of NCCL or of a launcher
    }
    Finish();
    if (runs_.empty() && problems_.empty()) {
      problems_.Add("",
                    "has no line \"# size count type ... time\", expected "
                    "the output of nccl-tests");
    }
    return std::move(runs_);
  }

 private:
  std::string Here() const { return absl::StrCat("line ", line_); }

  void ReadComment(absl::string_view line, const Words& words) {
    if (words.size() > 3 && words[1] == "size" && words[2] == "count") {
      columns_ = {words.begin() + 1, words.end()};
      header_line_ = line_;
      return;
    }
    const bool version = absl::StartsWith(line, "# nccl-tests version");
    const bool program = absl::StrContains(line, "Collective test starting:");
    const bool device = words.size() > 2 && words[1] == "Rank";
    if (!version && !program && !device) return;
    if (!columns_.empty()) Finish();  // the next run begins
    if (version) ReadVersion(words);
    if (program) program_ = std::string(words.back());
    if (device) ReadDevice(line, words);
  }

  void ReadVersion(const Words& words) {
    for (absl::string_view word : words) {
      int code;
      if (absl::ConsumePrefix(&word, "nccl-library=") &&
          absl::SimpleAtoi(word, &code)) {
        run_.nccl_version = NcclVersion(code);
      }
    }
  }

  // Reads a line such as
  // "#  Rank  0 Group  0 Pid 77 on  node1 device  0 [0000:19:00] NVIDIA GPU"
  void ReadDevice(absl::string_view line, const Words& words) {
    const auto on = std::find(words.begin(), words.end(), "on");
    const size_t name = line.find(']');
    if (words.end() - on < 2 || name == absl::string_view::npos) {
      problems_.Add(Here(),
                    "names no host and device, expected \"# Rank 0 ... on HOST "
                    "device 0 [BUS] NAME\"");
      return;
    }
    ++run_.num_ranks;
    hosts_.insert(std::string(on[1]));
    const std::string device(absl::StripAsciiWhitespace(line.substr(name + 1)));
    if (std::find(run_.devices.begin(), run_.devices.end(), device) ==
        run_.devices.end()) {
      run_.devices.push_back(device);
    }
  }

  int Column(absl::string_view name) const {
    const auto at = std::find(columns_.begin(), columns_.end(), name);
    return at == columns_.end() ? -1 : static_cast<int>(at - columns_.begin());
  }

  // The out-of-place columns end where `time` appears for the second time. If a
  // run has only one half, the words of the other are missing.
  void ReadRow(const Words& words) {
    const int time = Column("time");
    if (time < 0) {
      if (!std::exchange(no_time_, true)) {
        problems_.Add(absl::StrCat("line ", header_line_),
                      "has no column \"time\", expected one (option -C prints "
                      "the time of the CPU instead)");
      }
      return;
    }
    const auto again =
        std::find(columns_.begin() + time + 1, columns_.end(), "time");
    const size_t half = again - columns_.begin();
    // The timestamp is two words: a date and a time of day.
    const size_t all = columns_.size() + (Column("timestamp") < 0 ? 0 : 1);
    const size_t one = all - (columns_.end() - again);
    if (words.size() != all && words.size() != half && words.size() != one) {
      problems_.Add(
          Here(),
          absl::StrCat("has ", words.size(), " fields, expected ", half, " or ",
                       all, ": ", absl::StrJoin(columns_, " ")));
      return;
    }
    double bytes, us;
    if (!ReadNumber("size", words[0], &bytes) ||
        !ReadNumber("time", words[time], &us)) {
      return;
    }
    CheckRight(words);
    if (bytes == 0) return;
    if (!(us > 0)) {
      problems_.Add(absl::StrCat(Here(), ": time"),
                    absl::StrCat("is ", us, ", expected microseconds above 0"));
      return;
    }
    run_.rows.push_back({bytes, us * 1e-6});
  }

  bool ReadNumber(const char* column, absl::string_view word, double* value) {
    if (absl::SimpleAtod(word, value) && *value >= 0 && *value < 1e18) {
      return true;
    }
    problems_.Add(absl::StrCat(Here(), ": ", column),
                  absl::StrCat("is \"", word, "\", expected a number"));
    return false;
  }

  // Old releases print a largest `error` instead, which includes rounding.
  void CheckRight(const Words& words) {
    const int column = Column("#wrong");
    double wrong;
    if (column < 0 || !absl::SimpleAtod(words[column], &wrong) || wrong == 0) {
      return;
    }
    problems_.Add(
        absl::StrCat(Here(), ": #wrong"),
        absl::StrCat("is ", words[column],
                     ", expected 0 or N/A: the run reported wrong results"));
  }

  // Adds the run whose table has been read.
  void Finish() {
    if (columns_.empty()) return;
    const std::string header = absl::StrCat("line ", header_line_);
    const auto kind = KindOfProgram(program_);
    if (!kind.has_value()) {
      problems_.Add(
          header, absl::StrCat(
                      "follows a line \"# Collective test starting: ", program_,
                      "\" or none, expected one with ", kKnownPrograms));
    } else if (run_.num_ranks < 2) {
      problems_.Add(header,
                    absl::StrCat("follows ", run_.num_ranks,
                                 " lines \"# Rank\", expected 2 or more"));
    } else if (run_.rows.empty() && problems_.empty()) {
      problems_.Add(header, "has no rows below, expected measurements");
    } else {
      run_.kind = *kind;
      run_.num_nodes = static_cast<int>(hosts_.size());
      runs_.push_back(std::move(run_));
    }
    run_ = {};
    program_.clear();
    columns_.clear();
    hosts_.clear();
    no_time_ = false;
  }

  Problems& problems_;
  int line_ = 0, header_line_ = 0;
  std::string program_;
  Words columns_;  // points into the text
  std::set<std::string> hosts_;
  bool no_time_ = false;
  NcclTestsRun run_;
  std::vector<NcclTestsRun> runs_;
};

}  // namespace

std::vector<NcclTestsRun> ReadNcclTestsText(absl::string_view text,
                                            Problems* problems) {
  return TextReader(problems).Read(text);
}

}  // namespace weir::calibrate
