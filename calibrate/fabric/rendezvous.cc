// SPDX-License-Identifier: Apache-2.0
// Rendezvous of rank 0 with all other ranks.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/output_file.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/textproto.h"
#include "calibrate/fabric/leader.h"
#include "calibrate/fabric/pending_connections.h"

namespace weir::calibrate {
namespace {

// Time within which an accepted rank must confirm.
constexpr absl::Duration kConfirmTime = absl::Seconds(5);

std::string RandomToken() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) absl::StrAppendFormat(&token, "%08x", random());
  return token;
}

// Writes a file that only its owner may read, since it holds the token. Returns
// its path after resolving symbolic links.
absl::StatusOr<std::string> WriteMeetingPoint(const std::string& path, int port,
                                              const std::string& token) {
  RETURN_IF_ERROR(CheckOutput(path, {}));
  ASSIGN_OR_RETURN(const std::string target, FollowLinks(path));
  std::error_code error;
  const auto status = std::filesystem::status(target, error);
  if (std::filesystem::exists(status) &&
      !std::filesystem::is_regular_file(status)) {
    return CannotBeWritten(
        path, "is a device or a pipe, expected a file that all ranks can read");
  }
  MeetingPoint point;
  for (const std::string& host : OwnAddresses()) point.add_hosts(host);
  point.add_hosts("127.0.0.1");
  point.set_port(port);
  point.set_token(token);
  // WriteOutput would keep the permissions of an existing file.
  unlink(target.c_str());
  const mode_t old = umask(077);
  const absl::Status written =
      WriteOutput(path, MarkText(PrintTextProto(point)), {});
  umask(old);
  RETURN_IF_ERROR(written);
  return target;
}

// Compares in constant time for tokens of equal length.
bool SameToken(absl::string_view a, absl::string_view b) {
  unsigned difference = a.size() != b.size();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  }
  return difference == 0;
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
    if (!peers_[rank].confirmed) missing.push_back(absl::StrCat(rank));
  }
  const size_t num_missing = missing.size();
  if (num_missing > 20) {
    missing.resize(20);
    missing.push_back("...");
  }
  return absl::AbortedError(absl::StrCat(
      num_missing == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "),
      " of ", num_ranks_, " did not connect to ", NameOf(0), " at ", where,
      " within ", absl::StrFormat("%.3g s", options_.timeout_seconds),
      dropped_.ToString()));
}

std::string Leader::Objection(const Hello& hello) const {
  if (static_cast<int64_t>(hello.num_ranks()) != num_ranks_) {
    return absl::StrCat("was launched as one of ", hello.num_ranks(),
                        " ranks, expected ", num_ranks_, " as rank 0");
  }
  if (hello.weir_version() != options_.weir_version) {
    return absl::StrCat("is version ", hello.weir_version(), ", expected ",
                        options_.weir_version, " as rank 0");
  }
  if (hello.rank() == 0 || static_cast<int64_t>(hello.rank()) >= num_ranks_) {
    return absl::StrCat("has an invalid rank, expected 1 to ", num_ranks_ - 1);
  }
  return "";
}

bool Leader::IsTaken(const Hello& hello) {
  const Peer& peer = peers_[hello.rank()];
  if (peer.wire == nullptr) return false;
  // A process that connects again has given up its earlier connection.
  if (peer.instance == hello.instance()) return hello.attempt() <= peer.attempt;
  // The first call may return before it reaches the end of the stream.
  return peer.wire->Fill().ok() && peer.wire->Fill().ok();
}

void Leader::Admit(const Rendezvous& rendezvous,
                   std::unique_ptr<ControlWire> wire, const Hello& hello) {
  const absl::Time soon = absl::Now() + absl::Seconds(1);
  Answer answer;
  if (!SameToken(hello.token(), rendezvous.token)) {
    dropped_.Add(absl::StrCat(PeerOf(*wire), " with a wrong token"));
    answer.set_refusal("wrong token");
    wire->Send(answer, soon).IgnoreError();
    return;
  }
  answer.set_refusal(Objection(hello));
  if (answer.refusal().empty() && IsTaken(hello)) {
    answer.set_refusal(absl::StrCat("duplicates ", NameOf(hello.rank()),
                                    ", which is already connected"));
    answer.set_may_retry(true);  // the connected process may disconnect
  }
  if (!wire->Send(answer, soon).ok()) return;
  if (!answer.refusal().empty()) {
    dropped_.Add(absl::StrCat("rank ", hello.rank(), " (host ",
                              Ascii(hello.node()), ", pid ", hello.pid(), ") ",
                              answer.refusal()));
    return;
  }
  Peer& peer = peers_[hello.rank()];
  peer.wire = std::move(wire);
  peer.node = hello.node();
  peer.pid = static_cast<int>(hello.pid());
  peer.instance = hello.instance();
  peer.attempt = hello.attempt();
  peer.confirmed = false;
  peer.confirm_until = absl::Now() + kConfirmTime;
}

// Until all ranks are present, a rank that disconnects makes room for another:
// it may have been a stranger, or a connection that its rank had given up.
bool Leader::AreAllPresent() {
  bool all = true;
  for (int rank = 1; rank < num_ranks_; ++rank) {
    Peer& peer = peers_[rank];
    all &= peer.wire != nullptr;
    if (peer.wire == nullptr) continue;
    const absl::Status filled = peer.wire->Fill();
    Answer answer;
    absl::StatusOr<bool> taken = false;
    while ((taken = peer.wire->ExtractMessage(&answer)).ok() && *taken) {
      peer.confirmed = true;
    }
    const bool late = !peer.confirmed && absl::Now() > peer.confirm_until;
    if (!filled.ok() || !taken.ok() || late) {
      dropped_.Add(absl::StrCat(NameOf(rank), " (disconnected)"));
      peer = Peer();
    }
    all &= peer.confirmed;
  }
  return all;
}

absl::Status Leader::Gather(const Rendezvous& rendezvous) {
  if (num_ranks_ == 1) return absl::OkStatus();
  const absl::Time deadline = absl::Now() + timeout_;
  Rendezvous meeting = rendezvous;
  if (meeting.ports.empty()) meeting.ports = {0};
  if (meeting.hosts.empty() && meeting.all_local) meeting.hosts = {"127.0.0.1"};
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Listener> listener,
      Listener::Open(meeting.hosts, meeting.ports, meeting.all_local));
  if (!meeting.file.empty()) {
    if (meeting.token.empty()) meeting.token = RandomToken();
    ASSIGN_OR_RETURN(
        rendezvous_file_,
        WriteMeetingPoint(meeting.file, listener->port(), meeting.token));
  }
  const std::string where =
      meeting.file.empty()
          ? absl::StrCat(meeting.hosts.front(), ":", listener->port())
          : absl::StrCat("the address in ", meeting.file);
  PendingConnections newcomers(&dropped_);
  absl::Time last_sign = absl::Now();
  while (!AreAllPresent()) {
    if (absl::Now() > deadline) return Missing(where);
    newcomers.Wait(*listener, std::min(deadline, absl::Now() + kPollInterval));
    newcomers.Accept(listener.get());
    newcomers.Read([&](std::unique_ptr<ControlWire> wire, const Hello& hello) {
      Admit(meeting, std::move(wire), hello);
    });
    if (absl::Now() - last_sign > timeout_ / 5) {
      last_sign = absl::Now();
      SendAll(Request());
    }
  }
  return absl::OkStatus();
}

}  // namespace weir::calibrate
