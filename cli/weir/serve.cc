// SPDX-License-Identifier: Apache-2.0
// "weir serve --stdio": JSON-RPC 2.0 on standard input and output.
#include <unistd.h>

#include "cli/options/messages.h"
#include "cli/serve/server.h"
#include "cli/weir/commands.h"
#include "cli/weir/served_call.h"

namespace weir::cli {

int RunServe(const Flags& flags) {
  ServerHandlers handlers;
  handlers.answer = AnswerAtOnce;
  handlers.prepare = PrepareCall;
  handlers.work = RunServedCall;
  const absl::Status served = Serve(STDIN_FILENO, STDOUT_FILENO, handlers);
  return served.ok() ? kExitOk : PrintError(served, flags.output);
}

}  // namespace weir::cli
