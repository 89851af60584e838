// SPDX-License-Identifier: Apache-2.0
// A child process that runs one call after the other, keeps its state from one
// to the next, and reports progress. Unlike Workers (base/worker_pool.h) it can
// be waited for together with other files, and be ended in the middle of a
// call.
#ifndef WEIR_CLI_SERVE_WORKER_PROCESS_H_
#define WEIR_CLI_SERVE_WORKER_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir::cli {

// For a single thread: the process ends with the thread that started it.
class WorkerProcess {
 public:
  using Progress = std::function<void(const std::string& text)>;
  // Runs in the child. Its standard input is /dev/null.
  using Work =
      std::function<std::string(const std::string& call, const Progress&)>;

  explicit WorkerProcess(Work work) : work_(std::move(work)) {}
  ~WorkerProcess() { Kill(); }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Starts a call, and the process if there is none. Requires: no call runs.
  // Returns Unavailable if no process can be created.
  absl::Status Start(const std::string& call);

  bool is_busy() const { return is_busy_; }
  // The file to wait for while a call runs; readable when Receive has work.
  int fd() const { return fd_; }

  // Reads what has arrived and calls `progress` and, at the end of the call,
  // `done` for it. Returns Internal if the process ended before its call did;
  // the next call starts another one.
  absl::Status Receive(const std::function<void(const std::string&)>& progress,
                       const std::function<void(const std::string&)>& done);

  // Ends the process and its call.
  void Kill();

 private:
  absl::Status StartProcess();
  absl::Status Bury();

  Work work_;
  pid_t pid_ = 0;  // 0: none
  int fd_ = -1;
  bool is_busy_ = false;
  std::string bytes_;
};

}  // namespace weir::cli

#endif  // WEIR_CLI_SERVE_WORKER_PROCESS_H_
