// SPDX-License-Identifier: Apache-2.0
// The server of weir serve: reads requests from a file, runs them in a few
// processes, and writes responses as they are ready.
#ifndef WEIR_CLI_SERVE_SERVER_H_
#define WEIR_CLI_SERVE_SERVER_H_

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "cli/serve/json_rpc.h"
#include "cli/serve/worker_process.h"

namespace weir::cli {

// A request that a process executes.
// NOLINTNEXTLINE(bugprone-exception-escape): moving a Json throws nothing
struct ServedCall {
  std::string call = {};  // for Work
  // Fast estimates have a process of their own, which keeps their inputs.
  bool is_estimate = false;
  // Method and fixed parameters of the notifications about progress; empty:
  // none are wanted.
  std::string progress_method = {};
  nlohmann::ordered_json progress_params = {};
};

struct ServerHandlers {
  // Returns the response to a request if it takes no time, or nothing.
  std::function<std::optional<nlohmann::ordered_json>(const RpcRequest&)>
      answer;
  // Prepares a request, or returns the response that refuses it.
  std::function<std::variant<ServedCall, nlohmann::ordered_json>(
      const RpcRequest&)>
      prepare;
  // Runs in a process. Returns {"result": ...} or {"error": ...} as text.
  // Progress is an object as text, whose members are added to
  // ServedCall::progress_params.
  WorkerProcess::Work work;
};

struct ServerLimits {
  size_t most_message_bytes = size_t{4} << 20;
  size_t most_waiting = 256;  // requests besides those that run
  int num_runs = 2;           // processes besides that of estimates
};

// Serves until the input ends and every request has its response, or until a
// notification "exit", which cancels the requests that have none. Requests are
// cancelled by "$/cancelRequest" {"id": ...} (Language Server Protocol), which
// are then answered with an error, or by "notifications/cancelled"
// {"requestId": ...} (Model Context Protocol), without answer. Returns
// InvalidArgument if the output cannot be written, as soon as its reader closes
// it. Ignores SIGPIPE from then on.
absl::Status Serve(int in_fd, int out_fd, const ServerHandlers& handlers,
                   const ServerLimits& limits = {});

}  // namespace weir::cli

#endif  // WEIR_CLI_SERVE_SERVER_H_
