// SPDX-License-Identifier: Apache-2.0
// Execution of rank 0's requests, on every rank.
#ifndef WEIR_CALIBRATE_FABRIC_RANK_WORK_H_
#define WEIR_CALIBRATE_FABRIC_RANK_WORK_H_

#include <memory>

#include "calibrate/fabric/command.h"
#include "calibrate/fabric/control.pb.h"
#include "calibrate/fabric/launch.h"

namespace weir::calibrate {

class RankWork {
 public:
  RankWork(const RankLaunch& launch, TransportRequest request,
           TransportFactory make_transport)
      : launch_(launch),
        request_(request),
        make_transport_(std::move(make_transport)) {}

  // Executes a request; the answer contains the error, if any: Internal for an
  // unknown operation, mode or collective, and for operations that are
  // requested before PREPARE or JOIN. Holds one communicator at a time.
  Answer Perform(const Request& request);

 private:
  absl::Status Do(const Request& request, Answer* answer);
  absl::Status Prepare(const Request& request, Answer* answer);
  absl::Status TimePair(const Request& request, Answer* answer);
  absl::Status TimeCollective(const Request& request, Answer* answer);

  const RankLaunch launch_;
  TransportRequest request_;
  const TransportFactory make_transport_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FABRIC_RANK_WORK_H_
