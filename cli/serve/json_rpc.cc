// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/json_rpc.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/json_syntax.h"

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;

bool IsId(const Json& id) {
  return id.is_string() || id.is_number_integer() || id.is_null();
}

}  // namespace

std::variant<RpcRequest, Json> ParseRpc(absl::string_view text) {
  const absl::Status syntax = CheckJsonSyntax("message", text);
  if (!syntax.ok()) return RpcError(nullptr, kRpcParseError, syntax.message());
  Json message = Json::parse(text.begin(), text.end(), nullptr, false);
  if (message.is_discarded()) {
    return RpcError(nullptr, kRpcParseError, "message: is not JSON");
  }
  if (!message.is_object()) {
    return RpcError(nullptr, kRpcInvalidRequest,
                    absl::StrCat("message: is of type ", message.type_name(),
                                 ", expected an object"));
  }
  RpcRequest request;
  if (const auto id = message.find("id"); id != message.end()) {
    if (!IsId(*id)) {
      return RpcError(nullptr, kRpcInvalidRequest,
                      absl::StrCat("message: id is of type ", id->type_name(),
                                   ", expected a string or an integer"));
    }
    request.id = std::move(*id);
  }
  const Json id = request.id.value_or(nullptr);
  const auto version = message.find("jsonrpc");
  if (version == message.end() || *version != "2.0") {
    return RpcError(id, kRpcInvalidRequest,
                    "message: jsonrpc is missing or another version, expected "
                    "\"2.0\"");
  }
  const auto method = message.find("method");
  if (method == message.end() || !method->is_string()) {
    return RpcError(id, kRpcInvalidRequest,
                    "message: method is missing or not a string, expected the "
                    "name of a method");
  }
  request.method = method->get<std::string>();
  // Some clients send null for no parameters.
  if (const auto params = message.find("params");
      params != message.end() && !params->is_null()) {
    if (!params->is_object()) {
      return RpcError(
          id, kRpcInvalidParams,
          absl::StrCat("message: params is of type ", params->type_name(),
                       ", expected an object"));
    }
    request.params = std::move(*params);
  }
  return request;
}

Json RpcResult(const Json& id, Json result) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}};
}

Json RpcError(const Json& id, RpcCode code, absl::string_view message,
              Json data) {
  Json error = {{"code", static_cast<int>(code)},
                {"message", std::string(message)}};
  if (!data.is_null()) error["data"] = std::move(data);
  return {{"jsonrpc", "2.0"}, {"id", id}, {"error", std::move(error)}};
}

Json RpcNotification(absl::string_view method, Json params) {
  return {{"jsonrpc", "2.0"},
          {"method", std::string(method)},
          {"params", std::move(params)}};
}

void LineReader::Add(absl::string_view bytes) {
  // Moves the rest to the front only when most of the buffer is used up.
  if (begin_ > bytes_.size() / 2) {
    bytes_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
  }
  bytes_.append(bytes.data(), bytes.size());
}

void LineReader::End() {
  if (begin_ < bytes_.size()) bytes_ += '\n';
}

std::optional<LineReader::Line> LineReader::Next() {
  while (true) {
    const size_t end = bytes_.find('\n', scanned_);
    if (end == std::string::npos) {
      scanned_ = bytes_.size();
      if (bytes_.size() - begin_ <= most_bytes_ && !skips_) return std::nullopt;
      // Drops the part that is here, and the rest when it arrives.
      bytes_.clear();
      begin_ = scanned_ = 0;
      if (std::exchange(skips_, true)) return std::nullopt;
      return Line{"", /*is_too_long=*/true};
    }
    const absl::string_view line = absl::StripAsciiWhitespace(
        absl::string_view(bytes_).substr(begin_, end - begin_));
    begin_ = scanned_ = end + 1;
    if (std::exchange(skips_, false) || line.empty()) continue;
    if (line.size() > most_bytes_) return Line{"", /*is_too_long=*/true};
    return Line{std::string(line)};
  }
}

}  // namespace weir::cli
