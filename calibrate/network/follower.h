// SPDX-License-Identifier: Apache-2.0
// Every other rank's end of the control plane: it finds rank 0, does what that
// asks, and notices when it dies or falls silent.
#ifndef WEIR_CALIBRATE_NETWORK_FOLLOWER_H_
#define WEIR_CALIBRATE_NETWORK_FOLLOWER_H_

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calibrate/network/failure.h"
#include "calibrate/network/launch.h"
#include "calibrate/network/leader.h"
#include "calibrate/network/wire.h"

namespace weir {

struct FollowerOptions {
  std::string weir_version;
  double timeout_seconds = 60;
  // Where this rank is stuck in a request when rank 0 fails; the process ends
  // then.
  Tell tell;
};

class Follower {
 public:
  // Tries until the time is over. Aborted: rank 0 was not found or does not
  // want this rank.
  static absl::StatusOr<std::unique_ptr<Follower>> Meet(
      const RankLaunch& launch, const Rendezvous& rendezvous,
      FollowerOptions options);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // Does what rank 0 asks until it says to end; the exit code. Aborted: rank 0
  // died or fell silent.
  absl::StatusOr<int> Serve(const Perform& perform);

 private:
  Follower(const RankLaunch& launch, FollowerOptions options,
           std::unique_ptr<ControlWire> wire, std::string leader);
  void Watch();
  void Hear();

  const FollowerOptions options_;
  const absl::Duration timeout_;
  const int rank_;
  const std::unique_ptr<ControlWire> wire_;
  const std::string leader_;  // where it was found

  std::mutex mutex_;
  std::condition_variable changed_;
  Failure failure_;  // FINISH too: OK, with its exit code
  std::deque<Request> requests_;
  std::string doing_ = "it waited for work";
  absl::Time last_heard_;
  bool stopped_ = false;
  std::thread watch_;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_NETWORK_FOLLOWER_H_
