// SPDX-License-Identifier: Apache-2.0
#include "base/xml.h"

#include <expat.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "tests/hostile_names.h"

namespace weir::xml_test {

struct Document {
  std::string text, attribute;
  int num_elements = 0;
};

// Parses with expat. Fails the test if the document is not well-formed.
Document Parse(const std::string& xml) {
  Document document;
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
      XML_ParserCreate("UTF-8"), &XML_ParserFree);
  XML_SetUserData(parser.get(), &document);
  XML_SetStartElementHandler(
      parser.get(), [](void* data, const XML_Char*, const XML_Char** values) {
        auto* document = static_cast<Document*>(data);
        ++document->num_elements;
        if (values[0] != nullptr) document->attribute = values[1];
      });
  XML_SetCharacterDataHandler(
      parser.get(), [](void* data, const XML_Char* text, int length) {
        static_cast<Document*>(data)->text.append(text, length);
      });
  EXPECT_EQ(XML_Parse(parser.get(), xml.data(), static_cast<int>(xml.size()),
                      XML_TRUE),
            XML_STATUS_OK)
      << XML_ErrorString(XML_GetErrorCode(parser.get())) << ": " << xml;
  return document;
}

TEST(XmlTest, HostileNamesAreTextAndNothingElse) {
  for (const HostileName& name : HostileNames()) {
    const std::string safe = EscapeXml(name.text);
    const Document document =
        Parse(absl::StrCat("<text a=\"", safe, "\">", safe, "</text>"));
    EXPECT_EQ(document.num_elements, 1) << name.kind;
    EXPECT_EQ(document.text, WithoutControls(name.text)) << name.kind;
    EXPECT_EQ(document.attribute, WithoutControls(name.text)) << name.kind;
    EXPECT_EQ(Parse(absl::StrCat("<t a='", safe, "'/>")).attribute,
              WithoutControls(name.text))
        << name.kind;
  }
}

TEST(XmlTest, MarkupIsEscapedOnce) {
  EXPECT_EQ(EscapeXml("<a href=\"x\">&amp;'"),
            "&lt;a href=&quot;x&quot;&gt;&amp;amp;&#39;");
  EXPECT_EQ(EscapeXml("\xEF\xBF\xBF\x01"), "??");
}

}  // namespace weir::xml_test
