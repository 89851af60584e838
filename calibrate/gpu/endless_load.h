// SPDX-License-Identifier: Apache-2.0
// Work that keeps a stream busy while something is measured beside it.
#ifndef WEIR_CALIBRATE_GPU_ENDLESS_LOAD_H_
#define WEIR_CALIBRATE_GPU_ENDLESS_LOAD_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "calibrate/gpu/graph.h"
#include "calibrate/gpu/replayer.h"

namespace weir {

// One round of something, again and again from a graph. A counted number of
// rounds, so that it always ends.
class EndlessLoad {
 public:
  // `launch` enqueues a round of `num_ops` on `stream`; all that it uses
  // outlives the load. Runs some to see how long they take. DeadlineExceeded
  // after `timeout_seconds`, here and below, names `what`.
  static absl::StatusOr<std::unique_ptr<EndlessLoad>> Create(
      std::string what, cudaStream_t stream, double timeout_seconds,
      int num_ops, const std::function<absl::Status()>& launch);

  // Of some milliseconds each, that take `seconds` where nothing slows them.
  int NumReplays(double seconds) const;
  absl::Status Begin();
  absl::Status EnqueueReplay();
  absl::Status End();

  absl::Status WaitUntilBegun();
  absl::StatusOr<bool> IsRunning() const;
  absl::Status WaitUntilEnded();

 private:
  EndlessLoad() = default;

  std::string what_;
  cudaStream_t stream_ = nullptr;
  double timeout_seconds_ = 0;
  Stopwatch watch_;
  GraphExec graph_;
  double graph_seconds_ = 0;  // alone
};

// The replayer's launches, `key` in errors, while all loads run from before
// they begin until after they have ended: again with a longer load where one
// has ended too early. Returns when the loads have ended.
absl::StatusOr<LaunchBatch> RunBeside(
    const std::vector<std::unique_ptr<EndlessLoad>>& loads,
    absl::string_view key, Replayer* replayer, int num_launches);

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_ENDLESS_LOAD_H_
