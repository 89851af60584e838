// SPDX-License-Identifier: Apache-2.0
// Runs "weir serve --stdio" and "weir schema" as other programs do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/weir/program.h"

namespace weir::cli::serve_test {

using Json = nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

struct Answers {
  std::map<int, Json> responses;    // by id
  std::vector<Json> notifications;  // and errors without id
};

// Sends requests with the ids 1, 2, ... and lines of text.
Answers Serve(const std::vector<Json>& requests, const std::string& text = "") {
  std::string lines;
  int id = 0;
  for (Json request : requests) {
    request["jsonrpc"] = "2.0";
    request["id"] = ++id;
    absl::StrAppend(&lines, request.dump(), "\n");
  }
  WriteInput("requests", absl::StrCat(lines, text));
  const ProgramRun run = RunWeirAfter("cat requests |", "serve --stdio");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  Answers answers;
  for (absl::string_view line :
       absl::StrSplit(run.out, '\n', absl::SkipEmpty())) {
    Json message = Json::parse(line.begin(), line.end(), nullptr, false);
    EXPECT_FALSE(message.is_discarded()) << line;
    EXPECT_EQ(message["jsonrpc"], "2.0");
    if (message.contains("id") && message["id"].is_number()) {
      answers.responses[message["id"].get<int>()] = message;
    } else {
      answers.notifications.push_back(message);
    }
  }
  return answers;
}

Json Call(const std::string& method, Json params) {
  return {{"method", method}, {"params", std::move(params)}};
}

TEST(ServeTest, ResultsAreThoseOfTheCommands) {
  const Json costs = {
      {"costs", "f=1,b=2,c=0.1"}, {"pp", 4}, {"microbatches", 8}};
  Json gpipe = costs, fast = costs, two = costs;
  gpipe["schedule"] = fast["schedule"] = "gpipe";
  fast["method"] = "fast";
  two["schedule"] = {"gpipe", "1f1b"};
  Answers answers = Serve({Call("simulate", gpipe), Call("simulate", fast),
                           Call("compare", two), Call("simulate", fast)});
  const Json full = answers.responses[1]["result"];
  EXPECT_EQ(full["exit_code"], 0);
  Json expected = Json::parse(
      RunWeir("simulate --costs f=1,b=2,c=0.1 --pp 4 --microbatches 8 "
              "--schedule gpipe --format json")
          .out);
  EXPECT_EQ(full["document"]["result"], expected["result"]);
  EXPECT_EQ(full["document"]["config"], expected["config"]);
  for (int id : {2, 4}) {
    EXPECT_DOUBLE_EQ(
        answers.responses[id]["result"]["document"]["result"]["batch_seconds"]
            .get<double>(),
        full["document"]["result"]["batch_seconds"].get<double>());
  }
  EXPECT_EQ(answers.responses[3]["result"]["document"]["results"].size(), 2);
}

TEST(ServeTest, ScenariosMayBeObjects) {
  const Json scenario = {
      {"parallelism", {{"pipeline", 2}}},
      {"num_microbatches", 4},
      {"costs",
       {{"stages", {{{"forward_seconds", 1}, {"backward_seconds", 2}}}}}}};
  Json wrong = scenario;
  wrong["parallelism"]["pipelines"] = 3;
  Json invalid = scenario;
  invalid["costs"]["stages"][0]["forward_seconds"] = -1;
  Answers answers =
      Serve({Call("simulate", {{"scenario", scenario}, {"schedule", "gpipe"}}),
             Call("simulate", {{"scenario", wrong}}),
             Call("simulate", {{"scenario", invalid}})});
  EXPECT_EQ(
      answers.responses[1]["result"]["document"]["result"]["batch_seconds"],
      15);
  EXPECT_EQ(answers.responses[2]["error"]["code"], -32602);
  EXPECT_THAT(answers.responses[2]["error"]["message"].get<std::string>(),
              HasSubstr("pipelines"));
  const Json error = answers.responses[3]["error"];
  EXPECT_EQ(error["code"], -32602);
  EXPECT_EQ(error["data"]["exit_code"], 2);
  EXPECT_EQ(error["data"]["messages"][0]["file"], "scenario");
  EXPECT_THAT(error["data"]["messages"][0]["field"].get<std::string>(),
              HasSubstr("forward_seconds"));
  EXPECT_EQ(error["data"]["messages"][0]["found"], "-1");
}

TEST(ServeTest, ErrorsNameMethodsAndParameters) {
  Answers answers = Serve(
      {Call("simulat", Json::object()),
       Call("simulate", {{"scheduel", "1f1b"}, {"tp", {}}}),
       Call("simulate", {{"pp", 0}}), Call("simulate", {{"out", "file.pb"}}),
       Call("simulate", {{"scenario", 3}}),
       Call("schema", {{"name", "reslt"}})},
      "nonsense\n");
  EXPECT_EQ(answers.responses[1]["error"]["code"], -32601);
  EXPECT_THAT(answers.responses[1]["error"]["message"].get<std::string>(),
              HasSubstr("did you mean simulate?"));
  EXPECT_THAT(answers.responses[2]["error"]["message"].get<std::string>(),
              testing::AllOf(HasSubstr("did you mean schedule?"),
                             HasSubstr("tp is of type")));
  EXPECT_EQ(answers.responses[3]["error"]["data"]["messages"][0]["field"],
            "--pp");
  // Requests write no files.
  EXPECT_EQ(answers.responses[4]["error"]["code"], -32602);
  EXPECT_EQ(answers.responses[5]["error"]["code"], -32602);
  EXPECT_THAT(answers.responses[6]["error"]["message"].get<std::string>(),
              HasSubstr("did you mean result?"));
  ASSERT_EQ(answers.notifications.size(), 1);
  EXPECT_EQ(answers.notifications[0]["error"]["code"], -32700);
}

TEST(ServeTest, EmptyTextIsNoValue) {
  Answers answers = Serve({Call("simulate", {{"schedule", ""}}),
                           Call("simulate", {{"tp", std::string(1, '\0')}})});
  for (const int id : {1, 2}) {
    EXPECT_EQ(answers.responses[id]["error"]["code"], -32602);
    EXPECT_THAT(answers.responses[id]["error"]["message"].get<std::string>(),
                HasSubstr("expected a value"));
  }
}

TEST(ServeTest, NegativeAnswersAreNotErrors) {
  // Does not fit: a result, with the command's exit code.
  Answers answers =
      Serve({Call("simulate", {{"scenario", "llama-3-70b-64-h100"},
                               {"schedule", "gpipe"},
                               {"method", "fast"}})});
  EXPECT_EQ(answers.responses[1]["result"]["exit_code"], 1);
  EXPECT_EQ(answers.responses[1]["result"]["document"]["result"]["fits_memory"],
            false);
}

TEST(ServeTest, PlansReportProgress) {
  Answers answers =
      Serve({Call("plan", {{"model", "gpt2"},
                           {"cluster", "dgx-a100"},
                           {"gpus", 4},
                           {"gbs", 16},
                           {"time_limit", 2},
                           {"_meta", {{"progressToken", "t"}}}})});
  EXPECT_FALSE(
      answers.responses[1]["result"]["document"]["result"]["plans"].empty());
  ASSERT_FALSE(answers.notifications.empty());
  for (const Json& note : answers.notifications) {
    EXPECT_EQ(note["method"], "$/progress");
    EXPECT_EQ(note["params"]["token"], "t");
    EXPECT_TRUE(note["params"]["message"].is_string());
  }
}

TEST(ServeTest, ListsAndTools) {
  Answers answers = Serve(
      {Call("models", Json::object()), Call("clusters", Json::object()),
       Call("version", Json::object()), Call("initialize", Json::object()),
       Call("tools/list", Json::object()),
       Call("tools/call",
            {{"name", "weir_model"}, {"arguments", {{"name", "gpt2"}}}}),
       Call("tools/call", {{"name", "weir_model"},
                           {"arguments", {{"name", "no-such-model"}}}}),
       Call("tools/call", {{"name", "weir_simulat"}}),
       Call("tools/call", {{"name", "weir_model"}, {"arguments", "gpt2"}}),
       Call("tools/call", {{"name", "weir_models"}}),
       Call("tools/call",
            {{"name", "weir_schedule"},
             {"arguments",
              {{"name", "1f1b"}, {"pp", 4.0}, {"microbatches", 8}}}})});
  EXPECT_THAT(answers.responses[1]["result"]["models"], Contains("gpt2"));
  EXPECT_THAT(answers.responses[2]["result"]["clusters"], Contains("dgx-h100"));
  EXPECT_TRUE(answers.responses[3]["result"]["weir"].is_string());
  EXPECT_EQ(answers.responses[4]["result"]["serverInfo"]["name"], "weir");
  std::vector<std::string> names;
  std::set<std::string> described;
  for (const Json& tool : answers.responses[5]["result"]["tools"]) {
    names.push_back(tool["name"]);
    EXPECT_EQ(tool["inputSchema"]["type"], "object");
    EXPECT_EQ(tool["inputSchema"]["additionalProperties"], false);
    // Each parameter is described, here or in the tool that is named.
    const Json& properties = tool["inputSchema"]["properties"];
    const auto description = tool["description"].get<std::string>();
    for (const auto& [name, property] : properties.items()) {
      if (property.contains("description")) {
        if (tool["name"] == "weir_simulate") described.insert(name);
      } else {
        EXPECT_TRUE(described.contains(name)) << tool["name"] << " " << name;
        EXPECT_THAT(description, HasSubstr("those of weir_simulate."));
      }
    }
  }
  EXPECT_THAT(names, IsSupersetOf({"weir_simulate", "weir_plan"}));
  EXPECT_EQ(answers.responses[6]["result"]["isError"], false);
  EXPECT_EQ(answers.responses[6]["result"]["content"][0]["type"], "text");
  EXPECT_EQ(answers.responses[7]["result"]["isError"], true);
  EXPECT_THAT(
      answers.responses[7]["result"]["content"][0]["text"].get<std::string>(),
      HasSubstr("no-such-model"));
  EXPECT_EQ(answers.responses[8]["error"]["code"], -32602);
  EXPECT_THAT(
      answers.responses[8]["error"]["message"].get<std::string>(),
      AllOf(HasSubstr("params.name is weir_simulat, expected one of weir_"),
            HasSubstr("did you mean weir_simulate?"), Not(HasSubstr("ping"))));
  EXPECT_THAT(names, IsSupersetOf({"weir_models", "weir_clusters"}));
  const Json models = answers.responses[10]["result"];
  EXPECT_THAT(models["structuredContent"]["models"], Contains("gpt2"));
  EXPECT_EQ(models["isError"], false);
  EXPECT_EQ(answers.responses[11]["result"]["isError"], false);
  EXPECT_EQ(answers.responses[9]["error"]["message"],
            "message: params.arguments is of type string, expected an object");
}

TEST(ServeTest, RefusedParametersAreMessages) {
  Answers answers = Serve(
      {Call("simulate", {{"scenario", "llama-3-70b-64-h100"}, {"tpx", 4}}),
       Call("simulate", {{"scenario", 5}}),
       Call("simulate", {{"scenario", {{"modle", "gpt2"}}}}),
       Call("simulate", {{"scenario", {{"parallelism", {{"pipelin", 4}}}}}}),
       Call("simulate",
            {{"scenario", {{"parallelism", {{"pipeline", "a"}}}}}})});
  for (const auto& [id, field] :
       {std::pair(1, "tpx"), std::pair(2, "scenario"), std::pair(3, "modle"),
        std::pair(4, "parallelism.pipelin"),
        std::pair(5, "parallelism.pipeline")}) {
    const Json& error = answers.responses[id]["error"];
    EXPECT_EQ(error["code"], -32602) << error;
    EXPECT_EQ(error["data"]["exit_code"], 2) << error;
    EXPECT_EQ(error["data"]["messages"][0]["field"], field) << error;
  }
  EXPECT_THAT(answers.responses[2]["error"]["message"].get<std::string>(),
              HasSubstr("expected a string or an object"));
}

TEST(SchemaTest, NamesSchemasAndRefusesOthers) {
  EXPECT_THAT(RunWeir("schema").out, HasSubstr("scenario"));
  const ProgramRun run = RunWeir("schema scenari");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("did you mean scenario?"));
  const Json scenario = Json::parse(RunWeir("schema scenario").out);
  EXPECT_EQ(scenario["$id"], "urn:weir:schema:1:scenario");
  const Json& fields = scenario["$defs"]["weir.Parallelism"]["properties"];
  EXPECT_EQ(fields["pipeline"]["type"], "integer");
  EXPECT_THAT(fields["pipeline"]["description"].get<std::string>(),
              HasSubstr("ranks of one pipeline"));
}

TEST(MessageFormatTest, ErrorsAreObjects) {
  ProgramRun run = RunWeir("simulate --pp 0 --message-format json");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  Json error = Json::parse(run.err);
  EXPECT_EQ(error["severity"], "error");
  EXPECT_EQ(error["file"], "weir simulate");
  EXPECT_EQ(error["field"], "--pp");
  EXPECT_EQ(error["found"], "0");
  EXPECT_EQ(error["line"], nullptr);

  WriteInput("a.textproto", "model: 'gpt2'\nbatch { size: 3 }\n");
  run = RunWeir("simulate a.textproto --message-format=json");
  error = Json::parse(run.err);
  EXPECT_EQ(error["file"], "a.textproto");
  EXPECT_EQ(error["line"], 2);
}

TEST(MessageFormatTest, ScenariosMayBeJson) {
  WriteInput("a.json", R"({"parallelism": {"pipeline": 2}, "costs": {"stages":
    [{"forward_seconds": 1, "backward_seconds": 2}]}, "num_microbatches": 4,
    "schedule": "gpipe"})");
  EXPECT_EQ(Json::parse(RunWeir("simulate a.json --format json")
                            .out)["result"]["batch_seconds"],
            15);
  WriteInput("b.json", R"({"paralelism": {}})");
  const ProgramRun run = RunWeir("simulate b.json");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err,
              testing::AllOf(HasSubstr("b.json"), HasSubstr("paralelism")));
}

}  // namespace weir::cli::serve_test
