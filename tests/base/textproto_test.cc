// SPDX-License-Identifier: Apache-2.0
#include "base/textproto.h"

#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/type.pb.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace weir::textproto_test {

using google::protobuf::Value;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> ErrorsOf(absl::string_view text) {
  Value value;
  return absl::StrSplit(ParseTextProto("f", text, &value).message(), '\n');
}

TEST(TextProtoTest, AllUnknownFieldsAreToldAtOnce) {
  EXPECT_THAT(
      ErrorsOf("colour: 3\n\n"
               "list_value { values { shape { round: true } } }\nsize < >\n"),
      ElementsAre(
          AllOf(StartsWith("f:1:"), HasSubstr("colour is unknown, expected")),
          AllOf(StartsWith("f:3:"), HasSubstr("shape is unknown, expected")),
          AllOf(StartsWith("f:4:"), HasSubstr("size is unknown, expected"))));
}

TEST(TextProtoTest, WrongValuesAreToldWithWhatIsExpected) {
  EXPECT_THAT(
      ErrorsOf("bool_value: maybe"),
      ElementsAre(EndsWith(": bool_value is maybe, expected true or false")));
  google::protobuf::Type type;
  EXPECT_EQ(ParseTextProto("f", "syntax: FULL", &type).message(),
            "f:1:13: syntax is FULL, expected one of SYNTAX_PROTO3");
  EXPECT_THAT(ErrorsOf("number_value: -x"),
              ElementsAre(HasSubstr(": found x, expected ")));
}

TEST(TextProtoTest, AnUnknownFieldIsToldWithTheErrorThatEndsTheFile) {
  EXPECT_THAT(ErrorsOf("colour: 3\nnumber_value: \"x\"\n"),
              ElementsAre(HasSubstr("colour"), StartsWith("f:2:")));
}

TEST(TextProtoTest, MillionsOfErrorsAreTheFirstFifty) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "colour: 3\n";
  const std::vector<std::string> errors = ErrorsOf(text);
  EXPECT_EQ(errors.size(), 51);
  EXPECT_EQ(errors.back(), "f: 99950 more errors");
}

TEST(TextProtoTest, ALongWordIsCutInItsError) {
  EXPECT_LT(ErrorsOf(std::string(1'000'000, 'x') + ": 1")[0].size(), 500);
}

TEST(TextProtoTest, DeepNestingOfUnknownFieldsIsRefused) {
  std::string text;
  for (int i = 0; i < 1000000; ++i) text += "x{";
  Value value;
  EXPECT_FALSE(ParseTextProto("f", text, &value).ok());
}

TEST(TextProtoTest, BytesThatAreNoUtf8AreNamedWithTheirPlace) {
  EXPECT_THAT(ErrorsOf("number_value: 1\n# a\xff\n"),
              ElementsAre("f:2:4: found \"\\xff\", expected UTF-8"));
  EXPECT_THAT(ErrorsOf("string_value: \"\xed\xa0\x80\""),
              ElementsAre("f:1:16: found \"\\xed\", expected UTF-8"));
}

TEST(TextProtoTest, EscapesThatAreNoUtf8AreNamedWithTheirField) {
  EXPECT_THAT(ErrorsOf("list_value { values { string_value: '\\xc3' } }"),
              ElementsAre("f: list_value.values[0].string_value is \"\\xc3\", "
                          "expected UTF-8"));
  Value value;
  EXPECT_TRUE(
      ParseTextProto("f", "string_value: '\\xc3\\xa9 \xf0\x9f\x98\x80'", &value)
          .ok());
  EXPECT_EQ(value.string_value(), "\xc3\xa9 \xf0\x9f\x98\x80");
}

}  // namespace weir::textproto_test
