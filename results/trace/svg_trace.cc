// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "base/xml.h"
#include "results/pipeline_events.h"
#include "results/summary.h"
#include "results/trace/trace.h"

namespace weir::results {
namespace {

using Op = Timeline::Actions;

// Pixels.
constexpr double kPlotWidth = 1000;
constexpr double kRowHeight = 24;
constexpr double kRowStep = 28;
constexpr double kTop = 40;
constexpr double kMargin = 10;
constexpr double kDigit = 6.2;  // width of a digit

// A file with more passes is slow to display.
constexpr size_t kMaxPasses = 20000;

struct Kind {
  Op::Op op;
  const char* name;
  const char* color;  // of Okabe and Ito, for all kinds of color vision
};
constexpr Kind kKinds[] = {
    {Op::FORWARD, "F forward", "#56B4E9"},
    {Op::BACKWARD, "B backward", "#E69F00"},
    {Op::BACKWARD_INPUT, "I backward, input", "#F0E442"},
    {Op::BACKWARD_WEIGHT, "W backward, weights", "#3DBB97"},
    {Op::OPTIMIZER_STEP, "optimizer step", "#999999"},
};

const Kind& KindOf(Op::Op op) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds),
                       [&](const Kind& kind) { return kind.op == op; });
}

// Returns the largest of 1, 2 and 5 times a power of ten with which the axis
// has ten ticks or fewer.
double TickSeconds(double makespan_seconds) {
  const double least = makespan_seconds / 10;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) return factor * power;
  }
  return 10 * power;
}

class Drawing {
 public:
  Drawing(const Result& result, const PipelineEvents& events,
          const std::vector<std::string>& labels)
      : result_(result), events_(events), labels_(labels) {
    size_t longest = 0;
    for (const std::string& label : labels) {
      longest = std::max(longest, label.size());
    }
    left_ = 2 * kMargin + 7 * static_cast<double>(longest);
    bottom_ = kTop + kRowStep * events.num_ranks();
  }

  std::string Draw() {
    const double width = left_ + kPlotWidth + 2 * kMargin;
    const double height = bottom_ + 56;
    absl::StrAppendFormat(
        &svg_,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
        "viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n",
        width, height, width, height);
    const std::string title =
        absl::StrCat(RowName(result_), ": ", events_.num_ranks(), " ranks, ",
                     result_.num_microbatches(), " microbatches, step time ",
                     FormatSeconds(result_.batch_seconds()));
    absl::StrAppend(&svg_, "<title>", EscapeXml(title), "</title>\n");
    Rectangle(0, 0, width, height, "#FFFFFF");
    Text(left_, 20, "start", EscapeXml(title));
    for (int rank = 0; rank < events_.num_ranks(); ++rank) Row(rank);
    Axis();
    Legend();
    absl::StrAppend(&svg_, "</svg>\n");
    return std::move(svg_);
  }

 private:
  double X(double seconds) const {
    return left_ + kPlotWidth * seconds / events_.makespan_seconds;
  }

  void Rectangle(double x, double y, double width, double height,
                 absl::string_view fill) {
    absl::StrAppendFormat(&svg_,
                          "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
                          "height=\"%.2f\" fill=\"%s\"/>\n",
                          x, y, width, height, fill);
  }

  void Text(double x, double y, absl::string_view anchor,
            absl::string_view text) {
    absl::StrAppendFormat(
        &svg_, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\">%s</text>\n", x,
        y, anchor, text);
  }

  void Row(int rank) {
    const double y = kTop + kRowStep * rank;
    Text(left_ - kMargin, y + 17, "end", EscapeXml(labels_[rank]));
    Rectangle(left_, y, kPlotWidth, kRowHeight, "#EEEEEE");
    // Later stages of a rank are lighter.
    std::map<int32_t, int> stages;
    for (const TimelineAction& action : events_.ranks[rank]) {
      if (action.computes()) stages.emplace(action.stage, 0);
    }
    int index = 0;
    for (auto& [stage, order] : stages) order = index++;
    several_stages_ |= stages.size() > 1;
    std::vector<TimelineAction> passes;
    for (const TimelineAction& action : events_.ranks[rank]) {
      if (action.computes()) passes.push_back(action);
    }
    const auto pair = [&](size_t a, size_t b) {
      return b < passes.size() &&
             passes[a].start_seconds == passes[b].start_seconds &&
             passes[a].end_seconds == passes[b].end_seconds;
    };
    for (size_t i = 0; i < passes.size(); ++i) {
      const double opacity =
          1 - 0.55 * stages.at(passes[i].stage) /
                  std::max<double>(1, static_cast<double>(stages.size()) - 1);
      const bool first = pair(i, i + 1);
      const bool second = i > 0 && pair(i, i - 1);
      const double height = first || second ? kRowHeight / 2 : kRowHeight;
      Pass(passes[i], second ? y + height : y, height, opacity);
    }
  }

  void Pass(const TimelineAction& pass, double y, double height,
            double opacity) {
    const double x = X(pass.start_seconds);
    const double width = X(pass.end_seconds) - x;
    used_[pass.op] = true;
    absl::StrAppendFormat(
        &svg_,
        "<g><title>%s, %s to %s</title><rect x=\"%.2f\" y=\"%.2f\" "
        "width=\"%.2f\" height=\"%.2f\" fill=\"%s\" fill-opacity=\"%.2f\" "
        "stroke=\"#FFFFFF\" stroke-width=\"%s\"/>",
        ActionText(pass), FormatSeconds(pass.start_seconds),
        FormatSeconds(pass.end_seconds), x, y, width, height,
        KindOf(pass.op).color, opacity, width > 4 ? "1" : "0.2");
    std::string number = absl::StrCat(pass.microbatch);
    if (pass.num_microbatches > 1) {
      absl::StrAppend(&number, "-",
                      pass.microbatch + pass.num_microbatches - 1);
    }
    const bool is_step = pass.op == Op::OPTIMIZER_STEP;
    if (!is_step && width >= kDigit * static_cast<double>(number.size()) + 2) {
      absl::StrAppendFormat(&svg_,
                            "<text x=\"%.2f\" y=\"%.2f\" "
                            "text-anchor=\"middle\" font-size=\"11\">%s</text>",
                            x + width / 2, y + height / 2 + 4, number);
    }
    absl::StrAppend(&svg_, "</g>\n");
  }

  void Axis() {
    const double step = TickSeconds(events_.makespan_seconds);
    for (int i = 0;
         i <= 10 && i * step <= events_.makespan_seconds * (1 + 1e-9); ++i) {
      const double x = X(i * step);
      Rectangle(x, bottom_, 1, 5, "#444444");
      Text(x, bottom_ + 18, "middle", FormatSeconds(i * step));
    }
  }

  void Legend() {
    const double y = bottom_ + 44;
    double x = left_;
    const auto add = [&](absl::string_view name, absl::string_view color) {
      Rectangle(x, y - 11, 14, 14, color);
      Text(x + 19, y, "start", name);
      x += 36 + 6.5 * static_cast<double>(name.size());
    };
    for (const Kind& kind : kKinds) {
      if (used_.contains(kind.op)) add(kind.name, kind.color);
    }
    add("idle", "#EEEEEE");
    Text(x, y, "start",
         several_stages_ ? "number: microbatch; lighter: later stage"
                         : "number: microbatch");
  }

  const Result& result_;
  const PipelineEvents& events_;
  const std::vector<std::string>& labels_;
  double left_ = 0, bottom_ = 0;
  std::string svg_;
  std::map<Op::Op, bool> used_;
  bool several_stages_ = false;
};

}  // namespace

absl::StatusOr<std::string> SvgTrace(const Result& result,
                                     absl::Span<const std::string> names) {
  ASSIGN_OR_RETURN(const PipelineEvents events,
                   PipelineEventsOf(result.schedule(), result));
  size_t num_passes = 0;
  for (const auto& actions : events.ranks) num_passes += actions.size();
  if (num_passes > kMaxPasses) {
    return absl::InvalidArgumentError(absl::StrCat(
        result.schedule(), ": has ", num_passes, " passes, expected at most ",
        kMaxPasses, " in an SVG file; .pftrace has no limit"));
  }
  if (!(events.makespan_seconds > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(result.schedule(), ": takes no time"));
  }
  std::vector<std::string> labels;
  for (int rank = 0; rank < events.num_ranks(); ++rank) {
    labels.push_back(names.empty() ? absl::StrCat("rank ", rank)
                                   : names[events.gpus[rank]]);
  }
  return Drawing(result, events, labels).Draw();
}

}  // namespace weir::results
