// SPDX-License-Identifier: Apache-2.0
// Control plane of every rank but 0: connects to rank 0, executes its requests,
// and detects its death or silence.
#ifndef WEIR_CALIBRATE_FABRIC_FOLLOWER_H_
#define WEIR_CALIBRATE_FABRIC_FOLLOWER_H_

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "calibrate/fabric/failure.h"
#include "calibrate/fabric/launch.h"
#include "calibrate/fabric/leader.h"
#include "calibrate/fabric/wire.h"

namespace weir::calibrate {

struct FollowerOptions {
  std::string weir_version;
  double timeout_seconds = 60;
  // Called if rank 0 fails while this rank is blocked in a request. The process
  // exits afterwards.
  ReportError report_error;
};

class Follower {
 public:
  // Retries until the timeout. Returns Aborted if rank 0 was not found or
  // refuses this rank.
  static absl::StatusOr<std::unique_ptr<Follower>> Connect(
      const RankLaunch& launch, const Rendezvous& rendezvous,
      FollowerOptions options);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // Executes rank 0's requests until FINISH and returns its exit code. Returns
  // Aborted if rank 0 died or fell silent.
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
  const std::string leader_;  // rank 0's address

  std::mutex mutex_;
  std::condition_variable changed_;
  Failure failure_;  // also FINISH: OK, with its exit code
  std::deque<Request> requests_;
  std::string doing_ = "it was waiting for work";
  absl::Time last_heard_;
  bool stopped_ = false;
  std::thread watch_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FABRIC_FOLLOWER_H_
