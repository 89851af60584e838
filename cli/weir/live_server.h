// SPDX-License-Identifier: Apache-2.0
// The HTTP server of "weir live". Only programs of this machine reach it, and
// of these only those that know its token.
#ifndef WEIR_CLI_WEIR_LIVE_SERVER_H_
#define WEIR_CLI_WEIR_LIVE_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::cli {

struct LiveResponse {
  int status = 200;
  std::string content_type;
  std::string body;
};

// Handlers run in several threads.
struct LiveHandlers {
  std::function<LiveResponse()> page;                        // GET /
  std::function<LiveResponse(const std::string&)> estimate;  // POST /estimate
  std::function<LiveResponse(const std::string&)> report;    // POST /report
};

class LiveServer {
 public:
  virtual ~LiveServer() = default;
  virtual int port() const = 0;
  // Stops listening and ends the threads. Waits for running handlers.
  virtual void Stop() = 0;
};

// Listens on 127.0.0.1. `port` 0: any that is free. Returns FailedPrecondition
// if weir was built without a server, InvalidArgument if the port is in use.
//
// Refuses requests with 403 unless Host is 127.0.0.1 or localhost with the
// port, Origin (if there is one) is the same, and the token is in the query
// "token" (of the page) or in the header X-Weir-Token (of the others); and with
// 413 bodies above 64 KiB.
absl::StatusOr<std::unique_ptr<LiveServer>> StartLiveServer(
    int port, const std::string& token, LiveHandlers handlers);

// Returns 32 hexadecimal digits from the system's random source, or Internal if
// it fails.
absl::StatusOr<std::string> RandomToken();

// Returns true if the texts are equal. Takes the same time wherever they
// differ.
bool EqualTokens(absl::string_view token, absl::string_view other);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_LIVE_SERVER_H_
