// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/leader.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace weir::calibrate {
namespace {

constexpr absl::Duration kFarewell = absl::Seconds(2);

std::string Seconds(absl::Duration duration) {
  return absl::StrFormat("%.3g s", absl::ToDoubleSeconds(duration));
}

}  // namespace

absl::Status Leader::Connect(const Rendezvous& rendezvous) {
  RETURN_IF_ERROR(Gather(rendezvous));
  const absl::Time now = absl::Now();
  for (Peer& peer : peers_) peer.last_heard = now;
  watch_ = std::thread([this] { Watch(); });
  return absl::OkStatus();
}

Leader::~Leader() {
  Finish(1);  // without an earlier Finish() the run has failed
  if (watch_.joinable()) watch_.join();
}

std::string Leader::NameOf(int rank) const {
  const Peer& peer = peers_[rank];
  return absl::StrCat("rank ", rank, " (host ", peer.node, ", pid ", peer.pid,
                      ")");
}

absl::StatusOr<std::vector<Answer>> Leader::SendAndWait(
    std::vector<Order> orders) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    asked_at_ = absl::Now();
    ++number_;
    doing_ = orders.front().request.text();
    for (Peer& peer : peers_) peer.asked = peer.answered = false;
    for (const Order& order : orders) peers_[order.rank].asked = true;
  }
  const Order* own = nullptr;
  for (Order& order : orders) {
    order.request.set_number(number_);
    if (order.rank == 0) {
      own = &order;
    } else {
      // The reading thread detects if the rank is gone.
      peers_[order.rank]
          .wire->Send(order.request, asked_at_ + timeout_)
          .IgnoreError();
    }
  }
  if (own != nullptr) {
    Answer answer = options_.perform(own->request);
    const std::lock_guard<std::mutex> lock(mutex_);
    peers_[0].answer = std::move(answer);
    peers_[0].answered = true;
  }
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] {
    return failure_.happened() ||
           std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
             return !peer.asked || peer.answered;
           });
  });
  if (!failure_.happened() && !FirstError().ok()) {
    // A transfer also fails if its other end died, which is then the error to
    // report.
    changed_.wait_for(lock, std::chrono::milliseconds(500),
                      [&] { return failure_.happened(); });
    failure_.Set(FirstError(), 1);
  }
  if (failure_.happened()) {
    failure_.Claim();
    return failure_.status();
  }
  std::vector<Answer> answers;
  for (const Order& order : orders) {
    answers.push_back(std::move(peers_[order.rank].answer));
  }
  doing_ = "rank 0 was computing";
  return answers;
}

// Returns the first error of an answer. Time-outs come last, since they usually
// follow from another rank's delay.
absl::Status Leader::FirstError() const {
  absl::Status late;
  for (int rank = 0; rank < num_ranks_; ++rank) {
    const Peer& peer = peers_[rank];
    if (!peer.asked || !peer.answered || peer.answer.code() == 0) continue;
    const auto code = static_cast<absl::StatusCode>(peer.answer.code());
    absl::Status status(code, absl::StrCat(NameOf(rank), ": ", doing_, ": ",
                                           peer.answer.error()));
    if (code != absl::StatusCode::kDeadlineExceeded) return status;
    if (late.ok()) late = status;
  }
  return late;
}

void Leader::SendAll(const Request& request) {
  for (Peer& peer : peers_) {
    if (peer.wire == nullptr) continue;
    peer.wire->Send(request, absl::Now() + kPollInterval).IgnoreError();
  }
}

void Leader::Finish(int exit_code) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::exchange(finished_, true)) return;
  }
  Request request;
  request.set_what(Request::FINISH);
  request.set_exit_code(exit_code);
  SendAll(request);
  // Closing first could discard the message before a rank has read it.
  const absl::Time deadline = absl::Now() + kFarewell;
  for (const Peer& peer : peers_) {
    if (peer.wire == nullptr) continue;
    while (!WaitReadable({peer.wire->fd()}, deadline).empty() &&
           peer.wire->Fill().ok()) {
    }
  }
  if (!rendezvous_file_.empty()) unlink(rendezvous_file_.c_str());
}

void Leader::Fail(int rank, absl::string_view what) {
  failure_.Set(absl::AbortedError(absl::StrCat(NameOf(rank), " ", what)), 1);
  changed_.notify_all();
}

void Leader::Watch() {
  std::vector<int> ranks;
  std::vector<int> fds;
  absl::Time last_sign;
  Request sign;
  while (true) {
    ranks.clear();
    fds.clear();
    for (int rank = 1; rank < num_ranks_; ++rank) {
      if (peers_[rank].gone) continue;
      ranks.push_back(rank);
      fds.push_back(peers_[rank].wire->fd());
    }
    if (fds.empty()) absl::SleepFor(kPollInterval);
    const std::vector<int> readable =
        fds.empty() ? fds : WaitReadable(fds, absl::Now() + kPollInterval);
    std::vector<int> heard;
    for (const int i : readable) heard.push_back(ranks[i]);
    bool left_alone = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (finished_) return;
      Hear(heard);
      CheckClocks();
      left_alone = failure_.IsLeftAlone() && failure_.Claim();
    }
    if (left_alone) {
      options_.report_error(failure_.status());
      Finish(failure_.exit_code());
      _exit(failure_.exit_code());
    }
    if (absl::Now() - last_sign > timeout_ / 5) {
      last_sign = absl::Now();
      SendAll(sign);
    }
  }
}

// Processes the messages from these ranks.
void Leader::Hear(const std::vector<int>& ranks) {
  for (const int rank : ranks) {
    Peer& peer = peers_[rank];
    const absl::Status filled = peer.wire->Fill();
    Answer answer;
    absl::StatusOr<bool> taken = false;
    while ((taken = peer.wire->ExtractMessage(&answer)).ok() && *taken) {
      if (answer.number() != number_ || !peer.asked) continue;
      peer.answer = answer;
      peer.answered = true;
      changed_.notify_all();
    }
    peer.last_heard = absl::Now();
    if (!taken.ok()) Fail(rank, "sent an invalid message");
    if (filled.ok()) continue;
    Fail(rank, absl::StrCat("died while ", doing_));
    peer.gone = true;
  }
}

void Leader::CheckClocks() {
  const absl::Time now = absl::Now();
  for (int rank = 0; rank < num_ranks_; ++rank) {
    const Peer& peer = peers_[rank];
    const absl::Duration silent = now - peer.last_heard;
    const bool late =
        peer.asked && !peer.answered && now - asked_at_ > timeout_;
    if (rank > 0 && (silent > timeout_ || (late && silent > timeout_ / 2))) {
      Fail(rank, absl::StrCat("sent nothing for ", Seconds(silent), " while ",
                              doing_));
    } else if (late) {
      Fail(rank, absl::StrCat("did not finish within ", Seconds(timeout_), ": ",
                              doing_));
    }
  }
}

}  // namespace weir::calibrate
