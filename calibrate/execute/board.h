// SPDX-License-Identifier: Apache-2.0
// Shared state by which ranks announce queued work. It does not transfer data:
// a posted entry specifies the event after which a rank may read.
#ifndef WEIR_CALIBRATE_EXECUTE_BOARD_H_
#define WEIR_CALIBRATE_EXECUTE_BOARD_H_

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "calibrate/execute/execution_order.h"
#include "calibrate/execute/rank_device.h"

namespace weir::calibrate {

class Board {
 public:
  struct Message {
    bool posted = false;
    CopyEvents copy;       // null: it stays on its rank
    void* into = nullptr;  // the receiver's buffer
    // For vertical sync: the version read by the first stage, and whether all
    // later microbatches read newer weights.
    int version = 0;
    bool last_of_version = false;
  };
  // One entry of Exchange::members.
  struct Part {
    bool lent = false, given = false, offered = false, returned = false;
    RankEventPtr lent_at, given_at, offered_at, returned_at;
    void* room = nullptr;       // the root's buffer for this part
    void* gradients = nullptr;  // the member's gradients, where the sum goes
  };

  Board(const schedules::Schedule& schedule, const ExecutionOrder& order)
      : waits(schedule.num_ranks),
        num_microbatches_(schedule.total_microbatches()),
        num_stages_(schedule.num_stages),
        order_(order) {
    Clear();
  }
  virtual ~Board() = default;

  // Resets the board for the next step.
  void Clear() {
    messages_.assign(2 * static_cast<size_t>(num_stages_) * num_microbatches_,
                     Message());
    parts_.clear();
    for (const Exchange& exchange : order_.exchanges) {
      parts_.emplace_back(exchange.members.size());
    }
  }

  // Requires: `mutex` is held, for all members below.
  Message& message(const MessageKey& key) {
    const size_t row = (key.gradient ? num_stages_ : 0) + key.stage;
    return messages_[row * num_microbatches_ + key.microbatch];
  }
  Part& part(int exchange, int member) { return parts_[exchange][member]; }
  // Announces a message to its receiver.
  virtual void Post(const MessageKey& key, const CopyEvents& copy, int version,
                    bool last_of_version) {
    Message& posted = message(key);
    posted.posted = true;
    posted.copy = copy;
    posted.version = version;
    posted.last_of_version = last_of_version;
  }

  std::mutex mutex;
  std::condition_variable changed;
  absl::Status failure;            // the first failure; all ranks stop
  std::vector<std::string> waits;  // [rank]: what it waits for, or empty

 private:
  const int num_microbatches_, num_stages_;
  const ExecutionOrder& order_;
  std::vector<Message> messages_;
  std::vector<std::vector<Part>> parts_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_BOARD_H_
