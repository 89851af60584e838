// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/pending_connections.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

namespace weir::calibrate {
namespace {

constexpr size_t kMaxDescribed = 5;
constexpr size_t kMaxPending = 64;
constexpr size_t kMaxHelloBytes = 4096;
constexpr absl::Duration kGreetingTime = absl::Seconds(5);

}  // namespace

void DroppedConnections::Add(std::string description) {
  ++count_;
  if (first_.size() < kMaxDescribed) first_.push_back(std::move(description));
}

std::string DroppedConnections::ToString() const {
  if (count_ == 0) return "";
  return absl::StrCat(
      "; dropped ", count_, count_ == 1 ? " connection: " : " connections: ",
      absl::StrJoin(first_, ", "), count_ > first_.size() ? ", ..." : "");
}

void PendingConnections::Wait(const Listener& listener,
                              absl::Time deadline) const {
  std::vector<int> fds;
  for (const Pending& pending : pending_) {
    fds.push_back(pending.wire->fd());
  }
  // A connection that cannot be accepted keeps the listener readable.
  if (!out_of_descriptors_ || !pending_.empty()) {
    fds.insert(fds.end(), listener.fds().begin(), listener.fds().end());
  }
  WaitReadable(fds, deadline);
}

void PendingConnections::Accept(Listener* listener) {
  const bool before = std::exchange(out_of_descriptors_, false);
  while (pending_.size() <= kMaxPending) {
    absl::StatusOr<std::unique_ptr<ControlWire>> wire = listener->Accept();
    if (!wire.ok()) {
      out_of_descriptors_ = true;
      if (pending_.empty() && !before) {
        dropped_->Add(std::string(wire.status().message()));
      }
      return;
    }
    if (*wire == nullptr) return;
    pending_.push_back({*std::move(wire), absl::Now() + kGreetingTime});
  }
}

void PendingConnections::Read(const Greet& greet) {
  for (auto at = pending_.begin(); at != pending_.end();) {
    Hello hello;
    const absl::Status filled = at->wire->Fill();
    const absl::StatusOr<bool> taken =
        at->wire->ExtractMessage(&hello, kMaxHelloBytes);
    if (taken.ok() && *taken && filled.ok()) {
      greet(std::move(at->wire), hello);
    } else if (taken.ok() && *taken) {
      dropped_->Add(absl::StrCat(PeerOf(*at->wire), " (disconnected)"));
    } else if (!taken.ok() || !filled.ok() || absl::Now() > at->until) {
      dropped_->Add(absl::StrCat(PeerOf(*at->wire), " without a greeting"));
    } else {
      ++at;
      continue;
    }
    at = pending_.erase(at);
  }
  if (pending_.size() > kMaxPending ||
      (out_of_descriptors_ && !pending_.empty())) {
    dropped_->Add(
        absl::StrCat(PeerOf(*pending_.front().wire), " without a greeting"));
    pending_.pop_front();
  }
}

}  // namespace weir::calibrate
