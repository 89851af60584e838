// SPDX-License-Identifier: Apache-2.0
#include "results/draw/terminal_timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "base/units.h"
#include "results/draw/pass_colors.h"

namespace weir::results {
namespace {

using PassOp = Timeline::Actions::Op;

constexpr int kLeastColumns = 20;
constexpr int kTickColumns = 16;  // at least, from one tick to the next

// Shades of passes without color, in the order of their enum.
constexpr const char* kShades[] = {"\u2591", "\u2593", "\u2592", "\u2588",
                                   "\u2590", "\u25b2", "\u25bc"};
constexpr char kOverlapShade[] = "\u259a", kOverlapLetter[] = "X";
constexpr char kUpperHalf[] = "\u2580";
constexpr char kReset[] = "\033[0m";

// What a column shows.
struct Cell {
  static constexpr int kIdle = -1;
  int box = kIdle;    // index into the row's boxes
  int lower = kIdle;  // of an overlapped pair, `box` is the upper one
  double seconds = 0;
  double busy_seconds = 0;
  char text = 0;  // a digit of the microbatch
};

std::vector<Cell> CellsOf(const TimelineRow& row, bool host, double end,
                          int num_columns) {
  std::vector<Cell> cells(num_columns);
  const double step = end / num_columns;
  for (size_t i = 0; i < row.boxes.size(); ++i) {
    const TimelineBox& box = row.boxes[i];
    const bool is_host = box.lane == TimelineBox::Lane::kHost;
    if (is_host != host || box.lane == TimelineBox::Lane::kLower) continue;
    const int first =
        std::clamp(static_cast<int>(box.start / step), 0, num_columns - 1);
    const int last = std::clamp(static_cast<int>(std::ceil(box.end / step)),
                                first + 1, num_columns);
    for (int column = first; column < last; ++column) {
      Cell& cell = cells[column];
      const double seconds = std::min(box.end, (column + 1) * step) -
                             std::max(box.start, column * step);
      cell.busy_seconds += seconds;
      if (seconds <= cell.seconds) continue;
      cell.seconds = seconds;
      cell.box = static_cast<int>(i);
      const bool pair = box.lane == TimelineBox::Lane::kUpper;
      cell.lower = pair ? static_cast<int>(i) + 1 : Cell::kIdle;
    }
  }
  for (Cell& cell : cells) {
    if (cell.busy_seconds < 0.5 * step) cell.box = cell.lower = Cell::kIdle;
  }
  return cells;
}

// Writes the number of each box into its first columns. `spare`: columns that
// must remain.
void AddNumbers(const TimelineRow& row, int spare, std::vector<Cell>* cells) {
  for (size_t begin = 0; begin < cells->size();) {
    const int box = (*cells)[begin].box;
    size_t end = begin + 1;
    while (end < cells->size() && (*cells)[end].box == box) ++end;
    if (box != Cell::kIdle &&
        row.boxes[box].op != Timeline::Actions::OPTIMIZER_STEP) {
      const std::string number = absl::StrCat(row.boxes[box].microbatch);
      if (number.size() + spare <= end - begin) {
        for (size_t i = 0; i < number.size(); ++i) {
          (*cells)[begin + i].text = number[i];
        }
      }
    }
    begin = end;
  }
}

class TerminalPrinter {
 public:
  TerminalPrinter(const TimelineRows& rows, const TerminalStyle& style)
      : rows_(rows), style_(style) {
    for (const TimelineRow& row : rows.rows) {
      label_ = std::max(label_, static_cast<int>(Ascii(row.label).size()));
      for (const TimelineBox& box : row.boxes) {
        has_host_ |= box.lane == TimelineBox::Lane::kHost;
      }
    }
    label_ = std::min(std::max(label_, has_host_ ? 6 : 0), 30);
    num_columns_ = std::max(style.width - label_ - 3, kLeastColumns);
  }

  std::string Print() {
    for (const TimelineRow& row : rows_.rows) {
      Row(row, row.label, /*host=*/false);
      if (has_host_) Row(row, "copies", /*host=*/true);
    }
    Axis();
    Legend();
    return std::move(text_);
  }

 private:
  const char* Edge() const { return style_.unicode ? "\u2502" : "|"; }
  const char* Idle() const { return style_.unicode ? "\u00b7" : "."; }

  void Row(const TimelineRow& row, absl::string_view label, bool host) {
    absl::StrAppendFormat(&text_, "%-*s %s", label_,
                          Shortened(label, static_cast<size_t>(label_)),
                          Edge());
    std::vector<Cell> cells = CellsOf(row, host, rows_.end, num_columns_);
    // A shade or letter must remain that shows the kind of pass.
    AddNumbers(row, style_.color ? 0 : 1, &cells);
    std::string open;
    for (const Cell& cell : cells) {
      std::string codes;
      const std::string glyph = Glyph(row, cell, &codes);
      if (codes != open) {
        if (!open.empty()) absl::StrAppend(&text_, kReset);
        absl::StrAppend(&text_, codes);
        open = codes;
      }
      absl::StrAppend(&text_, glyph);
    }
    if (!open.empty()) absl::StrAppend(&text_, kReset);
    absl::StrAppend(&text_, Edge(), "\n");
  }

  // Returns the text of a column, and the control sequence before it.
  std::string Glyph(const TimelineRow& row, const Cell& cell,
                    std::string* codes) {
    if (cell.box == Cell::kIdle) return Idle();
    const PassOp op = row.boxes[cell.box].op;
    used_[op] = true;
    const bool pair = cell.lower != Cell::kIdle;
    const PassOp lower = pair ? row.boxes[cell.lower].op : op;
    if (pair) used_[lower] = overlaps_ = true;
    std::string digit(cell.text == 0 ? 0 : 1, cell.text);
    has_numbers_ |= !digit.empty();
    if (style_.color) {
      // Black on the pass's color; the halves of a pair have one each.
      const bool halves = pair && cell.text == 0 && style_.unicode;
      *codes = absl::StrFormat("\033[38;5;%d;48;5;%dm",
                               halves ? ColorOf(op).terminal_color : 16,
                               ColorOf(lower).terminal_color);
      return halves ? kUpperHalf : digit.empty() ? " " : digit;
    }
    if (!digit.empty()) return digit;
    if (pair) return style_.unicode ? kOverlapShade : kOverlapLetter;
    return style_.unicode ? kShades[op] : ColorOf(op).letter;
  }

  std::string TimeText(double time) const {
    return rows_.in_seconds ? FormatSeconds(time)
                            : absl::StrFormat("%.4g", time);
  }

  // A line of times, each at its column.
  void Axis() {
    std::string line(static_cast<size_t>(label_ + 2), ' ');
    const int num_ticks = std::max(1, num_columns_ / kTickColumns);
    for (int tick = 0; tick <= num_ticks; ++tick) {
      const int column = num_columns_ * tick / num_ticks;
      const std::string text = TimeText(rows_.end * tick / num_ticks);
      const bool is_last = tick == num_ticks;
      const size_t at = static_cast<size_t>(label_ + 2 + column) -
                        (is_last ? text.size() : 0);
      if (line.size() > at) continue;
      line.resize(at, ' ');
      absl::StrAppend(&line, text);
    }
    absl::StrAppend(&text_, line, "\n");
  }

  void Legend() {
    std::vector<std::pair<std::string, std::string>> entries;
    for (const PassColor& pass : kPassColors) {
      if (!used_.contains(pass.op)) continue;
      std::string mark = style_.unicode ? kShades[pass.op] : pass.letter;
      if (style_.color) {
        mark = absl::StrFormat("\033[48;5;%dm \033[0m", pass.terminal_color);
      }
      entries.emplace_back(mark, pass.name);
    }
    if (overlaps_ && !style_.color) {
      entries.emplace_back(style_.unicode ? kOverlapShade : kOverlapLetter,
                           "overlapped passes");
    }
    entries.emplace_back(Idle(), "idle");
    if (has_numbers_) entries.emplace_back("0", "microbatch");
    int used = 0;
    for (const auto& [mark, name] : entries) {
      const int width = 2 + static_cast<int>(name.size());
      if (used > 0 && used + 3 + width > style_.width) {
        absl::StrAppend(&text_, "\n");
        used = 0;
      }
      absl::StrAppend(&text_, used > 0 ? "   " : "", mark, " ", name);
      used += (used > 0 ? 3 : 0) + width;
    }
    absl::StrAppend(&text_, "\n");
  }

  const TimelineRows& rows_;
  const TerminalStyle style_;
  int label_ = 0, num_columns_ = 0;
  bool has_host_ = false, overlaps_ = false, has_numbers_ = false;
  std::map<PassOp, bool> used_;
  std::string text_;
};

}  // namespace

std::string TerminalTimeline(const TimelineRows& rows,
                             const TerminalStyle& style) {
  return TerminalPrinter(rows, style).Print();
}

}  // namespace weir::results
