// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/follower.h"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/textproto.h"

namespace weir::calibrate {
namespace {

constexpr absl::Duration kBetweenTries = absl::Milliseconds(200);

// Tries all addresses once. Returns Unavailable if nothing listens (yet) or
// this rank is already connected (for now), Aborted if rank 0 refuses this
// rank. `refusal` is set to rank 0's message if it refused.
absl::StatusOr<std::unique_ptr<ControlWire>> TryOnce(const Rendezvous& meeting,
                                                     absl::Time deadline,
                                                     Hello* hello,
                                                     std::string* where,
                                                     std::string* refusal) {
  absl::Status last = absl::UnavailableError("no attempt was made");
  absl::Status refused;
  for (const std::string& host : meeting.hosts) {
    for (const int port : meeting.ports) {
      const absl::Time soon =
          std::min(deadline, absl::Now() + absl::Seconds(5));
      absl::StatusOr<std::unique_ptr<ControlWire>> wire =
          Connect(host, port, soon);
      *where = absl::StrCat(host, ":", port);
      if (!wire.ok()) {
        last = wire.status();
        continue;
      }
      hello->set_attempt(hello->attempt() + 1);
      (*wire)->Send(*hello, soon).IgnoreError();
      Answer answer;
      // Rank 0 checks for new connections five times a second.
      last = (*wire)->Receive(&answer, soon);
      if (last.ok() && answer.refusal().empty()) return wire;
      if (last.ok()) {
        const std::string said =
            absl::StrCat(*where, " refused it: ", Ascii(answer.refusal()));
        last = absl::UnavailableError(said);
        *refusal = said;
        if (!answer.may_retry()) refused = absl::AbortedError(said);
      } else {
        last =
            absl::UnavailableError(absl::StrCat(*where, ": ", last.message()));
      }
    }
  }
  return refused.ok() ? last : refused;
}

// Reads the file written by rank 0; it may not exist yet or be of an earlier
// run.
absl::Status ReadMeetingPoint(Rendezvous* meeting) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(meeting->file));
  MeetingPoint point;
  RETURN_IF_ERROR(ParseTextProto(meeting->file, text, &point));
  meeting->hosts.assign(point.hosts().begin(), point.hosts().end());
  meeting->ports = {static_cast<int>(point.port())};
  meeting->token = point.token();
  return absl::OkStatus();
}

Hello Greeting(const RankLaunch& launch, const FollowerOptions& options) {
  Hello hello;
  hello.set_rank(launch.rank);
  hello.set_num_ranks(launch.num_ranks);
  hello.set_node(launch.node);
  hello.set_pid(getpid());
  hello.set_weir_version(options.weir_version);
  std::random_device random;
  hello.set_instance(uint64_t{random()} << 32 | random());
  return hello;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Follower>> Follower::Connect(
    const RankLaunch& launch, const Rendezvous& rendezvous,
    FollowerOptions options) {
  const absl::Time deadline =
      absl::Now() + absl::Seconds(options.timeout_seconds);
  Hello hello = Greeting(launch, options);
  absl::Status last;
  std::string refusal;  // the last one, as rank 0 may since have ended
  while (true) {
    Rendezvous meeting = rendezvous;
    last = meeting.file.empty() ? absl::OkStatus() : ReadMeetingPoint(&meeting);
    if (last.ok()) {
      if (!rendezvous.token.empty()) meeting.token = rendezvous.token;
      hello.set_token(meeting.token);
      std::string where;
      absl::StatusOr<std::unique_ptr<ControlWire>> wire =
          TryOnce(meeting, deadline, &hello, &where, &refusal);
      if (wire.ok()) {
        return std::unique_ptr<Follower>(
            new Follower(launch, std::move(options), *std::move(wire), where));
      }
      last = wire.status();
      // A file may be of an earlier run that is still running.
      if (absl::IsAborted(last) && meeting.file.empty()) {
        return absl::AbortedError(
            absl::StrCat("rank ", launch.rank, " (host ", launch.node,
                         ") found rank 0, but ", last.message()));
      }
    }
    if (absl::Now() + kBetweenTries > deadline) break;
    absl::SleepFor(kBetweenTries);
  }
  if (!refusal.empty()) {
    return absl::AbortedError(
        absl::StrCat("rank ", launch.rank, " (host ", launch.node,
                     ") found rank 0, but was not admitted in ",
                     absl::StrFormat("%.3g s: ", options.timeout_seconds),
                     refusal, last.message() == refusal ? "" : "; then ",
                     last.message() == refusal ? "" : last.message()));
  }
  return absl::AbortedError(absl::StrCat(
      "rank ", launch.rank, " (host ", launch.node, ") did not find rank 0 in ",
      absl::StrFormat("%.3g s: ", options.timeout_seconds), last.message()));
}

Follower::Follower(const RankLaunch& launch, FollowerOptions options,
                   std::unique_ptr<ControlWire> wire, std::string leader)
    : options_(std::move(options)),
      timeout_(absl::Seconds(options_.timeout_seconds)),
      rank_(launch.rank),
      wire_(std::move(wire)),
      leader_(std::move(leader)),
      last_heard_(absl::Now()) {
  watch_ = std::thread([this] { Watch(); });
}

Follower::~Follower() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  watch_.join();
}

absl::StatusOr<int> Follower::Serve(const Perform& perform) {
  while (true) {
    Request request;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock,
                    [&] { return failure_.happened() || !requests_.empty(); });
      if (failure_.happened()) {
        failure_.Claim();
        if (failure_.status().ok()) return failure_.exit_code();
        return failure_.status();
      }
      request = std::move(requests_.front());
      requests_.pop_front();
      doing_ = request.text();
    }
    Answer answer = perform(request);
    answer.set_number(request.number());
    // The reading thread detects if rank 0 is gone.
    wire_->Send(answer, absl::Now() + timeout_).IgnoreError();
    const std::lock_guard<std::mutex> lock(mutex_);
    doing_ = "it was waiting for work";
  }
}

void Follower::Watch() {
  absl::Time last_sign;
  // The welcome may have been received together with a request.
  bool readable = true;
  while (true) {
    bool left_alone = false;
    bool over = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stopped_) return;
      if (readable && !failure_.happened()) Hear();
      const absl::Duration silent = absl::Now() - last_heard_;
      if (silent > timeout_) {
        failure_.Set(
            absl::AbortedError(absl::StrFormat(
                "rank 0 (at %s) sent nothing for %.3g s while rank %d: %s",
                leader_, absl::ToDoubleSeconds(silent), rank_, doing_)),
            1);
      }
      over = failure_.happened();
      left_alone = failure_.IsLeftAlone() && failure_.Claim();
    }
    if (over) changed_.notify_all();
    if (left_alone) {
      options_.report_error(failure_.status());
      _exit(failure_.exit_code());
    }
    if (over && readable) absl::SleepFor(kPollInterval);
    if (!over && absl::Now() - last_sign > timeout_ / 5) {
      last_sign = absl::Now();
      wire_->Send(Answer(), absl::Now() + kPollInterval).IgnoreError();
    }
    readable =
        !WaitReadable({wire_->fd()}, absl::Now() + kPollInterval).empty();
  }
}

void Follower::Hear() {
  const absl::Status filled = wire_->Fill();
  last_heard_ = absl::Now();
  Request request;
  absl::StatusOr<bool> taken = false;
  while ((taken = wire_->ExtractMessage(&request)).ok() && *taken) {
    if (request.what() == Request::FINISH) {
      failure_.Set(absl::OkStatus(), static_cast<int>(request.exit_code()));
    } else if (request.what() != Request::STAY_ALIVE) {
      requests_.push_back(request);
      changed_.notify_all();
    }
  }
  if (!filled.ok() || !taken.ok()) {
    failure_.Set(
        absl::AbortedError(absl::StrCat(
            "rank 0 (at ", leader_, ") died while rank ", rank_, ": ", doing_)),
        1);
  }
}

}  // namespace weir::calibrate
