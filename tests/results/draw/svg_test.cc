// SPDX-License-Identifier: Apache-2.0
// Checks that figures are well-formed XML which shows hostile names as text.
#include <expat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "results/draw/figures.h"
#include "tests/hostile_names.h"
#include "tests/results/sample.h"

namespace weir::results::svg_test {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSubsetOf;

// The texts and elements of a document.
struct Document {
  std::vector<std::string> texts;
  std::set<std::string> elements, attributes;
  std::string title;
  std::string* open = nullptr;
};

// Fails the test if the document is not well-formed.
Document Parse(const std::string& svg) {
  Document document;
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate(nullptr), &XML_ParserFree);
  XML_SetUserData(parser.get(), &document);
  XML_SetElementHandler(
      parser.get(),
      [](void* data, const XML_Char* name, const XML_Char** attributes) {
        auto* document = static_cast<Document*>(data);
        document->elements.insert(name);
        for (; *attributes != nullptr; attributes += 2) {
          document->attributes.insert(*attributes);
        }
        document->open = nullptr;
        if (std::string(name) == "title") document->open = &document->title;
        if (std::string(name) != "text") return;
        document->open = &document->texts.emplace_back();
      },
      [](void* data, const XML_Char*) {
        static_cast<Document*>(data)->open = nullptr;
      });
  XML_SetCharacterDataHandler(parser.get(),
                              [](void* data, const XML_Char* text, int length) {
                                auto* document = static_cast<Document*>(data);
                                if (document->open != nullptr) {
                                  document->open->append(text, length);
                                }
                              });
  EXPECT_EQ(XML_Parse(parser.get(), svg.data(), static_cast<int>(svg.size()),
                      XML_TRUE),
            XML_STATUS_OK)
      << XML_ErrorString(XML_GetErrorCode(parser.get()));
  return document;
}

void ExpectPlain(const Document& document) {
  EXPECT_THAT(document.elements, IsSubsetOf({"svg", "title", "desc", "path",
                                             "g", "text", "circle"}));
  EXPECT_THAT(document.attributes, IsSubsetOf({"xmlns",
                                               "role",
                                               "width",
                                               "height",
                                               "viewBox",
                                               "font-family",
                                               "font-size",
                                               "font-weight",
                                               "fill",
                                               "stroke",
                                               "stroke-width",
                                               "stroke-dasharray",
                                               "text-anchor",
                                               "transform",
                                               "x",
                                               "y",
                                               "d",
                                               "cx",
                                               "cy",
                                               "r"}));
}

// Returns figures of every kind, with the name wherever a figure has one.
std::vector<Drawing> FiguresNamed(const std::string& name) {
  std::vector<Drawing> drawings;
  Result result = PipelineTimeline(2, 2);
  result.set_schedule(name);
  result.set_name(name);
  const std::string names[] = {name, name};
  const auto rows = RowsOfResult(result, names);
  const auto add = [&](const absl::StatusOr<Drawing>& drawing) {
    ASSERT_TRUE(drawing.ok()) << drawing.status();
    drawings.push_back(*drawing);
  };
  EXPECT_TRUE(rows.ok()) << rows.status();
  add(TimelineFigure({&*rows, 1}, {}));
  std::vector<std::vector<TimelineBox>> passes(1);
  passes[0].push_back({.end = 1, .slack = 0.5});
  auto with_slack = RowsOfPasses(name, std::move(passes), 2);
  EXPECT_TRUE(with_slack.ok()) << with_slack.status();
  with_slack->has_slack = true;
  with_slack->note = name;
  add(TimelineFigure({&*with_slack, 1}, {}));
  add(MemoryFigure(result, {}, {}));
  const Result two[] = {result, result};
  add(IdleFigure(two, {}, {}));
  add(ParetoFigure({name, name, {1, name}, {{name, 1, 2}, {name, 2, 1}}}, {}));
  add(HeatmapFigure(
      {name, name, name, {name}, {name}, {{1.0}}, [&](double) { return name; }},
      {}));
  add(RooflineFigure({name, {{name, 1e12}}, 1e9, {{name, 1e9, 1e6, 1, 1}}},
                     {}));
  const CurvesPanel panel = {name, name, {{name, {{0, 1}, {1, 2}}}}};
  add(CurvesFigure(name, {&panel, 1}, {}));
  return drawings;
}

TEST(SvgTest, NamesAreText) {
  std::vector<HostileName> names = HostileNames();
  names.push_back({"end of script", "</script><script>evil()</script>"});
  names.push_back({"very long", std::string(10000, 'y')});
  for (const HostileName& name : names) {
    if (!name.is_utf8) continue;
    SCOPED_TRACE(name.kind);
    const std::string shown = WithoutControls(name.text);
    for (const Drawing& drawing : FiguresNamed(name.text)) {
      const Document document = Parse(SvgOf(drawing));
      ExpectPlain(document);
      if (shown.empty()) continue;
      // The name, or its beginning where it is too long for the figure.
      const std::string begin = shown.substr(0, shown.find_first_of(' ', 1));
      EXPECT_THAT(document.texts, Contains(HasSubstr(begin.substr(0, 2))));
    }
  }
}

TEST(SvgTest, TheTitleIsWhole) {
  const std::string name = "a \"quoted\" <name> & \U0001f680";
  const Document document = Parse(SvgOf(FiguresNamed(name)[0]));
  EXPECT_THAT(document.title, HasSubstr(name));
}

TEST(SvgTest, ShapesOfOnePaintAreOneElement) {
  Drawing drawing(100, "title", "description");
  drawing.set_height(50);
  drawing.Rectangle(1, 2, 3.456, 4, {"#112233"});
  drawing.Rectangle(10, 2, 3, 4, {"#112233"});
  drawing.Rectangle(20, 2, 3, 4, {"#445566"});
  const std::string svg = SvgOf(drawing);
  EXPECT_THAT(svg, HasSubstr("<path fill=\"#112233\" d=\"M1 2h3.46v4h-3.46z\n"
                             "M10 2h3v4h-3z\"/>\n<path fill=\"#445566\""));
  EXPECT_THAT(svg, HasSubstr("width=\"35.28mm\" height=\"17.64mm\""));
}

}  // namespace weir::results::svg_test
