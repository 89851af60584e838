// SPDX-License-Identifier: Apache-2.0
// Order of the work of each rank: passes, updates, gradient sums over the
// replicas of a stage, and the points at which message buffers are allocated
// and freed.
#ifndef WEIR_CALIBRATE_EXECUTE_EXECUTION_ORDER_H_
#define WEIR_CALIBRATE_EXECUTE_EXECUTION_ORDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/execute/execution_plan.h"
#include "schedules/dependencies.h"

namespace weir::calibrate {

// Activations that `stage` computed for a microbatch, or the gradient of its
// input.
struct MessageKey {
  bool gradient = false;
  int stage = 0, microbatch = 0;
};

struct ExecutionItem {
  enum class Kind : uint8_t {
    kPasses,      // a compute action, or an overlapped pair
    kOffload,     // to the host
    kReload,      // from the host
    kLend,        // allocates a buffer for another replica's gradients
    kGive,        // sends gradients there
    kAdd,         // adds them
    kOffer,       // own gradients may be overwritten by the sum
    kReturn,      // sends the sum to all
    kReceiveSum,  // waits for the sum
    kUpdate,
  };
  Kind kind = Kind::kPasses;
  int32_t position = -1;  // position of its first action
  int num_actions = 1;
  int stage = -1, update = -1;     // for kUpdate
  int exchange = -1, member = -1;  // index into Exchange::members

  // Receive buffers allocated after this item.
  std::vector<MessageKey> receives;
  // Own messages that have certainly arrived when this item begins.
  std::vector<MessageKey> arrived;
};

// The sum of an update's gradients over several members.
struct Exchange {
  struct Member {
    int rank = 0, stage = 0;
    int64_t offset = 0, num_elements = 0;  // within the stage's gradients
  };
  int stage = 0, update = 0;
  // The first member adds up the gradients of the first `num_added` members, in
  // this order; all members get the sum.
  std::vector<Member> members;
  int num_added = 0;
};

struct ExecutionOrder {
  std::vector<std::vector<ExecutionItem>> items;        // [rank]
  std::vector<std::vector<MessageKey>> first_receives;  // [rank]
  std::vector<Exchange> exchanges;
};

// Computes the order of all ranks. Messages are buffered: a message is sent
// when it is computed, however far its receiver has progressed. Therefore the
// receiver allocates the buffer after the last of its own actions that precede
// the sending pass by dependencies: as late as possible without ever blocking a
// sender, and at a fixed point of its program order. The sender frees its side
// at its first action that depends on the reader of the message.
ExecutionOrder MakeExecutionOrder(const ExecutionPlan& plan,
                                  const schedules::Dependencies& dependencies);

// Returns, for example, "2F3 (position 7)" or "the update 0 of stage 2".
std::string ItemText(const ExecutionPlan& plan, const ExecutionOrder& order,
                     int rank, const ExecutionItem& item);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_EXECUTION_ORDER_H_
