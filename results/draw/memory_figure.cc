// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "results/draw/figures.h"
#include "results/result_enums.h"
#include "results/summary.h"
#include "results/validate.h"

namespace weir::results {
namespace {

constexpr int kNumClasses = MemoryClass::Kind_ARRAYSIZE;
constexpr size_t kUsualPanels = 8;
constexpr size_t kMaxPanels = 32;

// Points.
constexpr double kPanelHeight = 70, kPanelGap = 12, kPanelTitle = 11;
constexpr double kSampleWidth = 0.5;  // narrower steps are not visible

// [kind], from the bottom of the picture to the top.
constexpr const char* kClassColors[kNumClasses] = {
    kBlue,       // weights
    "#66AAD1",   // weight stash
    kGreen,      // gradients
    "#66C5AB",   // optimizer state
    kOrange,     // activations
    kYellow,     // end activations
    kVermilion,  // recompute scratch
    "#E69E66",   // pass scratch
    kPurple,     // weight gradient stash
    "#7F7F7F",   // communication buffers
    "#BFBFBF",   // reserved
    kSkyBlue,    // gathered weights
    "#99C7E0",   // predicted weights
    kDarkGray,   // estimate buffers
};

// Memory of one GPU from a time on.
struct MemorySample {
  double seconds = 0;
  std::array<double, kNumClasses> bytes{};

  double total() const {
    double sum = 0;
    for (const double each : bytes) sum += each;
    return sum;
  }
};

struct MemoryPanel {
  const RankResult* rank = nullptr;
  std::vector<MemorySample> samples;  // by time
};

// Returns the panels of the ranks of replica 0, tensor rank 0, by rank.
// `by_class`: the result has memory by class; else all is in class 0.
std::vector<MemoryPanel> PanelsOf(const Result& result, bool by_class) {
  std::vector<MemoryPanel> of_gpu(static_cast<size_t>(result.ranks_size()));
  const auto add = [&](const auto& columns, int i, int kind) {
    MemoryPanel& panel = of_gpu[columns.gpu(i)];
    MemorySample sample;
    if (!panel.samples.empty()) sample = panel.samples.back();
    sample.seconds = columns.seconds(i);
    sample.bytes[kind] = columns.bytes(i);
    // Changes at one time are one sample.
    if (!panel.samples.empty() &&
        panel.samples.back().seconds == sample.seconds) {
      panel.samples.pop_back();
    }
    panel.samples.push_back(sample);
  };
  if (by_class) {
    const auto& columns = result.timeline().class_memory();
    for (int i = 0; i < columns.gpu_size(); ++i) {
      add(columns, i, columns.kind(i));
    }
  } else {
    const auto& columns = result.timeline().memory();
    for (int i = 0; i < columns.gpu_size(); ++i) add(columns, i, 0);
  }
  std::vector<MemoryPanel> panels;
  for (int gpu = 0; gpu < result.ranks_size(); ++gpu) {
    const RankResult& rank = result.ranks(gpu);
    if (rank.replica() != 0 || rank.tensor_rank() != 0) continue;
    if (of_gpu[gpu].samples.empty()) continue;
    panels.push_back(std::move(of_gpu[gpu]));
    panels.back().rank = &rank;
  }
  std::stable_sort(panels.begin(), panels.end(),
                   [](const auto& a, const auto& b) {
                     return a.rank->rank() < b.rank->rank();
                   });
  return panels;
}

// Returns `count` indices of panels at even distances; the one nearest to the
// highest peak is replaced by it.
std::vector<size_t> EvenPanels(const std::vector<MemoryPanel>& panels,
                               size_t count) {
  std::vector<size_t> chosen;
  for (size_t i = 0; i < count; ++i) {
    chosen.push_back(i * (panels.size() - 1) / (count - 1));
  }
  size_t worst = 0;
  for (size_t i = 0; i < panels.size(); ++i) {
    if (panels[i].rank->peak_memory_bytes() >
        panels[worst].rank->peak_memory_bytes()) {
      worst = i;
    }
  }
  const auto distance = [&](size_t index) {
    return index > worst ? index - worst : worst - index;
  };
  *std::min_element(chosen.begin(), chosen.end(), [&](size_t a, size_t b) {
    return distance(a) < distance(b);
  }) = worst;
  return chosen;
}

absl::StatusOr<std::vector<MemoryPanel>> ChoosePanels(
    const std::string& label, std::vector<MemoryPanel> panels,
    std::span<const uint32_t> ranks) {
  std::vector<MemoryPanel> chosen;
  if (ranks.empty()) {
    if (panels.size() <= kUsualPanels) return panels;
    for (const size_t index : EvenPanels(panels, kUsualPanels)) {
      chosen.push_back(panels[index]);
    }
    return chosen;
  }
  if (ranks.size() > kMaxPanels) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": --ranks has ", ranks.size(),
                     " ranks, expected at most ", kMaxPanels));
  }
  for (const uint32_t rank : ranks) {
    const auto at = std::find_if(
        panels.begin(), panels.end(),
        [&](const MemoryPanel& panel) { return panel.rank->rank() == rank; });
    if (at == panels.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(label, ": --ranks has ", rank, ", expected ranks below ",
                       panels.size()));
    }
    chosen.push_back(*at);
  }
  return chosen;
}

// Returns at most two samples within kSampleWidth: the one with the largest
// total, and the last one, whose level continues.
std::vector<MemorySample> VisibleSamples(const MemoryPanel& panel,
                                         const Scale& x) {
  std::vector<MemorySample> visible;
  double bin = -1;
  const MemorySample* last = nullptr;
  const auto end_bin = [&] {
    if (last != nullptr && last->bytes != visible.back().bytes) {
      visible.push_back(*last);
    }
  };
  for (const MemorySample& sample : panel.samples) {
    const double here = std::floor(x.At(sample.seconds) / kSampleWidth);
    if (here != bin) {
      end_bin();
      visible.push_back(sample);
      bin = here;
    } else if (sample.total() > visible.back().total()) {
      visible.back().bytes = sample.bytes;
    }
    last = &sample;
  }
  end_bin();
  return visible;
}

class MemoryPainter {
 public:
  MemoryPainter(const Result& result, std::vector<MemoryPanel> panels,
                size_t num_ranks, bool by_class, const FigureOptions& options)
      : result_(result),
        panels_(std::move(panels)),
        by_class_(by_class),
        options_(options),
        drawing_(options.width, TitleOf(result, panels_.size(), num_ranks),
                 "Memory in use over time, a plot per pipeline rank.") {
    for (const MemoryPanel& panel : panels_) {
      for (const MemorySample& sample : panel.samples) {
        most_ = std::max(most_, sample.total());
        end_ = std::max(end_, sample.seconds);
      }
      most_ = std::max(most_, panel.rank->peak_memory_bytes());
    }
    end_ = std::max({end_, result.makespan_seconds(), 1e-12});
    most_ = std::max(most_, 1.0);
    shows_capacity_ = result.has_memory_capacity_bytes() &&
                      result.memory_capacity_bytes() < 1.5 * most_;
    if (shows_capacity_) {
      most_ = std::max(most_, result.memory_capacity_bytes());
    }
    most_ *= 1.05;
    unit_ = BytesUnit(most_);
  }

  Drawing Draw() {
    double top = kOuterMargin;
    if (options_.show_title) {
      top = DrawParagraph(drawing_.title(), kOuterMargin, top,
                          options_.width - kOuterMargin, {.bold = true},
                          &drawing_) +
            2;
    }
    const size_t max_columns = options_.width >= 400 ? 4 : 2;
    const size_t num_columns = std::min(max_columns, panels_.size());
    const Scale y = {0, most_, 0, -kPanelHeight};
    const double left_axis = LeftAxisWidth(
        {y, absl::StrCat("memory (", unit_.name, ")"), unit_}, kPanelHeight);
    const double width = (options_.width - 2 * kOuterMargin - left_axis - 4 -
                          kPanelGap * static_cast<double>(num_columns - 1)) /
                         static_cast<double>(num_columns);
    double bottom = top;
    for (size_t i = 0; i < panels_.size(); ++i) {
      const auto column = static_cast<double>(i % num_columns);
      const bool is_last = i + num_columns >= panels_.size();
      if (i > 0 && i % num_columns == 0) top = bottom + 6;
      Frame frame;
      frame.left = kOuterMargin + left_axis + column * (width + kPanelGap);
      frame.right = frame.left + width;
      frame.top = top + kPanelTitle;
      frame.bottom = frame.top + kPanelHeight;
      Panel(panels_[i], frame, column == 0, is_last);
      bottom = std::max(
          bottom, frame.bottom + kBottomAxisHeight - (is_last ? 0.0 : 10.0));
    }
    drawing_.set_height(Legend(bottom + 3) + kOuterMargin);
    return std::move(drawing_);
  }

 private:
  static std::string TitleOf(const Result& result, size_t num_shown,
                             size_t num_ranks) {
    return absl::StrCat(
        RowName(result), ": memory, peak ",
        FormatBytes(result.peak_memory_bytes()),
        num_shown < num_ranks
            ? absl::StrCat(" (", num_shown, " of ", num_ranks, " ranks)")
            : "");
  }

  void Panel(const MemoryPanel& panel, const Frame& frame, bool is_first,
             bool has_label) {
    const Scale x = {0, end_, frame.left, frame.right};
    const Scale y = {0, most_, frame.bottom, frame.top};
    drawing_.Text(
        frame.left, frame.top - 3,
        FitText(absl::StrCat("rank ", panel.rank->rank(), ", peak ",
                             FormatBytes(panel.rank->peak_memory_bytes())),
                kFontSize, frame.right - frame.left),
        {});
    Areas(panel, x, y, frame);
    const AxisUnit seconds = SecondsUnit(end_);
    DrawBottomAxis(
        {x, has_label ? absl::StrCat("time (", seconds.name, ")") : "", seconds,
         false},
        frame, &drawing_);
    const std::string label =
        is_first ? absl::StrCat("memory (", unit_.name, ")") : "";
    if (is_first) DrawLeftAxis({y, label, unit_, false}, frame, &drawing_);
    if (shows_capacity_) {
      const double at = y.At(result_.memory_capacity_bytes());
      drawing_.Line({{frame.left, at}, {frame.right, at}}, CapacityPaint());
    }
    drawing_.Circle(x.At(panel.rank->peak_memory_at_seconds()),
                    y.At(panel.rank->peak_memory_bytes()), 1.6,
                    {"", kBlack, 0.8});
  }

  void Areas(const MemoryPanel& panel, const Scale& x, const Scale& y,
             const Frame& frame) {
    const std::vector<MemorySample> samples = VisibleSamples(panel, x);
    std::vector<double> below(samples.size(), 0);
    for (int kind = 0; kind < kNumClasses; ++kind) {
      std::vector<Point> upper, lower;
      bool any = false;
      for (size_t i = 0; i < samples.size(); ++i) {
        any |= samples[i].bytes[kind] > 0;
        const double from = x.At(samples[i].seconds);
        const double to =
            i + 1 < samples.size() ? x.At(samples[i + 1].seconds) : frame.right;
        const double above = below[i] + samples[i].bytes[kind];
        // A level that continues needs no further point.
        AddStep(from, to, y.At(above), &upper);
        AddStep(from, to, y.At(below[i]), &lower);
        below[i] = above;
      }
      if (!any) continue;
      used_[kind] = true;
      upper.insert(upper.end(), lower.rbegin(), lower.rend());
      drawing_.Polygon(std::move(upper), {kClassColors[kind]});
    }
  }

  static void AddStep(double from, double to, double y,
                      std::vector<Point>* line) {
    if (line->size() >= 2 && line->back().y == y) {
      line->back().x = to;
      return;
    }
    line->push_back({from, y});
    line->push_back({to, y});
  }

  static Paint CapacityPaint() { return {"", kBlack, 0.8, "3 2"}; }

  double Legend(double y) {
    std::vector<LegendEntry> entries;
    for (const auto& [kind, used] : used_) {
      const std::string name =
          by_class_
              ? absl::StrReplaceAll(
                    NameOf(static_cast<MemoryClass::Kind>(kind)), {{"_", " "}})
              : "memory in use";
      entries.push_back({name, {kClassColors[kind]}});
    }
    entries.push_back({"peak", {"", kBlack, 0.8}, LegendEntry::Mark::kDot});
    if (result_.has_memory_capacity_bytes()) {
      const std::string capacity = absl::StrCat(
          "capacity ", FormatBytes(result_.memory_capacity_bytes()));
      if (shows_capacity_) {
        entries.push_back(
            {capacity, CapacityPaint(), LegendEntry::Mark::kLine});
      } else {
        entries.push_back(
            {absl::StrCat("(", capacity, ")"), {}, LegendEntry::Mark::kText});
      }
    }
    return DrawLegend(entries, kOuterMargin + 4, y,
                      options_.width - kOuterMargin, &drawing_);
  }

  const Result& result_;
  const std::vector<MemoryPanel> panels_;
  const bool by_class_;
  const FigureOptions options_;
  Drawing drawing_;
  double end_ = 0, most_ = 0;
  AxisUnit unit_;
  bool shows_capacity_ = false;
  std::map<int, bool> used_;
};

}  // namespace

absl::StatusOr<Drawing> MemoryFigure(const Result& result,
                                     std::span<const uint32_t> ranks,
                                     const FigureOptions& options) {
  const std::string& label = result.schedule();
  RETURN_IF_ERROR(ValidateTimeline(label, result));
  const bool by_class = result.timeline().class_memory().gpu_size() > 0;
  std::vector<MemoryPanel> all = PanelsOf(result, by_class);
  if (all.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(label,
                     ": has no memory over time, expected a result "
                     "with a timeline"));
  }
  const size_t num_ranks = all.size();
  ASSIGN_OR_RETURN(std::vector<MemoryPanel> panels,
                   ChoosePanels(label, std::move(all), ranks));
  return MemoryPainter(result, std::move(panels), num_ranks, by_class, options)
      .Draw();
}

}  // namespace weir::results
