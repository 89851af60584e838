// SPDX-License-Identifier: Apache-2.0
// Runs commands of weir for weir serve, in a process that reads no terminal.
#ifndef WEIR_CLI_WEIR_SERVED_CALL_H_
#define WEIR_CLI_WEIR_SERVED_CALL_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/serve/json_rpc.h"
#include "cli/serve/server.h"

namespace weir::cli {

// Returns the response to a method that no command executes: models, clusters,
// scenarios, schema, version, initialize, tools/list, ping, shutdown.
std::optional<nlohmann::ordered_json> AnswerAtOnce(const RpcRequest& request);

// Returns the call of a method of AllMethods() (cli/schema/tools.h), or of
// tools/call. `params._meta.progressToken` asks for progress.
std::variant<ServedCall, nlohmann::ordered_json> PrepareCall(
    const RpcRequest& request);

// Executes a call of PrepareCall; see ServerHandlers::work. Takes over standard
// output and error of this process.
std::string RunServedCall(
    const std::string& call,
    const std::function<void(const std::string&)>& progress);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_SERVED_CALL_H_
