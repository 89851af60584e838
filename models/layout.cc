// SPDX-License-Identifier: Apache-2.0
#include "models/layout.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/problems.h"
#include "base/status_macros.h"

namespace weir::models {
namespace {

constexpr absl::string_view kLetters = "EtmL";
constexpr size_t kMaxExpanded = 1'000'000;  // letters and stages
constexpr int kMaxDepth = 16;

// Expands groups and counts: "Et*2|(t|)*2L" becomes "Ett|t|t|L".
class Expander {
 public:
  Expander(absl::string_view label, absl::string_view text)
      : label_(label), text_(text) {}

  absl::StatusOr<std::string> Run() {
    std::string all;
    RETURN_IF_ERROR(Sequence(0, &all));
    if (at_ < text_.size()) return Error("')' without a matching '('");
    return all;
  }

 private:
  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(label_, ":", at_ + 1, ": ", what));
  }

  absl::Status Sequence(int depth, std::string* out) {
    while (at_ < text_.size() && text_[at_] != ')') {
      const char c = text_[at_];
      if (c == ',' || absl::ascii_isspace(c)) {
        ++at_;
        continue;
      }
      std::string item(1, c);
      if (c == '(') {
        if (depth == kMaxDepth) return Error("is nested too deeply");
        const size_t open = at_++;
        item.clear();
        RETURN_IF_ERROR(Sequence(depth + 1, &item));
        if (at_ == text_.size()) {
          at_ = open;
          return Error("'(' is not closed");
        }
      } else if (c != '|' && kLetters.find(c) == absl::string_view::npos) {
        return Error(absl::StrCat(
            "'", absl::CHexEscape(item),
            "' is unknown, expected E (embedding), t (block), m (MTP), L (head "
            "and loss), '|' between stages, or (...)*n"));
      }
      ++at_;
      RETURN_IF_ERROR(Repeat(item, out));
    }
    return absl::OkStatus();
  }

  absl::Status Repeat(const std::string& item, std::string* out) {
    int64_t count = 1;
    if (at_ < text_.size() && text_[at_] == '*') {
      ++at_;
      const size_t digits = at_;
      count = 0;
      while (at_ < text_.size() && absl::ascii_isdigit(text_[at_])) {
        count = std::min<int64_t>(count * 10 + (text_[at_++] - '0'),
                                  kMaxExpanded + 1);
      }
      if (at_ == digits) return Error("expected a count after '*'");
    }
    if (out->size() + count * item.size() > kMaxExpanded) {
      return Error(absl::StrCat("makes more than ", kMaxExpanded, " layers"));
    }
    for (int64_t i = 0; i < count; ++i) *out += item;
    return absl::OkStatus();
  }

  absl::string_view label_;
  absl::string_view text_;
  size_t at_ = 0;
};

char LetterOf(LayerRole role) {
  switch (role) {
    case LayerRole::kEmbedding:
      return 'E';
    case LayerRole::kHead:
      return 'L';
    case LayerRole::kMtp:
      return 'm';
    case LayerRole::kVocabulary:
    case LayerRole::kBlock:
    case LayerRole::kMeasured:
      return 't';
  }
  return '?';
}

}  // namespace

absl::StatusOr<StageLayout> ParseLayout(absl::string_view label,
                                        absl::string_view text) {
  ASSIGN_OR_RETURN(const std::string all, Expander(label, text).Run());
  StageLayout layout = absl::StrSplit(all, '|');
  return layout;
}

std::string LayoutText(const std::vector<int>& blocks, int mtp_modules,
                       bool mtp_apart) {
  const auto repeat = [](const char* letter, int n) {
    return n == 0   ? std::string()
           : n == 1 ? std::string(letter)
                    : absl::StrCat(letter, "*", n);
  };
  std::vector<std::string> stages;
  stages.reserve(blocks.size());
  for (const int n : blocks) stages.push_back(repeat("t", n));
  if (stages.empty()) stages.emplace_back();
  const size_t last = stages.size() - 1;
  stages[mtp_apart && last > 0 ? last - 1 : last] += repeat("m", mtp_modules);
  return absl::StrCat("E", absl::StrJoin(stages, "|"), "L");
}

int CountBlocks(const StageLayout& layout) {
  int blocks = 0;
  for (const std::string& stage : layout) {
    blocks += static_cast<int>(std::count(stage.begin(), stage.end(), 't'));
  }
  return blocks;
}

absl::StatusOr<Partition> PartitionByLayout(const LayerList& layers,
                                            const StageLayout& layout) {
  Problems problems("layout");
  Partition partition;
  size_t next = 0;
  const auto with_mtp =
      std::count_if(layout.begin(), layout.end(), [](const std::string& stage) {
        return stage.find('m') != std::string::npos;
      });
  if (with_mtp > 1) {
    problems.Add("", absl::StrCat("has MTP modules (m) in ", with_mtp,
                                  " stages, expected all in one, as in "
                                  "Megatron-LM"));
    return problems.ToStatus();
  }
  for (size_t stage = 0; stage < layout.size(); ++stage) {
    partition.first.push_back(static_cast<int>(next));
    for (const char letter : layout[stage]) {
      if (next < layers.size() && LetterOf(layers[next].role) == letter) {
        ++next;
        continue;
      }
      const std::string expected =
          next == layers.size()
              ? "no more layers"
              : absl::StrCat("'", std::string(1, LetterOf(layers[next].role)),
                             "', the model's layer ", next, " (",
                             layers[next].name, ")");
      problems.Add(absl::StrCat("stage ", stage),
                   absl::StrCat("has '", std::string(1, letter), "', expected ",
                                expected));
      return problems.ToStatus();
    }
  }
  if (next < layers.size()) {
    problems.Add("", absl::StrCat("holds ", next, " layers, expected the ",
                                  layers.size(), " of the model, next '",
                                  std::string(1, LetterOf(layers[next].role)),
                                  "' (", layers[next].name, ")"));
    return problems.ToStatus();
  }
  partition.first.push_back(static_cast<int>(next));
  return partition;
}

}  // namespace weir::models
