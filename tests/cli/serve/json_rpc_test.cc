// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/json_rpc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::cli::json_rpc_test {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;

// Returns the code with which a text is refused; 0: it is a request.
int CodeOf(absl::string_view text) {
  const auto parsed = ParseRpc(text);
  const Json* response = std::get_if<Json>(&parsed);
  return response == nullptr ? 0 : (*response)["error"]["code"].get<int>();
}

TEST(JsonRpcTest, RequestsAndNotifications) {
  auto parsed = ParseRpc(
      R"({"jsonrpc":"2.0","id":7,"method":"simulate","params":{"tp":4}})");
  const auto* request = std::get_if<RpcRequest>(&parsed);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->id, Json(7));
  EXPECT_EQ(request->method, "simulate");
  EXPECT_EQ(request->params["tp"], 4);

  parsed = ParseRpc(R"({"jsonrpc":"2.0","method":"exit"})");
  request = std::get_if<RpcRequest>(&parsed);
  ASSERT_NE(request, nullptr);
  EXPECT_FALSE(request->id.has_value());
  EXPECT_TRUE(request->params.is_object());
}

TEST(JsonRpcTest, WrongMessagesAreRefused) {
  EXPECT_EQ(CodeOf("{"), kRpcParseError);
  EXPECT_EQ(CodeOf("\xff"), kRpcParseError);
  EXPECT_EQ(CodeOf(std::string(100'000, '[')), kRpcParseError);
  EXPECT_EQ(CodeOf("[]"), kRpcInvalidRequest);
  EXPECT_EQ(CodeOf("1"), kRpcInvalidRequest);
  EXPECT_EQ(CodeOf("{}"), kRpcInvalidRequest);
  EXPECT_EQ(CodeOf(R"({"jsonrpc":"1.0","id":1,"method":"a"})"),
            kRpcInvalidRequest);
  EXPECT_EQ(CodeOf(R"({"jsonrpc":"2.0","id":1})"), kRpcInvalidRequest);
  EXPECT_EQ(CodeOf(R"({"jsonrpc":"2.0","id":1,"method":2})"),
            kRpcInvalidRequest);
  EXPECT_EQ(CodeOf(R"({"jsonrpc":"2.0","id":[],"method":"a"})"),
            kRpcInvalidRequest);
  EXPECT_EQ(CodeOf(R"({"jsonrpc":"2.0","id":1,"method":"a","params":[1]})"),
            kRpcInvalidParams);
}

std::vector<std::string> LinesOf(LineReader* reader) {
  std::vector<std::string> lines;
  while (const auto line = reader->Next()) {
    lines.push_back(line->is_too_long ? "TOO LONG" : line->text);
  }
  return lines;
}

TEST(LineReaderTest, LinesMayArriveInParts) {
  LineReader reader(100);
  reader.Add("a");
  EXPECT_THAT(LinesOf(&reader), ElementsAre());
  reader.Add("b\r\n\n  \nc\nd");
  EXPECT_THAT(LinesOf(&reader), ElementsAre("ab", "c"));
  reader.End();
  EXPECT_THAT(LinesOf(&reader), ElementsAre("d"));
  reader.End();
  EXPECT_THAT(LinesOf(&reader), ElementsAre());
}

TEST(LineReaderTest, LongLinesAreSkippedOnce) {
  LineReader reader(4);
  reader.Add("12345");
  EXPECT_THAT(LinesOf(&reader), ElementsAre("TOO LONG"));
  for (int i = 0; i < 3; ++i) {
    reader.Add("more");
    EXPECT_THAT(LinesOf(&reader), ElementsAre());
  }
  reader.Add("end\nok\n123456\nok\n");
  EXPECT_THAT(LinesOf(&reader), ElementsAre("ok", "TOO LONG", "ok"));
}

}  // namespace weir::cli::json_rpc_test
