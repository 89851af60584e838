// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/rank_work.h"

#include <unistd.h>

#include <utility>

#include "base/status_macros.h"

namespace weir::calibrate {

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

absl::Status RankWork::Do(const Request& request, Answer* answer) {
  const int from = static_cast<int>(request.from());
  const int to = static_cast<int>(request.to());
  const int num_repeats = static_cast<int>(request.num_repeats());
  switch (request.what()) {
    case Request::ANSWER:
      return absl::OkStatus();
    case Request::PREPARE:
      return Prepare(request, answer);
    case Request::MAKE_ID: {
      ASSIGN_OR_RETURN(*answer->mutable_id(), transport_->MakeId());
      return absl::OkStatus();
    }
    case Request::JOIN: {
      communicator_.reset();
      ASSIGN_OR_RETURN(
          communicator_,
          transport_->Join(request.id(), static_cast<int>(request.num_ranks()),
                           static_cast<int>(request.rank())));
      return absl::OkStatus();
    }
    case Request::TIME_PAIR: {
      ASSIGN_OR_RETURN(
          const double seconds,
          communicator_->TimePair(static_cast<PairMode>(request.mode()), from,
                                  to, request.bytes(), num_repeats));
      answer->set_seconds(seconds);
      return absl::OkStatus();
    }
    case Request::TIME_COLLECTIVE: {
      ASSIGN_OR_RETURN(const double seconds,
                       communicator_->TimeCollective(
                           static_cast<models::CollectiveKind>(request.mode()),
                           request.bytes(), num_repeats));
      answer->set_seconds(seconds);
      return absl::OkStatus();
    }
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
