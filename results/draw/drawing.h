// SPDX-License-Identifier: Apache-2.0
// A picture as a list of shapes. Figures add shapes; a back end writes them.
// Lengths are points (1/72 inch), x grows to the right and y downwards. All
// texts are unescaped.
#ifndef WEIR_RESULTS_DRAW_DRAWING_H_
#define WEIR_RESULTS_DRAW_DRAWING_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir::results {

struct Point {
  double x = 0, y = 0;
};

// How a shape is filled and outlined. Colors are "#rrggbb"; empty: none.
struct Paint {
  std::string fill;
  std::string stroke = {};
  double line_width = 0.5;
  std::string dashes = {};  // "3 2": lengths of dashes and gaps; empty: solid

  bool operator==(const Paint&) const = default;
};

enum class Anchor { kStart, kMiddle, kEnd };

struct TextStyle {
  double size = 7;
  Anchor anchor = Anchor::kStart;
  std::string color = "#000000";
  bool bold = false;
  bool vertical = false;  // rotated by 90 degrees, from bottom to top

  bool operator==(const TextStyle&) const = default;
};

struct Shape {
  enum class Kind { kRectangle, kLine, kPolygon, kCircle, kText };
  Kind kind = Kind::kRectangle;
  Paint paint;      // of all but texts
  TextStyle style;  // of texts
  // Rectangle: the upper left corner, and (width, height). Circle: the center,
  // and (radius, 0). Text: the anchor on the base line. Others: all points.
  std::vector<Point> points;
  std::string text;
};

class Drawing {
 public:
  // `title` and `description` are for readers that do not see the picture.
  Drawing(double width, std::string title, std::string description);

  void Rectangle(double x, double y, double width, double height,
                 const Paint& paint);
  void Line(std::vector<Point> points, const Paint& paint);
  void Polygon(std::vector<Point> points, const Paint& paint);
  void Circle(double x, double y, double radius, const Paint& paint);
  void Text(double x, double y, absl::string_view text,
            const TextStyle& style = {});

  void set_height(double height) { height_ = height; }
  double width() const { return width_; }
  double height() const { return height_; }
  const std::string& title() const { return title_; }
  const std::string& description() const { return description_; }
  const std::vector<Shape>& shapes() const { return shapes_; }

 private:
  double width_;
  double height_ = 0;
  std::string title_, description_;
  std::vector<Shape> shapes_;
};

// Returns an upper estimate of the width of a text in common sans-serif fonts,
// since the width in the reader's font is not known.
double TextWidth(absl::string_view text, double size);

// Returns the text without control characters, shortened to `width` points
// with "..." at its end; empty if nothing fits.
std::string FitText(absl::string_view text, double size, double width);

// Returns the SVG document of a drawing. Equal drawings have equal bytes. Its
// size is in millimeters; fonts are Helvetica, Arial or any sans-serif font.
std::string SvgOf(const Drawing& drawing);

}  // namespace weir::results

#endif  // WEIR_RESULTS_DRAW_DRAWING_H_
