// SPDX-License-Identifier: Apache-2.0
// Messages of JSON-RPC 2.0, one per line
// (https://www.jsonrpc.org/specification).
#ifndef WEIR_CLI_SERVE_JSON_RPC_H_
#define WEIR_CLI_SERVE_JSON_RPC_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"

namespace weir::cli {

// Codes of the specification, of the Language Server Protocol (cancelled), and
// of weir.
enum RpcCode : int {
  kRpcParseError = -32700,
  kRpcInvalidRequest = -32600,
  kRpcMethodNotFound = -32601,
  kRpcInvalidParams = -32602,  // exit code 2 of the command
  kRpcInternalError = -32603,  // exit code 70, or a worker that ended
  kRpcNegative = -32001,       // exit code 1: deadlock, no plan
  kRpcMissing = -32002,        // exit code 3
  kRpcBusy = -32003,           // too many requests wait
  kRpcCancelled = -32800,
};

struct RpcRequest {
  // A string, an integer or null; absent for a notification.
  std::optional<nlohmann::ordered_json> id;
  std::string method;
  nlohmann::ordered_json params = nlohmann::ordered_json::object();
};

// Returns a request, or the response to a text that is none.
std::variant<RpcRequest, nlohmann::ordered_json> ParseRpc(
    absl::string_view text);

nlohmann::ordered_json RpcResult(const nlohmann::ordered_json& id,
                                 nlohmann::ordered_json result);
// `data` may be null.
nlohmann::ordered_json RpcError(const nlohmann::ordered_json& id, RpcCode code,
                                absl::string_view message,
                                nlohmann::ordered_json data = nullptr);
nlohmann::ordered_json RpcNotification(absl::string_view method,
                                       nlohmann::ordered_json params);

// Divides a stream into lines.
class LineReader {
 public:
  explicit LineReader(size_t most_bytes) : most_bytes_(most_bytes) {}

  void Add(absl::string_view bytes);
  // Adds a line end if the last line has none.
  void End();

  struct Line {
    std::string text;
    bool is_too_long = false;  // then `text` is empty
  };
  // Returns the next line that is not blank, without its end.
  std::optional<Line> Next();

 private:
  size_t most_bytes_;
  std::string bytes_;
  size_t begin_ = 0;    // of the first byte that is not returned
  size_t scanned_ = 0;  // bytes before it contain no line end
  bool skips_ = false;  // the rest of a line that is too long
};

}  // namespace weir::cli

#endif  // WEIR_CLI_SERVE_JSON_RPC_H_
