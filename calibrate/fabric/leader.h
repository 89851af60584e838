// SPDX-License-Identifier: Apache-2.0
// Rank 0's control plane: waits until all ranks have connected, sends them
// requests, and detects ranks that die, fall silent or do not finish.
#ifndef WEIR_CALIBRATE_FABRIC_LEADER_H_
#define WEIR_CALIBRATE_FABRIC_LEADER_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "calibrate/fabric/control.pb.h"
#include "calibrate/fabric/failure.h"
#include "calibrate/fabric/launch.h"
#include "calibrate/fabric/pending_connections.h"
#include "calibrate/fabric/wire.h"

namespace weir::calibrate {

// How often the threads that wait for a socket check whether they should stop.
inline constexpr absl::Duration kPollInterval = absl::Milliseconds(100);

// Executes a request, possibly for a long time.
using Perform = std::function<Answer(const Request& request)>;

// A request and its recipient.
struct Order {
  int rank;
  Request request;
};

struct LeaderOptions {
  std::string weir_version;
  double timeout_seconds = 60;
  Perform perform;  // rank 0's own part
  // Called if another rank fails while rank 0's part is stuck; the process then
  // ends.
  ReportError report_error;
};

class Leader {
 public:
  Leader(const RankLaunch& launch, LeaderOptions options);
  ~Leader();
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  // Waits for all other ranks. Drops and counts connections with a wrong token,
  // and those of ranks that were launched with a different count, have another
  // version, or claim a rank that is connected; none of these ends the wait.
  // Returns Aborted, with the missing ranks and the dropped connections, if not
  // all ranks connected in time.
  absl::Status Connect(const Rendezvous& rendezvous);

  // Sends the requests, performs rank 0's own, and returns the answers in the
  // same order, all without error; also acts as a barrier. Returns Aborted if a
  // rank died, fell silent or did not finish in time ("rank 3 (host n2, pid 7)
  // died while ..."); otherwise the error of an answer, with its rank. After an
  // error SendAndWait() must not be called again. Requires: each rank occurs at
  // most once.
  absl::StatusOr<std::vector<Answer>> SendAndWait(std::vector<Order> orders);

  // Makes the other ranks exit with this code and waits briefly for them.
  // Removes the rendezvous file if Connect() has written it.
  void Finish(int exit_code);

  // Returns, for example, "rank 3 (host n2, pid 1234)".
  std::string NameOf(int rank) const;
  const std::string& NodeOf(int rank) const { return peers_[rank].node; }

 private:
  struct Peer {
    std::unique_ptr<ControlWire> wire;  // null for rank 0
    std::string node;
    int pid = 0;
    uint64_t instance = 0;  // from its Hello, like `attempt`
    uint32_t attempt = 0;
    bool confirmed = false;  // it has answered the welcome
    absl::Time confirm_until;
    absl::Time last_heard;
    bool gone = false;
    bool asked = false;
    bool answered = false;
    Answer answer;
  };

  absl::Status Gather(const Rendezvous& rendezvous);
  void Admit(const Rendezvous& rendezvous, std::unique_ptr<ControlWire> wire,
             const Hello& hello);
  // Returns why a rank cannot join; empty if it can.
  std::string Objection(const Hello& hello) const;
  // Returns true if another connection of this rank must be kept.
  bool IsTaken(const Hello& hello);
  bool AreAllPresent();
  absl::Status Missing(absl::string_view where) const;
  void Watch();
  void Hear(const std::vector<int>& ranks);
  void CheckClocks();
  void SendAll(const Request& request);
  void Fail(int rank, absl::string_view what);
  absl::Status FirstError() const;

  const LeaderOptions options_;
  const absl::Duration timeout_;
  const int num_ranks_;
  std::vector<Peer> peers_;
  DroppedConnections dropped_;
  std::string rendezvous_file_;  // written by Connect(); empty: none

  std::mutex mutex_;
  std::condition_variable changed_;
  Failure failure_;
  std::string doing_ = "connecting";
  absl::Time asked_at_;
  uint64_t number_ = 0;
  bool finished_ = false;
  std::thread watch_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FABRIC_LEADER_H_
