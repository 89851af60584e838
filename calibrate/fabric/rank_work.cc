// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/rank_work.h"

#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weir::calibrate {
namespace {

// Return the value of an enum of the message, or nullopt if rank 0 has set
// none or one that this version does not know.
std::optional<PairMode> PairModeOf(Request::PairMode mode) {
  switch (mode) {
    case Request::ONE_WAY:
      return PairMode::kOneWay;
    case Request::BOTH_WAYS:
      return PairMode::kBothWays;
    case Request::PING_PONG:
      return PairMode::kPingPong;
    default:
      return std::nullopt;
  }
}

std::optional<models::CollectiveKind> CollectiveKindOf(
    Request::Collective collective) {
  switch (collective) {
    case Request::ALL_REDUCE:
      return models::CollectiveKind::kAllReduce;
    case Request::ALL_GATHER:
      return models::CollectiveKind::kAllGather;
    case Request::REDUCE_SCATTER:
      return models::CollectiveKind::kReduceScatter;
    case Request::ALL_TO_ALL:
      return models::CollectiveKind::kAllToAll;
    default:
      return std::nullopt;
  }
}

absl::Status OutOfOrder(const Request& request, Request::Do before) {
  return absl::InternalError(
      absl::StrCat("rank 0 requests ", Request::Do_Name(request.what()),
                   " before ", Request::Do_Name(before)));
}

absl::Status UnknownValue(absl::string_view field, int value, int last) {
  return absl::InternalError(absl::StrCat("rank 0 requests an operation with ",
                                          field, " ", value, ", expected 1 to ",
                                          last));
}

}  // namespace

absl::Status RankWork::Prepare(const Request& request, Answer* answer) {
  // Taken from the launcher, otherwise from the order of the ranks in the node.
  request_.local_rank = launch_.local_rank >= 0
                            ? launch_.local_rank
                            : static_cast<int>(request.local_rank());
  ASSIGN_OR_RETURN(transport_, make_transport_(request_));
  Presence& presence = *answer->mutable_presence();
  presence.set_node(launch_.node);
  presence.set_pid(getpid());
  presence.set_gpu_address(transport_->gpu_address());
  for (const std::string& address : transport_->switch_addresses()) {
    presence.add_switch_addresses(address);
  }
  presence.set_topology_address(launch_.topology_address);
  presence.set_topology_pattern(launch_.topology_pattern);
  *presence.mutable_provenance() = transport_->provenance();
  return absl::OkStatus();
}

absl::Status RankWork::TimePair(const Request& request, Answer* answer) {
  if (communicator_ == nullptr) return OutOfOrder(request, Request::JOIN);
  const std::optional<PairMode> mode = PairModeOf(request.pair_mode());
  if (!mode.has_value()) {
    return UnknownValue("pair_mode", request.pair_mode(),
                        Request::PairMode_MAX);
  }
  ASSIGN_OR_RETURN(
      const double seconds,
      communicator_->TimePair(*mode, static_cast<int>(request.from()),
                              static_cast<int>(request.to()), request.bytes(),
                              static_cast<int>(request.num_repeats())));
  answer->set_seconds(seconds);
  return absl::OkStatus();
}

absl::Status RankWork::TimeCollective(const Request& request, Answer* answer) {
  if (communicator_ == nullptr) return OutOfOrder(request, Request::JOIN);
  const std::optional<models::CollectiveKind> kind =
      CollectiveKindOf(request.collective());
  if (!kind.has_value()) {
    return UnknownValue("collective", request.collective(),
                        Request::Collective_MAX);
  }
  ASSIGN_OR_RETURN(
      const double seconds,
      communicator_->TimeCollective(*kind, request.bytes(),
                                    static_cast<int>(request.num_repeats())));
  answer->set_seconds(seconds);
  return absl::OkStatus();
}

absl::Status RankWork::Do(const Request& request, Answer* answer) {
  switch (request.what()) {
    case Request::ANSWER:
      return absl::OkStatus();
    case Request::PREPARE:
      return Prepare(request, answer);
    case Request::MAKE_ID: {
      if (transport_ == nullptr) return OutOfOrder(request, Request::PREPARE);
      ASSIGN_OR_RETURN(*answer->mutable_id(), transport_->MakeId());
      return absl::OkStatus();
    }
    case Request::JOIN: {
      if (transport_ == nullptr) return OutOfOrder(request, Request::PREPARE);
      communicator_.reset();
      ASSIGN_OR_RETURN(
          communicator_,
          transport_->Join(request.id(), static_cast<int>(request.num_ranks()),
                           static_cast<int>(request.rank())));
      return absl::OkStatus();
    }
    case Request::TIME_PAIR:
      return TimePair(request, answer);
    case Request::TIME_COLLECTIVE:
      return TimeCollective(request, answer);
    case Request::LEAVE:
      communicator_.reset();
      return absl::OkStatus();
    default:
      return absl::InternalError("rank 0 requests an unknown operation");
  }
}

Answer RankWork::Perform(const Request& request) {
  Answer answer;
  const absl::Status done = Do(request, &answer);
  answer.set_code(static_cast<int>(done.code()));
  answer.set_error(std::string(done.message()));
  if (transport_ != nullptr) {
    answer.set_memory_bytes(transport_->memory_in_use_bytes());
  }
  return answer;
}

}  // namespace weir::calibrate
