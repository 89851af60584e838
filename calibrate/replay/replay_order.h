// SPDX-License-Identifier: Apache-2.0
// What each rank does in which order: passes, updates, sums of gradients over
// the copies of a stage, and where in that order buffers of messages are taken
// and given back.
#ifndef WEIR_CALIBRATE_REPLAY_REPLAY_ORDER_H_
#define WEIR_CALIBRATE_REPLAY_REPLAY_ORDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/replay/replay_plan.h"
#include "schedules/dependencies.h"

namespace weir {

// Activations that `stage` made of a microbatch, or the gradient of its input.
struct MessageKey {
  bool gradient = false;
  int stage = 0, microbatch = 0;
};

struct ReplayItem {
  enum class Kind : uint8_t {
    kPasses,      // a compute action, or an overlapped pair
    kOffload,     // to the host
    kReload,      // and back
    kLend,        // room for the gradients of another copy
    kGive,        // sends them there
    kAdd,         // adds them
    kOffer,       // own gradients may be overwritten by the sum
    kReturn,      // sends the sum to all
    kReceiveSum,  // has it
    kUpdate,
  };
  Kind kind = Kind::kPasses;
  int32_t position = -1;  // of its first action
  int num_actions = 1;
  int stage = -1, update = -1;     // of kUpdate
  int exchange = -1, member = -1;  // index into Exchange::members

  // Receive buffers that are taken behind it.
  std::vector<MessageKey> receives;
  // Own messages that have surely arrived when it begins.
  std::vector<MessageKey> arrived;
};

// Gradients of an update that several have a part of.
struct Exchange {
  struct Member {
    int rank = 0, stage = 0;
    int64_t offset = 0, num_elements = 0;  // of the stage's gradients
  };
  int stage = 0, update = 0;
  // The first num_added are added up by the first of them, in this order; all
  // get the sum.
  std::vector<Member> members;
  int num_added = 0;
};

struct ReplayOrder {
  std::vector<std::vector<ReplayItem>> items;           // [rank]
  std::vector<std::vector<MessageKey>> first_receives;  // [rank]
  std::vector<Exchange> exchanges;
};

// A message is buffered: it leaves when it is made, however far behind its
// receiver is. So the receiver takes the buffer behind the last action of its
// own that the sending pass comes after by its dependencies: as late as can be
// without ever holding up a sender, and at a place in its program order. The
// sender gives its side back when one of its actions comes after whoever read
// the message.
ReplayOrder MakeReplayOrder(const ReplayPlan& plan,
                            const Dependencies& dependencies);

// "2F3 (position 7)", "the update 0 of stage 2".
std::string ItemText(const ReplayPlan& plan, const ReplayOrder& order, int rank,
                     const ReplayItem& item);

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_REPLAY_ORDER_H_
