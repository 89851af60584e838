// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/units.h"
#include "results/draw/figures.h"
#include "results/draw/pass_colors.h"

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
constexpr double kVersionSize = 5;
constexpr double kMaxLabel = 90;
constexpr double kNumberSizes[] = {6.5, 6, 5.5, 5, 4.5};

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

// Digits have the same width in all common fonts, so less room is enough than
// for other text.
double NumberWidth(absl::string_view number, double size) {
  return 0.6 * size * static_cast<double>(number.size()) + 0.6;
}

class TimelinePainter {
 public:
  TimelinePainter(std::span<const TimelineRows> runs,
                  const FigureOptions& options)
      : runs_(runs),
        options_(options),
        drawing_(options.width, Title(), Description()) {
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
    shows_versions_ = HasRoomForVersions();
    ChooseRowHeight(static_cast<double>(num_rows));
    ChooseNumberSize();
  }

  Drawing Draw() {
    double y = kOuterMargin;
    const double top = y;
    for (const TimelineRows& run : runs_) {
      if (options_.show_title || runs_.size() > 1) {
        y = Heading(run, y);
      }
      for (const TimelineRow& row : run.rows) {
        Row(row, y);
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
    return "Timeline with a row per pipeline rank. A box is a pass, its number "
           "the microbatch.";
  }

  // Returns true if most forwards are wide enough for a version.
  bool HasRoomForVersions() const {
    size_t num_fit = 0, num_boxes = 0;
    bool any = false;
    for (const TimelineRows& run : runs_) {
      any |= run.has_versions;
      for (const TimelineRow& row : run.rows) {
        for (const TimelineBox& box : row.boxes) {
          if (box.weight_version < 0) continue;
          ++num_boxes;
          num_fit += WidthOf(box) >= NumberWidth("v0", kVersionSize);
        }
      }
    }
    return any && num_fit >= 0.8 * static_cast<double>(num_boxes);
  }

  void ChooseRowHeight(double num_rows) {
    const double host = has_host_ ? kHostLane + 1 : 0;
    row_ = shows_versions_ ? kRowWithVersions : kUsualRow;
    row_ =
        std::clamp(kMaxRowsHeight / std::max(num_rows, 1.0) - host, 2.0, row_);
    shows_versions_ = shows_versions_ && row_ >= kRowWithVersions;
    step_ = row_ + host + std::min(2.0, row_ / 6);
  }

  void ChooseNumberSize() {
    if (row_ < 6) return;
    double num_fitting = 0, num_numbers = 0;
    for (const double size : kNumberSizes) {
      size_t num_fit = 0, num_boxes = 0;
      for (const TimelineRows& run : runs_) {
        for (const TimelineRow& row : run.rows) {
          for (const TimelineBox& box : row.boxes) {
            if (!HasNumber(box)) continue;
            ++num_boxes;
            num_fit += WidthOf(box) >= NumberWidth(NumberText(box), size);
          }
        }
      }
      number_size_ = size;
      num_fitting = static_cast<double>(num_fit);
      num_numbers = static_cast<double>(num_boxes);
      if (num_fitting >= 0.95 * num_numbers) return;
    }
    // Numbers of some passes only would be confusing.
    if (num_fitting < 0.6 * num_numbers) number_size_ = 0;
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

  void Row(const TimelineRow& row, double y) {
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
      // Later stages of a rank are lighter.
      const std::string color = MixColors(
          ColorOf(box.op).color, kWhite,
          box.lane == Lane::kHost ? 0 : 0.6 * row.StagePart(box.stage));
      several_stages_ |= row.stages.size() > 1;
      overlaps_ |= box.lane == Lane::kLower;
      used_[box.op] = true;
      const double width = WidthOf(box);
      boxes_[{box.op, color, width > 2.5}].push_back(
          {scale_.At(box.start), top, width, height});
      Number(box, top, height);
    }
  }

  void Number(const TimelineBox& box, double top, double height) {
    if (!HasNumber(box) || number_size_ == 0) return;
    const double middle = (scale_.At(box.start) + scale_.At(box.end)) / 2;
    const std::string number = NumberText(box);
    const bool half = box.lane != Lane::kFull;
    const double size = half ? std::min(number_size_, 5.5) : number_size_;
    const bool has_version =
        shows_versions_ && box.weight_version >= 0 && !half;
    if (WidthOf(box) >= NumberWidth(number, size)) {
      const double base =
          has_version ? top + 7 : top + height / 2 + 0.36 * size;
      numbers_.push_back({{middle, base}, size, number});
    }
    const std::string version = absl::StrCat("v", box.weight_version);
    if (has_version && WidthOf(box) >= NumberWidth(version, kVersionSize)) {
      numbers_.push_back({{middle, top + 14.5}, kVersionSize, version});
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
        numbers_.begin(), numbers_.end(),
        [](const auto& a, const auto& b) { return a.size > b.size; });
    for (const BoxText& number : numbers_) {
      drawing_.Text(number.at.x, number.at.y, number.text,
                    {.size = number.size, .anchor = Anchor::kMiddle});
    }
  }

  double Legend(double y) {
    std::vector<LegendEntry> entries;
    for (const PassColor& pass : kPassColors) {
      if (used_.contains(pass.op)) {
        entries.push_back({pass.name, {pass.color}});
      }
    }
    entries.push_back({"idle", {kLightGray}});
    std::string notes;
    const auto note = [&](bool shown, absl::string_view text) {
      if (shown) absl::StrAppend(&notes, notes.empty() ? "" : "; ", text);
    };
    note(!numbers_.empty(), "number: microbatch");
    note(shows_versions_, "v: weight version");
    note(overlaps_, "two halves: overlapped passes");
    note(several_stages_, "lighter: later stage of the rank");
    y = DrawLegend(entries, left_, y, scale_.end, &drawing_);
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
  };

  const std::span<const TimelineRows> runs_;
  const FigureOptions options_;
  Drawing drawing_;
  Scale scale_;
  double end_ = 0, left_ = 0;
  double row_ = 0, step_ = 0;  // height of a row, distance of rows
  double number_size_ = 0;     // 0: no numbers
  bool shows_versions_ = false, has_host_ = false;
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
