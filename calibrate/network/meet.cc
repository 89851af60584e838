// SPDX-License-Identifier: Apache-2.0
// How rank 0 finds all others together.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/output_file.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "calibrate/network/leader.h"

namespace weir {
namespace {

constexpr size_t kMaxHelloBytes = 4096;
constexpr size_t kMaxRefusals = 5;  // named in an error

// Somebody who has connected and not said who it is.
struct Newcomer {
  std::unique_ptr<ControlWire> wire;
  absl::Time until;
};

std::string RandomToken() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) absl::StrAppendFormat(&token, "%08x", random());
  return token;
}

// Only its owner may read it: the token is in it.
absl::Status WriteMeetingPoint(const std::string& path, int port,
                               const std::string& token) {
  MeetingPoint point;
  for (const std::string& host : OwnAddresses()) point.add_hosts(host);
  point.add_hosts("127.0.0.1");
  point.set_port(port);
  point.set_token(token);
  RETURN_IF_ERROR(CheckOutput(path, {}));
  // What is there may have other permissions, which its replacement would get.
  unlink(path.c_str());
  const mode_t old = umask(077);
  absl::Status written = WriteOutput(path, MarkText(PrintTextProto(point)), {});
  umask(old);
  return written;
}

// As long for equal and different ones.
bool SameToken(absl::string_view a, absl::string_view b) {
  unsigned difference = a.size() != b.size();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  }
  return difference == 0;
}

std::string Count(size_t n) {
  return n == 1 ? "1 connection" : absl::StrCat(n, " connections");
}

}  // namespace

Leader::Leader(const RankLaunch& launch, LeaderOptions options)
    : options_(std::move(options)),
      timeout_(absl::Seconds(options_.timeout_seconds)),
      num_ranks_(launch.num_ranks),
      peers_(launch.num_ranks) {
  peers_[0].node = launch.node;
  peers_[0].pid = getpid();
}

absl::Status Leader::Missing(absl::string_view where) const {
  std::vector<std::string> missing;
  for (int rank = 1; rank < num_ranks_; ++rank) {
    if (peers_[rank].wire == nullptr) missing.push_back(absl::StrCat(rank));
  }
  const size_t num_missing = missing.size();
  if (num_missing > 20) {
    missing.resize(20);
    missing.push_back("...");
  }
  std::string what = absl::StrCat(
      num_missing == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "),
      " of ", num_ranks_, " did not come to ", NameOf(0), " at ", where,
      " within ", absl::StrFormat("%.3g s", options_.timeout_seconds));
  if (!refused_.empty()) {
    absl::StrAppend(
        &what, "; sent away ", Count(refused_.size()), ": ",
        absl::StrJoin(
            refused_.begin(),
            refused_.begin() + std::min(refused_.size(), kMaxRefusals), ", "));
  }
  return absl::AbortedError(what);
}

absl::Status Leader::Admit(const Rendezvous& rendezvous,
                           std::unique_ptr<ControlWire> wire,
                           const Hello& hello) {
  const absl::Time soon = absl::Now() + absl::Seconds(1);
  const std::string who =
      absl::StrCat("rank ", hello.rank(), " (host ", hello.node(), ", pid ",
                   hello.pid(), ")");
  Answer answer;
  if (!SameToken(hello.token(), rendezvous.token)) {
    refused_.push_back(absl::StrCat(PeerOf(*wire), " with a wrong token"));
    answer.set_refusal("wrong token");
    wire->Send(answer, soon).IgnoreError();
    return absl::OkStatus();
  }
  std::string wrong;
  if (static_cast<int>(hello.num_ranks()) != num_ranks_) {
    wrong = absl::StrCat("was launched as one of ", hello.num_ranks(),
                         " ranks, expected ", num_ranks_, " as rank 0");
  } else if (hello.weir_version() != options_.weir_version) {
    wrong = absl::StrCat("is version ", hello.weir_version(), ", expected ",
                         options_.weir_version, " as rank 0");
  } else if (hello.rank() == 0 ||
             static_cast<int>(hello.rank()) >= num_ranks_ ||
             peers_[hello.rank()].wire != nullptr) {
    wrong = "came twice, expected every rank once";
  }
  answer.set_refusal(wrong);
  wire->Send(answer, soon).IgnoreError();
  if (!wrong.empty()) return absl::AbortedError(absl::StrCat(who, " ", wrong));
  Peer& peer = peers_[hello.rank()];
  peer.wire = std::move(wire);
  peer.node = hello.node();
  peer.pid = static_cast<int>(hello.pid());
  return absl::OkStatus();
}

// Who came and went again.
void Leader::CheckPresent() {
  for (int rank = 1; rank < num_ranks_; ++rank) {
    Peer& peer = peers_[rank];
    if (peer.wire != nullptr && !peer.wire->Fill().ok()) {
      Fail(rank, "died before all ranks had come");
    }
  }
}

absl::Status Leader::Gather(const Rendezvous& rendezvous) {
  if (num_ranks_ == 1) return absl::OkStatus();
  const absl::Time deadline = absl::Now() + timeout_;
  Rendezvous meeting = rendezvous;
  if (meeting.ports.empty()) meeting.ports = {0};
  ASSIGN_OR_RETURN(const std::unique_ptr<Listener> listener,
                   Listener::Open(meeting.ports, meeting.local_only));
  if (!meeting.file.empty()) {
    if (meeting.token.empty()) meeting.token = RandomToken();
    RETURN_IF_ERROR(
        WriteMeetingPoint(meeting.file, listener->port(), meeting.token));
  }
  const std::string where =
      meeting.file.empty()
          ? absl::StrCat(meeting.hosts.front(), ":", listener->port())
          : absl::StrCat("the address in ", meeting.file);
  std::list<Newcomer> newcomers;
  absl::Time last_sign = absl::Now();
  int num_missing = num_ranks_ - 1;
  while (num_missing > 0) {
    if (absl::Now() > deadline) return Missing(where);
    std::vector<int> fds = {listener->fd()};
    for (const Newcomer& newcomer : newcomers) {
      fds.push_back(newcomer.wire->fd());
    }
    WaitReadable(fds, std::min(deadline, absl::Now() + absl::Seconds(0.2)));
    while (std::unique_ptr<ControlWire> wire = listener->Accept()) {
      newcomers.push_back({std::move(wire), absl::Now() + absl::Seconds(5)});
    }
    for (auto at = newcomers.begin(); at != newcomers.end();) {
      Hello hello;
      const absl::Status filled = at->wire->Fill();
      const absl::StatusOr<bool> taken = at->wire->Take(&hello, kMaxHelloBytes);
      if (taken.ok() && *taken) {
        RETURN_IF_ERROR(Admit(meeting, std::move(at->wire), hello));
      } else if (!taken.ok() || !filled.ok() || absl::Now() > at->until) {
        refused_.push_back(
            absl::StrCat(PeerOf(*at->wire), " with no greeting"));
      } else {
        ++at;
        continue;
      }
      at = newcomers.erase(at);
    }
    CheckPresent();
    if (failure_.happened()) return failure_.status();
    if (absl::Now() - last_sign > timeout_ / 5) {
      last_sign = absl::Now();
      SendAll(Request());
    }
    num_missing = 0;
    for (int rank = 1; rank < num_ranks_; ++rank) {
      num_missing += peers_[rank].wire == nullptr;
    }
  }
  return absl::OkStatus();
}

}  // namespace weir
