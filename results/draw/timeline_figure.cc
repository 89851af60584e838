// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/units.h"
#include "results/draw/figures.h"
#include "results/draw/pass_colors.h"
#include "results/draw/slack_scale.h"

namespace weir::results {
namespace {

using Lane = TimelineBox::Lane;

// A picture with more boxes is slow to display.
constexpr size_t kMaxBoxes = 20000;

// Points.
constexpr double kMaxRowsHeight = 600;
constexpr double kUsualRow = 12, kRowWithVersions = 17;
constexpr double kHostLane = 3.5;
constexpr double kHeading = 11;
constexpr double kVersionSizes[] = {5, 4.5};
constexpr double kMaxLabel = 90;
constexpr double kNumberSizes[] = {6.5, 6, 5.5, 5, 4.5};
constexpr double kHalfNumberSizes[] = {5.5, 5, 4.5};

std::string NumberText(const TimelineBox& box) {
  std::string number = absl::StrCat(box.microbatch);
  if (box.num_microbatches > 1) {
    absl::StrAppend(&number, "-", box.microbatch + box.num_microbatches - 1);
  }
  return number;
}

bool HasNumber(const TimelineBox& box) {
  return box.op < Timeline::Actions::OPTIMIZER_STEP;
}

std::string VersionText(const TimelineBox& box) {
  return absl::StrCat("v", box.weight_version);
}

bool IsHalf(const TimelineBox& box) { return box.lane != Lane::kFull; }

// Digits have the same width in all common fonts, so less room is enough than
// for other text. `letter`: the width of the letter before them, in size 1.
double NumberWidth(size_t num_characters, double letter, double size) {
  return 0.6 * size * static_cast<double>(num_characters) + letter * size + 0.6;
}

// Boxes of one kind have numbers of one size.
struct BoxKind {
  size_t run = 0;
  Timeline::Actions::Op op = Timeline::Actions::FORWARD;
  uint32_t num_microbatches = 1;
  bool half = false;

  auto operator<=>(const BoxKind&) const = default;
};

BoxKind KindOf(size_t run, const TimelineBox& box) {
  return {run, box.op, box.num_microbatches, IsHalf(box)};
}

// The numbers of one kind of box. The longest decides which boxes show theirs,
// so that boxes of the same width do not differ.
class BoxNumbers {
 public:
  // `letter`: before the number.
  void Add(double width, absl::string_view number,
           absl::string_view letter = "") {
    widths_.push_back(width);
    longest_ = std::max(longest_, number.size());
    letter_ = TextWidth(letter, 1);
  }

  // Chooses the first of the descending sizes that almost all boxes have room
  // for, none if few have room for the last.
  void ChooseSize(std::span<const double> sizes) {
    for (const double size : sizes) {
      size_ = size;
      if (PartWithRoom() >= 0.95) return;
    }
    // Numbers of some passes only would be confusing.
    if (PartWithRoom() < 0.6) size_ = 0;
  }

  // 0: no box shows a number.
  double size() const { return size_; }
  bool HasRoom(double width) const {
    return size_ > 0 && width >= NumberWidth(longest_, letter_, size_);
  }

 private:
  double PartWithRoom() const {
    const auto num_fit =
        std::count_if(widths_.begin(), widths_.end(),
                      [&](double width) { return HasRoom(width); });
    return static_cast<double>(num_fit) / static_cast<double>(widths_.size());
  }

  std::vector<double> widths_;
  size_t longest_ = 0;
  double letter_ = 0;
  double size_ = 0;
};

class TimelinePainter {
 public:
  TimelinePainter(std::span<const TimelineRows> runs,
                  const FigureOptions& options)
      : runs_(runs),
        options_(options),
        drawing_(options.width, Title(), Description()) {
    if (runs[0].has_slack) slack_.emplace(runs);
    double label = 0;
    size_t num_rows = 0;
    for (const TimelineRows& run : runs) {
      end_ = std::max(end_, run.end);
      num_rows += run.rows.size();
      for (const TimelineRow& row : run.rows) {
        label = std::max(label, TextWidth(row.label, kFontSize));
        for (const TimelineBox& box : row.boxes) {
          has_host_ |= box.lane == Lane::kHost;
        }
      }
    }
    left_ = kOuterMargin + std::min(label, kMaxLabel) + 4;
    scale_ = {0, end_, left_, options.width - kOuterMargin - 5};
    ChooseVersionSizes();
    ChooseRowHeight(static_cast<double>(num_rows));
    if (row_ >= 6) ChooseNumberSizes();
  }

  Drawing Draw() {
    double y = kOuterMargin;
    const double top = y;
    for (size_t run = 0; run < runs_.size(); ++run) {
      if (options_.show_title || runs_.size() > 1) {
        y = Heading(runs_[run], y);
      }
      for (const TimelineRow& row : runs_[run].rows) {
        Row(run, row, y);
        y += step_;
      }
      y += runs_.size() > 1 ? 4 : 0;
    }
    EmitBoxes();
    const AxisUnit unit =
        runs_[0].in_seconds ? SecondsUnit(end_) : AxisUnit{1, ""};
    const std::string label = runs_[0].in_seconds
                                  ? absl::StrCat("time (", unit.name, ")")
                                  : "time (forward passes of a stage)";
    DrawBottomAxis({scale_, label, unit, false}, {left_, top, scale_.end, y},
                   &drawing_);
    y += kBottomAxisHeight + 3;
    drawing_.set_height(Legend(y) + kOuterMargin);
    return std::move(drawing_);
  }

 private:
  std::string Title() const {
    std::string title;
    for (const TimelineRows& run : runs_) {
      absl::StrAppend(&title, title.empty() ? "" : "; ", run.title, ": ",
                      run.subtitle);
    }
    return title;
  }

  std::string Description() const {
    return absl::StrCat(
        "Timeline with a row per pipeline rank. A box is a pass, its number "
        "the microbatch",
        runs_[0].has_slack ? ", its color the slack." : ".");
  }

  bool HasVersion(const TimelineBox& box) const {
    return box.weight_version >= 0 && !IsHalf(box);
  }

  // Versions are shown if all kinds of passes that read one have room.
  void ChooseVersionSizes() {
    bool any = false;
    for (size_t run = 0; run < runs_.size(); ++run) {
      any |= runs_[run].has_versions;
      for (const TimelineRow& row : runs_[run].rows) {
        for (const TimelineBox& box : row.boxes) {
          if (!HasVersion(box)) continue;
          versions_of_[KindOf(run, box)].Add(WidthOf(box), VersionText(box));
        }
      }
    }
    shows_versions_ = any && !versions_of_.empty();
    for (auto& [kind, versions] : versions_of_) {
      versions.ChooseSize(kVersionSizes);
      shows_versions_ = shows_versions_ && versions.size() > 0;
    }
  }

  void ChooseRowHeight(double num_rows) {
    const double host = has_host_ ? kHostLane + 1 : 0;
    row_ = shows_versions_ ? kRowWithVersions : kUsualRow;
    row_ =
        std::clamp(kMaxRowsHeight / std::max(num_rows, 1.0) - host, 2.0, row_);
    shows_versions_ = shows_versions_ && row_ >= kRowWithVersions;
    step_ = row_ + host + std::min(2.0, row_ / 6);
  }

  void ChooseNumberSizes() {
    for (size_t run = 0; run < runs_.size(); ++run) {
      for (const TimelineRow& row : runs_[run].rows) {
        for (const TimelineBox& box : row.boxes) {
          if (!HasNumber(box)) continue;
          numbers_of_[KindOf(run, box)].Add(WidthOf(box), NumberText(box),
                                            LetterOf(box));
        }
      }
    }
    for (auto& [kind, numbers] : numbers_of_) {
      if (kind.half) {
        numbers.ChooseSize(kHalfNumberSizes);
      } else {
        numbers.ChooseSize(kNumberSizes);
      }
    }
  }

  // Colors do not tell kinds of passes apart if they show slack.
  const char* LetterOf(const TimelineBox& box) const {
    return slack_.has_value() ? ColorOf(box.op).letter : "";
  }

  std::string BoxColor(const TimelineRow& row, const TimelineBox& box) const {
    if (slack_.has_value()) return slack_->ColorOf(box.slack);
    // Later stages of a rank are lighter.
    const double lighter =
        box.lane == Lane::kHost ? 0 : 0.6 * row.StagePart(box.stage);
    return MixColors(ColorOf(box.op).color, kWhite, lighter);
  }

  double WidthOf(const TimelineBox& box) const {
    return scale_.At(box.end) - scale_.At(box.start);
  }

  // Returns the y below the heading, which has a second line if necessary.
  double Heading(const TimelineRows& run, double y) {
    const double room = scale_.end - left_;
    // Bold text is wider.
    const double title_room = room / 1.12;
    const std::string title = FitText(run.title, kFontSize, title_room);
    drawing_.Text(left_, y + 7, title, {.bold = true});
    double x = left_ + 1.12 * TextWidth(title, kFontSize) + 6;
    if (x + TextWidth(run.subtitle, kFontSize) > scale_.end) {
      x = left_;
      y += kLineStep;
    }
    drawing_.Text(x, y + 7, FitText(run.subtitle, kFontSize, scale_.end - x),
                  {.color = kDarkGray});
    return y + kHeading;
  }

  void Row(size_t run, const TimelineRow& row, double y) {
    if (row_ >= 5) {
      drawing_.Text(left_ - 4, y + row_ / 2 + 2.5,
                    FitText(row.label, kFontSize, kMaxLabel),
                    {.anchor = Anchor::kEnd});
    }
    backgrounds_.push_back({left_, y});
    for (const TimelineBox& box : row.boxes) {
      double top = y, height = row_;
      if (box.lane == Lane::kUpper || box.lane == Lane::kLower) height /= 2;
      if (box.lane == Lane::kLower) top += height;
      if (box.lane == Lane::kHost) {
        top = y + row_ + 0.5;
        height = kHostLane;
      }
      several_stages_ |= row.stages.size() > 1;
      overlaps_ |= box.lane == Lane::kLower;
      used_[box.op] = true;
      const double width = WidthOf(box);
      boxes_[{box.op, BoxColor(row, box), width > 2.5}].push_back(
          {scale_.At(box.start), top, width, height});
      Number(run, box, top, height);
    }
  }

  void Number(size_t run, const TimelineBox& box, double top, double height) {
    if (!HasNumber(box) || numbers_of_.empty()) return;
    const double middle = (scale_.At(box.start) + scale_.At(box.end)) / 2;
    const bool has_version = shows_versions_ && HasVersion(box);
    const BoxNumbers& numbers = numbers_of_[KindOf(run, box)];
    if (numbers.HasRoom(WidthOf(box))) {
      shows_numbers_ = true;
      const double base =
          has_version ? top + 7 : top + height / 2 + 0.36 * numbers.size();
      numbers_.push_back(
          {{middle, base},
           numbers.size(),
           absl::StrCat(LetterOf(box), NumberText(box)),
           slack_.has_value() ? slack_->TextColorOf(box.slack) : kBlack});
    }
    if (!has_version) return;
    const BoxNumbers& versions = versions_of_[KindOf(run, box)];
    if (versions.HasRoom(WidthOf(box))) {
      numbers_.push_back(
          {{middle, top + 14.5}, versions.size(), VersionText(box)});
    }
  }

  // Shapes of one color follow each other, so that the file is small.
  void EmitBoxes() {
    for (const Point& at : backgrounds_) {
      drawing_.Rectangle(at.x, at.y, scale_.end - left_, row_, {kLightGray});
    }
    for (const auto& [key, boxes] : boxes_) {
      const auto& [op, color, wide] = key;
      const Paint paint = {color, kWhite, wide ? 0.5 : 0.1};
      for (const Box& box : boxes) {
        drawing_.Rectangle(box.x, box.y, box.width, box.height, paint);
      }
    }
    std::stable_sort(
        numbers_.begin(), numbers_.end(), [](const auto& a, const auto& b) {
          return std::tuple(-a.size, a.color) < std::tuple(-b.size, b.color);
        });
    for (const BoxText& number : numbers_) {
      drawing_.Text(number.at.x, number.at.y, number.text,
                    {.size = number.size,
                     .anchor = Anchor::kMiddle,
                     .color = number.color});
    }
  }

  double PassLegend(double y) {
    std::vector<LegendEntry> entries;
    for (const PassColor& pass : kPassColors) {
      if (used_.contains(pass.op)) {
        entries.push_back({pass.name, {pass.color}});
      }
    }
    entries.push_back({"idle", {kLightGray}});
    return DrawLegend(entries, left_, y, scale_.end, &drawing_);
  }

  double SlackLegend(double y) {
    y = slack_->DrawLegend(left_, y, scale_.end, &drawing_);
    if (!shows_numbers_) return y;
    std::vector<LegendEntry> letters;
    for (const PassColor& pass : kPassColors) {
      if (used_.contains(pass.op)) {
        letters.push_back({pass.name, {}, LegendEntry::Mark::kText});
      }
    }
    return DrawLegend(letters, left_, y, scale_.end, &drawing_);
  }

  double Legend(double y) {
    y = slack_.has_value() ? SlackLegend(y) : PassLegend(y);
    std::string notes;
    const auto note = [&](bool shown, absl::string_view text) {
      if (shown) absl::StrAppend(&notes, notes.empty() ? "" : "; ", text);
    };
    note(shows_numbers_, "number: microbatch");
    note(shows_versions_, "v: weight version");
    note(overlaps_, "two halves: overlapped passes");
    note(several_stages_ && !slack_.has_value(),
         "lighter: later stage of the rank");
    for (const TimelineRows& run : runs_) note(!run.note.empty(), run.note);
    return notes.empty() ? y
                         : DrawParagraph(notes, left_, y, scale_.end,
                                         {.color = kDarkGray}, &drawing_);
  }

  struct Box {
    double x, y, width, height;
  };
  struct BoxText {
    Point at;
    double size;
    std::string text;
    std::string color = kBlack;
  };

  const std::span<const TimelineRows> runs_;
  const FigureOptions options_;
  Drawing drawing_;
  std::optional<SlackScale> slack_;
  Scale scale_;
  double end_ = 0, left_ = 0;
  double row_ = 0, step_ = 0;  // height of a row, distance of rows
  std::map<BoxKind, BoxNumbers> numbers_of_, versions_of_;
  bool shows_numbers_ = false, shows_versions_ = false, has_host_ = false;
  bool several_stages_ = false, overlaps_ = false;
  std::map<Timeline::Actions::Op, bool> used_;
  std::vector<Point> backgrounds_;
  std::map<std::tuple<Timeline::Actions::Op, std::string, bool>,
           std::vector<Box>>
      boxes_;
  std::vector<BoxText> numbers_;
};

}  // namespace

absl::StatusOr<Drawing> TimelineFigure(std::span<const TimelineRows> runs,
                                       const FigureOptions& options) {
  if (runs.empty()) {
    return absl::InvalidArgumentError("timeline: there is no run to draw");
  }
  size_t num_boxes = 0;
  for (const TimelineRows& run : runs) {
    num_boxes += run.num_boxes();
    if (run.in_seconds != runs[0].in_seconds) {
      return absl::InvalidArgumentError(
          absl::StrCat(run.title, ": has another unit of time than ",
                       runs[0].title, ", expected the same"));
    }
  }
  if (num_boxes > kMaxBoxes) {
    return absl::InvalidArgumentError(absl::StrCat(
        runs[0].title, ": has ", num_boxes, " passes, expected at most ",
        kMaxBoxes, " in a picture; .pftrace has no limit"));
  }
  return TimelinePainter(runs, options).Draw();
}

}  // namespace weir::results
