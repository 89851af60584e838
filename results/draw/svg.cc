// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/xml.h"
#include "results/draw/drawing.h"

namespace weir::results {
namespace {

constexpr double kMillimetersPerPoint = 25.4 / 72;

// Returns at most two digits after the point, which is less than the width of
// any line.
std::string Number(double value) {
  std::string text = absl::StrFormat("%.2f", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string PaintAttributes(const Paint& paint) {
  std::string text =
      absl::StrCat(" fill=\"", paint.fill.empty() ? "none" : paint.fill, "\"");
  if (paint.stroke.empty()) return text;
  absl::StrAppend(&text, " stroke=\"", paint.stroke, "\" stroke-width=\"",
                  Number(paint.line_width), "\"");
  if (!paint.dashes.empty()) {
    absl::StrAppend(&text, " stroke-dasharray=\"", paint.dashes, "\"");
  }
  return text;
}

std::string StyleAttributes(const TextStyle& style) {
  std::string text = absl::StrCat(" font-size=\"", Number(style.size), "\"");
  if (style.anchor != Anchor::kStart) {
    absl::StrAppend(&text, " text-anchor=\"",
                    style.anchor == Anchor::kMiddle ? "middle" : "end", "\"");
  }
  if (style.color != TextStyle().color) {
    absl::StrAppend(&text, " fill=\"", style.color, "\"");
  }
  if (style.bold) absl::StrAppend(&text, " font-weight=\"bold\"");
  return text;
}

std::string PathOf(const Shape& shape) {
  const std::vector<Point>& at = shape.points;
  if (shape.kind == Shape::Kind::kRectangle) {
    return absl::StrCat("M", Number(at[0].x), " ", Number(at[0].y), "h",
                        Number(at[1].x), "v", Number(at[1].y), "h",
                        Number(-at[1].x), "z");
  }
  std::string path;
  for (const Point& point : at) {
    absl::StrAppend(&path, path.empty() ? "M" : "L", Number(point.x), " ",
                    Number(point.y));
  }
  return shape.kind == Shape::Kind::kPolygon ? path + "z" : path;
}

std::string TextElement(const Shape& shape) {
  const std::string x = Number(shape.points[0].x);
  const std::string y = Number(shape.points[0].y);
  return absl::StrCat(
      "<text x=\"", x, "\" y=\"", y, "\"",
      shape.style.vertical
          ? absl::StrCat(" transform=\"rotate(-90 ", x, " ", y, ")\"")
          : "",
      ">", EscapeXml(shape.text), "</text>\n");
}

// Shapes of a run are written as one element.
bool ContinuesRun(const Shape& first, const Shape& next) {
  const bool is_text = first.kind == Shape::Kind::kText;
  if (is_text != (next.kind == Shape::Kind::kText)) return false;
  if (is_text) return first.style == next.style;
  // Polygons and lines may overlap each other, which a common path would show.
  return first.kind == Shape::Kind::kRectangle && next.kind == first.kind &&
         first.paint == next.paint;
}

void AppendRun(const Shape* begin, const Shape* end, std::string* svg) {
  if (begin->kind == Shape::Kind::kText) {
    absl::StrAppend(svg, "<g", StyleAttributes(begin->style), ">\n");
    for (const Shape* shape = begin; shape != end; ++shape) {
      absl::StrAppend(svg, TextElement(*shape));
    }
    absl::StrAppend(svg, "</g>\n");
    return;
  }
  if (begin->kind == Shape::Kind::kCircle) {
    absl::StrAppend(svg, "<circle", PaintAttributes(begin->paint), " cx=\"",
                    Number(begin->points[0].x), "\" cy=\"",
                    Number(begin->points[0].y), "\" r=\"",
                    Number(begin->points[1].x), "\"/>\n");
    return;
  }
  absl::StrAppend(svg, "<path", PaintAttributes(begin->paint), " d=\"");
  for (const Shape* shape = begin; shape != end; ++shape) {
    absl::StrAppend(svg, shape == begin ? "" : "\n", PathOf(*shape));
  }
  absl::StrAppend(svg, "\"/>\n");
}

}  // namespace

std::string SvgOf(const Drawing& drawing) {
  const std::string width = Number(drawing.width());
  const std::string height = Number(drawing.height());
  std::string svg = absl::StrCat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"",
      Number(drawing.width() * kMillimetersPerPoint), "mm\" height=\"",
      Number(drawing.height() * kMillimetersPerPoint), "mm\" viewBox=\"0 0 ",
      width, " ", height,
      "\" font-family=\"Helvetica, Arial, sans-serif\">\n<title>",
      EscapeXml(drawing.title()), "</title>\n<desc>",
      EscapeXml(drawing.description()),
      "</desc>\n<path fill=\"#ffffff\" d=\"M0 0h", width, "v", height, "h-",
      width, "z\"/>\n");
  const std::vector<Shape>& shapes = drawing.shapes();
  for (size_t begin = 0; begin < shapes.size();) {
    size_t end = begin + 1;
    while (end < shapes.size() && ContinuesRun(shapes[begin], shapes[end])) {
      ++end;
    }
    AppendRun(&shapes[begin], shapes.data() + end, &svg);
    begin = end;
  }
  absl::StrAppend(&svg, "</svg>\n");
  return svg;
}

}  // namespace weir::results
