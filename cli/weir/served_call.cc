// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/served_call.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/assets.h"
#include "base/child_program.h"
#include "base/json_text.h"
#include "base/proto_json.h"
#include "base/spelling.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/textproto.h"
#include "base/version.h"
#include "cli/options/add_option.h"
#include "cli/options/messages.h"
#include "cli/schema/schemas.h"
#include "cli/schema/tools.h"
#include "cli/weir/versions.h"
#include "cli/weir/weir_app.h"
#include "scenarios/scenario.pb.h"

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kMcpProtocol[] = "2025-06-18";
constexpr absl::string_view kOtherMethods[] = {
    "schema",     "version", "initialize", "tools/list",
    "tools/call", "ping",    "shutdown"};

Json IdOf(const RpcRequest& request) { return request.id.value_or(nullptr); }

// Returns the names of presets that a method lists, or nothing.
std::optional<Json> ListedBy(absl::string_view method) {
  for (const Listing& listing : AllListings()) {
    if (listing.name != method) continue;
    return Json{{std::string(listing.name), ListAssets(listing.folder)}};
  }
  return std::nullopt;
}

// Returns the result of a tool that has not failed.
Json ToolResult(const Json& document) {
  Json result = {
      {"content", {{{"type", "text"}, {"text", DumpJson(document)}}}},
      {"isError", false}};
  if (document.is_object()) result["structuredContent"] = document;
  return result;
}

Json SchemaAnswer(const RpcRequest& request) {
  const Json name = request.params.value("name", Json());
  if (!name.is_string()) {
    return RpcError(
        IdOf(request), kRpcInvalidParams,
        "schema: name is missing or not a string, expected the name "
        "of a schema");
  }
  const auto schema = SchemaOf(name.get<std::string>());
  if (schema.ok()) return RpcResult(IdOf(request), *schema);
  return RpcError(IdOf(request), kRpcInvalidParams, schema.status().message());
}

Json ToolList() {
  CommandLine line;
  return {{"tools", ToolsOf(*MakeWeirApp(&line), ToolStyle::kMcp)}};
}

// Redirects a descriptor to a file in memory.
class Capture {
 public:
  explicit Capture(int fd) : file_(memfd_create("weir", MFD_CLOEXEC)) {
    dup2(file_, fd);
  }

  // Returns what was written since the last call.
  std::string Take() {
    std::fflush(nullptr);
    const off_t size = lseek(file_, 0, SEEK_END);
    std::string text(size > 0 ? static_cast<size_t>(size) : 0, '\0');
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t count = pread(file_, text.data() + done, text.size() - done,
                                  static_cast<off_t>(done));
      if (count <= 0) break;
      done += static_cast<size_t>(count);
    }
    text.resize(done);
    if (ftruncate(file_, 0) == 0) lseek(file_, 0, SEEK_SET);
    return text;
  }

 private:
  int file_;
};

// A command that has ended.
struct Ended {
  int exit_code = 0;
  Json document;                  // null: it printed none
  Json messages = Json::array();  // errors, warnings and notes
};

Json MessagesIn(const std::string& text) {
  Json messages = Json::array();
  for (absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    Json message = Json::parse(line.begin(), line.end(), nullptr, false);
    if (message.is_object()) messages.push_back(std::move(message));
  }
  return messages;
}

// The file of a scenario that is an object. Messages call it "scenario".
absl::StatusOr<ScratchFile> WriteScenario(const Json& scenario) {
  Scenario message;
  RETURN_IF_ERROR(ParseProtoJson("scenario", DumpJson(scenario), &message));
  return ScratchFile::Make(PrintTextProto(message));
}

int RunCommand(const std::vector<std::string>& arguments) {
  std::vector<const char*> words = {"weir"};
  for (const std::string& word : arguments) words.push_back(word.c_str());
  CommandLine line;
  const absl::StatusOr<std::string> text = ParseWeirArguments(
      static_cast<int>(words.size()), words.data(), MakeWeirApp, &line);
  line.flags.output.json_messages = true;
  if (!text.ok()) return PrintError(text.status(), line.flags.output);
  try {
    return line.command(line.flags);
  } catch (const std::bad_alloc&) {
    return PrintError(absl::UnavailableError("out of memory"),
                      line.flags.output);
  } catch (const std::exception& error) {
    return PrintError(absl::InternalError(error.what()), line.flags.output);
  }
}

// Returns the command line of a request. A scenario that is an object becomes a
// file, which `file` then has.
absl::StatusOr<std::vector<std::string>> CommandArguments(
    const Method& method, Json parameters, std::optional<ScratchFile>* file) {
  if (method.positional == "scenario" && parameters.contains("scenario") &&
      parameters["scenario"].is_object()) {
    ASSIGN_OR_RETURN(ScratchFile written,
                     WriteScenario(parameters["scenario"]));
    file->emplace(std::move(written));
    parameters["scenario"] = (*file)->path();
  }
  // The definitions of the options.
  static auto& line = *new CommandLine();
  static const auto& app = *MakeWeirApp(&line).release();
  return ArgumentsOf(app, method, parameters);
}

Ended Run(const Method& method, Json parameters) {
  // Kept for the life of the process, since the command's descriptors are it.
  static auto& out = *new Capture(STDOUT_FILENO);
  static auto& err = *new Capture(STDERR_FILENO);
  std::optional<ScratchFile> file;
  const absl::StatusOr<std::vector<std::string>> arguments =
      CommandArguments(method, std::move(parameters), &file);
  OutputFlags json;
  json.json_messages = true;
  Ended ended;
  ended.exit_code = arguments.ok() ? RunCommand(*arguments)
                                   : PrintError(arguments.status(), json);
  std::string printed = out.Take(), said = err.Take();
  if (file.has_value()) {
    for (std::string* text : {&printed, &said}) {
      *text = absl::StrReplaceAll(*text, {{file->path(), "scenario"}});
    }
  }
  ended.document = Json::parse(printed, nullptr, false);
  if (ended.document.is_discarded()) ended.document = nullptr;
  ended.messages = MessagesIn(said);
  return ended;
}

RpcCode CodeOf(int exit_code) {
  switch (exit_code) {
    case kExitNegative:
      return kRpcNegative;
    case kExitUsage:
      return kRpcInvalidParams;
    case kExitMissing:
      return kRpcMissing;
    default:
      return kRpcInternalError;
  }
}

std::string ErrorText(const Json& messages) {
  std::vector<std::string> lines;
  for (const Json& message : messages) {
    if (message.value("severity", "") == "error") {
      lines.push_back(message.value("message", ""));
    }
  }
  return lines.empty() ? "the command printed no result"
                       : absl::StrJoin(lines, "\n");
}

Json ResponseOf(const Ended& ended) {
  if (ended.document.is_null()) {
    Json error = RpcError(
        nullptr, CodeOf(ended.exit_code), ErrorText(ended.messages),
        {{"exit_code", ended.exit_code}, {"messages", ended.messages}});
    return {{"error", std::move(error["error"])}};
  }
  return {{"result",
           {{"exit_code", ended.exit_code},
            {"document", ended.document},
            {"messages", ended.messages}}}};
}

// Returns the result of tools/call: an error of the tool is a result there.
Json ToolResponseOf(const Ended& ended) {
  if (!ended.document.is_null())
    return {{"result", ToolResult(ended.document)}};
  return {
      {"result",
       {{"content", {{{"type", "text"}, {"text", ErrorText(ended.messages)}}}},
        {"isError", true}}}};
}

bool IsEstimate(const Method& method, const Json& parameters) {
  return method.name == "simulate" &&
         parameters.value("method", Json()) == "fast";
}

std::string UnknownMethod(const std::string& name) {
  std::vector<std::string> known(std::begin(kOtherMethods),
                                 std::end(kOtherMethods));
  for (const Method& method : AllMethods()) known.emplace_back(method.name);
  for (const Listing& listing : AllListings()) known.emplace_back(listing.name);
  return absl::StrCat("message: method is ", EscapeLine(name),
                      ", expected one of ", absl::StrJoin(known, ", "),
                      DidYouMean(name, known));
}

std::string UnknownTool(const std::string& name) {
  std::vector<std::string> known;
  for (const Method& method : AllMethods()) {
    known.push_back(absl::StrCat("weir_", method.name));
  }
  for (const Listing& listing : AllListings()) {
    known.push_back(absl::StrCat("weir_", listing.name));
  }
  return absl::StrCat("message: params.name is ", EscapeLine(name),
                      ", expected one of ", absl::StrJoin(known, ", "),
                      DidYouMean(name, known));
}

}  // namespace

std::optional<Json> AnswerAtOnce(const RpcRequest& request) {
  const auto result = [&](Json value) {
    return RpcResult(IdOf(request), std::move(value));
  };
  const std::string& method = request.method;
  if (const auto listed = ListedBy(method)) return result(*listed);
  if (method == "tools/call") {
    const Json name = request.params.value("name", Json());
    const auto listed = ListedBy(absl::StripPrefix(
        name.is_string() ? name.get<std::string>() : "", "weir_"));
    if (listed.has_value()) return result(ToolResult(*listed));
  }
  if (method == "schema") return SchemaAnswer(request);
  if (method == "version") return result(Json::parse(VersionJson()));
  if (method == "ping") return result(Json::object());
  if (method == "shutdown") return result(nullptr);
  if (method == "tools/list") return result(ToolList());
  if (method == "initialize") {
    return result(
        {{"protocolVersion", kMcpProtocol},
         {"capabilities", {{"tools", Json::object()}}},
         {"serverInfo",
          {{"name", "weir"}, {"version", std::string(WeirVersion())}}}});
  }
  return std::nullopt;
}

std::variant<ServedCall, Json> PrepareCall(const RpcRequest& request) {
  const bool is_tool = request.method == "tools/call";
  Json parameters = request.params;
  std::string name = request.method, given;
  const Json meta = request.params.value("_meta", Json());
  parameters.erase("_meta");
  if (is_tool) {
    name = request.params.value("name", Json()).is_string()
               ? request.params["name"].get<std::string>()
               : "";
    given = name;
    name = std::string(absl::StripPrefix(name, "weir_"));
    parameters = request.params.value("arguments", Json());
    if (parameters.is_null()) parameters = Json::object();
    if (!parameters.is_object()) {
      return RpcError(
          IdOf(request), kRpcInvalidParams,
          absl::StrCat("message: params.arguments is of type ",
                       parameters.type_name(), ", expected an object"));
    }
  }
  const Method* method = FindMethod(name);
  if (method == nullptr) {
    return RpcError(IdOf(request),
                    is_tool ? kRpcInvalidParams : kRpcMethodNotFound,
                    is_tool ? UnknownTool(given) : UnknownMethod(name));
  }
  ServedCall call;
  call.is_estimate = IsEstimate(*method, parameters);
  if (meta.is_object() && meta.contains("progressToken")) {
    call.progress_method = is_tool ? "notifications/progress" : "$/progress";
    call.progress_params = {
        {is_tool ? "progressToken" : "token", meta["progressToken"]}};
  }
  call.call = DumpJson(Json{{"method", name},
                            {"is_tool", is_tool},
                            {"parameters", std::move(parameters)}});
  return call;
}

std::string RunServedCall(
    const std::string& call,
    const std::function<void(const std::string&)>& progress) {
  const Json parsed = Json::parse(call);
  const bool is_tool = parsed["is_tool"].get<bool>();
  double shown = 0;
  SetProgressListener([&](absl::string_view what, double done) {
    Json value = {{"message", std::string(what)}};
    if (is_tool) {
      // The protocol requires that it increases.
      constexpr double kLeastIncrease = 1e-6;
      shown = std::max(done, shown + kLeastIncrease);
      value["progress"] = shown;
      if (done >= 0) value["total"] = 1;
    } else {
      value["done"] = done < 0 ? Json() : Json(done);
    }
    progress(DumpJson(value));
  });
  const auto ended = Run(*FindMethod(parsed["method"].get<std::string>()),
                         parsed["parameters"]);
  return DumpJson(is_tool ? ToolResponseOf(ended) : ResponseOf(ended));
}

}  // namespace weir::cli
