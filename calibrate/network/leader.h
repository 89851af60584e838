// SPDX-License-Identifier: Apache-2.0
// Rank 0's end of the control plane: it waits until all ranks have come, asks
// them, and notices those that die, fall silent or do not finish.
#ifndef WEIR_CALIBRATE_NETWORK_LEADER_H_
#define WEIR_CALIBRATE_NETWORK_LEADER_H_

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
#include "calibrate/network/control.pb.h"
#include "calibrate/network/failure.h"
#include "calibrate/network/launch.h"
#include "calibrate/network/newcomers.h"
#include "calibrate/network/wire.h"

namespace weir {

// What a rank does with a request; it may take long.
using Perform = std::function<Answer(const Request& request)>;

// A request and who gets it.
struct Order {
  int rank;
  Request request;
};

struct LeaderOptions {
  std::string weir_version;
  double timeout_seconds = 60;
  Perform perform;  // rank 0's own part
  // Where that part is stuck when another rank fails; the process ends then.
  Tell tell;
};

class Leader {
 public:
  Leader(const RankLaunch& launch, LeaderOptions options);
  ~Leader();
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  // Waits for all others. Drops and counts connections with a wrong token, and
  // those of ranks that were launched with other counts, are of another version
  // or claim the rank of one that is there: none of them ends the meeting.
  // Aborted: not all ranks came in time; names them and what was dropped.
  absl::Status Meet(const Rendezvous& rendezvous);

  // Sends the requests, does rank 0's own, gathers the answers in the same
  // order; a barrier too. Every answer is without error. Aborted: a rank died,
  // fell silent or did not finish in time, "rank 3 (host n2, pid 7) died while
  // ..."; else the error of an answer, with its rank. After an error nothing
  // more can be asked. Ranks are asked once each.
  absl::StatusOr<std::vector<Answer>> Ask(std::vector<Order> orders);

  // Makes the other ranks exit with this code and waits a moment for them.
  // Removes the rendezvous file if Meet has written it.
  void Finish(int exit_code);

  // "rank 3 (host n2, pid 1234)"
  std::string NameOf(int rank) const;
  const std::string& NodeOf(int rank) const { return peers_[rank].node; }

 private:
  struct Peer {
    std::unique_ptr<ControlWire> wire;  // none of rank 0
    std::string node;
    int pid = 0;
    uint64_t instance = 0;  // of its Hello, as the next
    uint32_t attempt = 0;
    bool confirmed = false;  // it has answered our welcome
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
  // Says why a rank cannot join; empty: it can.
  std::string Objection(const Hello& hello) const;
  // Tells whether another connection of this rank is to be kept.
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
  std::string meeting_file_;  // that Meet has written; empty: none

  std::mutex mutex_;
  std::condition_variable changed_;
  Failure failure_;
  std::string doing_ = "meeting";
  absl::Time asked_at_;
  uint64_t number_ = 0;
  bool finished_ = false;
  std::thread watch_;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_NETWORK_LEADER_H_
