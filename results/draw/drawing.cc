// SPDX-License-Identifier: Apache-2.0
#include "results/draw/drawing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "base/utf8.h"

namespace weir::results {
namespace {

// Widths of the characters from ' ' to '~' in DejaVu Sans, in thousandths of
// the font size. It is wider than Helvetica, Arial and Liberation Sans.
constexpr int kWidths[] = {
    318, 401, 460, 838, 636,  950, 780, 275, 390, 390, 500, 838, 318, 361,
    318, 337, 636, 636, 636,  636, 636, 636, 636, 636, 636, 636, 337, 337,
    838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295,
    295, 656, 557, 863, 748,  787, 603, 787, 695, 635, 611, 732, 684, 989,
    685, 611, 685, 390, 337,  390, 838, 500, 500, 613, 635, 550, 635, 615,
    352, 635, 634, 278, 278,  579, 278, 974, 634, 612, 635, 635, 411, 521,
    392, 634, 592, 818, 592,  592, 525, 636, 337, 636, 838};

// Returns the width of a character relative to the font size.
double CharacterWidth(absl::string_view character) {
  const auto index = static_cast<size_t>(character[0] - ' ');
  if (character.size() == 1 && index < std::size(kWidths)) {
    return kWidths[index] / 1000.0;
  }
  return 1.05;  // also wide ones: CJK, emoji
}

}  // namespace

Drawing::Drawing(double width, std::string title, std::string description)
    : width_(width),
      title_(std::move(title)),
      description_(std::move(description)) {}

void Drawing::Rectangle(double x, double y, double width, double height,
                        const Paint& paint) {
  shapes_.push_back(
      {Shape::Kind::kRectangle, paint, {}, {{x, y}, {width, height}}, ""});
}

void Drawing::Line(std::vector<Point> points, const Paint& paint) {
  shapes_.push_back({Shape::Kind::kLine, paint, {}, std::move(points), ""});
}

void Drawing::Polygon(std::vector<Point> points, const Paint& paint) {
  shapes_.push_back({Shape::Kind::kPolygon, paint, {}, std::move(points), ""});
}

void Drawing::Circle(double x, double y, double radius, const Paint& paint) {
  shapes_.push_back(
      {Shape::Kind::kCircle, paint, {}, {{x, y}, {radius, 0}}, ""});
}

void Drawing::Text(double x, double y, absl::string_view text,
                   const TextStyle& style) {
  shapes_.push_back(
      {Shape::Kind::kText, Paint(), style, {{x, y}}, std::string(text)});
}

double TextWidth(absl::string_view text, double size) {
  double width = 0;
  while (!text.empty()) {
    const size_t length = std::max<size_t>(Utf8CharacterLength(text), 1);
    width += CharacterWidth(text.substr(0, length));
    text.remove_prefix(length);
  }
  return width * size;
}

std::string FitText(absl::string_view text, double size, double width) {
  std::string safe = WithoutControls(text);
  if (TextWidth(safe, size) <= width) return safe;
  constexpr absl::string_view kDots = "...";
  const double room = width - TextWidth(kDots, size);
  size_t end = 0;
  double used = 0;
  while (end < safe.size()) {
    const absl::string_view rest = absl::string_view(safe).substr(end);
    const size_t length = std::max<size_t>(Utf8CharacterLength(rest), 1);
    used += CharacterWidth(rest.substr(0, length)) * size;
    if (used > room) break;
    end += length;
  }
  return end == 0 ? "" : absl::StrCat(safe.substr(0, end), kDots);
}

}  // namespace weir::results
