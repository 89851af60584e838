// SPDX-License-Identifier: Apache-2.0
// The server with calls that wait, report and fail as they are told.
#include "cli/serve/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"

namespace weir::cli::server_test {

using Json = nlohmann::ordered_json;

std::string Request(int id, const std::string& method, Json params) {
  return Json{{"jsonrpc", "2.0"},
              {"id", id},
              {"method", method},
              {"params", std::move(params)}}
             .dump() +
         "\n";
}

// "work" {"do": "echo"|"wait"|"die"|"report"}.
ServerHandlers Handlers() {
  ServerHandlers handlers;
  handlers.answer = [](const RpcRequest& request) -> std::optional<Json> {
    if (request.method != "now") return std::nullopt;
    return RpcResult(request.id.value_or(nullptr), "now");
  };
  handlers.prepare =
      [](const RpcRequest& request) -> std::variant<ServedCall, Json> {
    if (request.method != "work") {
      return RpcError(request.id.value_or(nullptr), kRpcMethodNotFound, "no");
    }
    ServedCall call{.call = request.params.dump()};
    call.is_estimate = request.params.value("estimate", false);
    call.progress_method = "$/progress";
    call.progress_params = {{"token", request.id.value_or(nullptr)}};
    return call;
  };
  handlers.work = [](const std::string& text,
                     const WorkerProcess::Progress& progress) -> std::string {
    static int num_calls = 0;  // of this process
    ++num_calls;
    const std::string what = Json::parse(text).value("do", "");
    if (what == "wait") {
      std::this_thread::sleep_for(std::chrono::seconds(600));
    }
    if (what == "die") std::abort();
    if (what == "report") progress(R"({"done":0.5})");
    if (what == "garbage") return "{";
    return Json{{"result", num_calls}}.dump();
  };
  return handlers;
}

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(in_), 0);
    ASSERT_EQ(pipe(out_), 0);
    // A child must not keep the ends of the client open.
    handlers_.work = [this, work = handlers_.work](const auto& call,
                                                   const auto& progress) {
      for (int* const end : {&in_[1], &out_[0]}) {
        if (*end >= 0) close(*end);
        *end = -1;
      }
      return work(call, progress);
    };
    thread_ = std::thread([this] {
      ServerLimits limits;
      limits.most_message_bytes = 1000;
      limits.most_waiting = 2;
      limits.num_runs = 1;
      status_ = Serve(in_[0], out_[1], handlers_, limits);
      close(out_[1]);
    });
  }

  void TearDown() override {
    if (in_[1] >= 0) close(in_[1]);
    if (thread_.joinable()) thread_.join();
    close(in_[0]);
    if (out_[0] >= 0) close(out_[0]);
  }

  void Send(const std::string& text) { ASSERT_TRUE(WriteAll(in_[1], text)); }

  void EndInput() {
    close(in_[1]);
    in_[1] = -1;
  }

  // Returns the next message, null at the end.
  Json Receive() {
    std::string line;
    char byte = 0;
    while (read(out_[0], &byte, 1) == 1 && byte != '\n') line += byte;
    return line.empty() ? Json() : Json::parse(line);
  }

  int ReceiveCode() {
    const Json message = Receive();
    return message.contains("error") ? message["error"]["code"].get<int>() : 0;
  }

  ServerHandlers handlers_ = Handlers();
  int in_[2] = {-1, -1}, out_[2] = {-1, -1};
  std::thread thread_;
  absl::Status status_;
};

TEST_F(ServerTest, AnswersAndKeepsItsProcess) {
  Send(Request(1, "now", {}));
  EXPECT_EQ(Receive()["result"], "now");
  for (int i = 1; i <= 3; ++i) {
    Send(Request(i, "work", {{"do", "echo"}}));
    const Json response = Receive();
    EXPECT_EQ(response["id"], i);
    EXPECT_EQ(response["result"], i);  // calls of one process
  }
}

TEST_F(ServerTest, ErrorsDoNotEndIt) {
  Send("{\n[1]\n" + std::string(3000, 'x') + "\n" + Request(1, "no", {}) +
       Request(2, "work", {{"do", "garbage"}}) +
       Request(3, "work", {{"do", "die"}}) + Request(4, "work", {}));
  EXPECT_EQ(ReceiveCode(), kRpcParseError);
  EXPECT_EQ(ReceiveCode(), kRpcInvalidRequest);
  EXPECT_EQ(ReceiveCode(), kRpcInvalidRequest);
  EXPECT_EQ(ReceiveCode(), kRpcMethodNotFound);
  EXPECT_EQ(ReceiveCode(), kRpcInternalError);
  EXPECT_EQ(ReceiveCode(), kRpcInternalError);
  EXPECT_EQ(Receive()["result"], 1);  // of another process
}

TEST_F(ServerTest, ReportsProgressBeforeTheResult) {
  Send(Request(5, "work", {{"do", "report"}}));
  const Json progress = Receive();
  EXPECT_EQ(progress["method"], "$/progress");
  EXPECT_EQ(progress["params"]["token"], 5);
  EXPECT_EQ(progress["params"]["done"], 0.5);
  EXPECT_EQ(Receive()["id"], 5);
}

TEST_F(ServerTest, CancelsRunningAndWaitingRequests) {
  Send(Request(1, "work", {{"do", "wait"}}) +
       Request(2, "work", {{"do", "wait"}}) +
       Request(3, "work", {{"do", "echo"}}));
  // Estimates do not wait for them.
  Send(Request(4, "work", {{"do", "echo"}, {"estimate", true}}));
  EXPECT_EQ(Receive()["id"], 4);
  Send(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":2}})"
       "\n");
  Json response = Receive();
  EXPECT_EQ(response["id"], 2);
  EXPECT_EQ(response["error"]["code"], kRpcCancelled);
  Send(R"({"jsonrpc":"2.0","method":"notifications/cancelled",)"
       R"("params":{"requestId":1}})"
       "\n");
  EXPECT_EQ(Receive()["id"], 3);  // that of 1 has none
  // Of requests that have ended, or never were.
  for (const char* id : {"3", "99", "null", "\"x\"", "[]"}) {
    Send(absl::StrCat(
        R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":)", id,
        "}}\n"));
  }
  Send(Request(6, "now", {}));
  EXPECT_EQ(Receive()["id"], 6);
}

TEST_F(ServerTest, RefusesMoreThanItsLimits) {
  Send(Request(1, "work", {{"do", "wait"}}) + Request(2, "work", {}) +
       Request(3, "work", {}) + Request(4, "work", {}) + Request(1, "now", {}));
  EXPECT_EQ(ReceiveCode(), kRpcBusy);
  const Json refused = Receive();
  EXPECT_EQ(refused["error"]["code"], kRpcInvalidRequest);
  EXPECT_THAT(refused["error"]["message"].get<std::string>(),
              testing::HasSubstr("id is 1, which is in use"));
  Send("{\"jsonrpc\":\"2.0\",\"method\":\"exit\"}\n");
}

TEST_F(ServerTest, ExitCancelsRequests) {
  Send(Request(1, "work", {{"do", "wait"}}) + Request(2, "work", {}));
  Send("{\"jsonrpc\":\"2.0\",\"method\":\"exit\"}\n" + Request(3, "now", {}));
  for (const int id : {1, 2}) {
    const Json response = Receive();
    EXPECT_EQ(response["id"], id);
    EXPECT_EQ(response["error"]["code"], kRpcCancelled);
  }
  EXPECT_TRUE(Receive().is_null());
  thread_.join();
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST_F(ServerTest, FinishesRequestsWhenTheInputEnds) {
  Send(Request(1, "work", {}) + Request(2, "work", {}));
  EndInput();
  EXPECT_EQ(Receive()["id"], 1);
  EXPECT_EQ(Receive()["id"], 2);
  EXPECT_TRUE(Receive().is_null());
  thread_.join();
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST_F(ServerTest, ReportsOutputThatIsClosed) {
  close(out_[0]);
  out_[0] = -1;
  Send(Request(1, "now", {}));
  thread_.join();
  EXPECT_FALSE(status_.ok());
}

// Nobody is left who could read the response.
TEST_F(ServerTest, EndsWhenTheOutputIsClosedDuringARequest) {
  Send(Request(1, "work", {{"do", "wait"}}) + Request(2, "now", {}));
  EXPECT_EQ(Receive()["id"], 2);
  EndInput();
  close(out_[0]);
  out_[0] = -1;
  thread_.join();
  EXPECT_THAT(std::string(status_.message()),
              testing::HasSubstr("standard output"));
}

}  // namespace weir::cli::server_test
