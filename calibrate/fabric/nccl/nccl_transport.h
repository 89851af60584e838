// SPDX-License-Identifier: Apache-2.0
// Messages between GPUs with NCCL, timed by the GPU. Not yet run between GPUs.
#ifndef WEIR_CALIBRATE_FABRIC_NCCL_NCCL_TRANSPORT_H_
#define WEIR_CALIBRATE_FABRIC_NCCL_NCCL_TRANSPORT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "calibrate/fabric/command.h"
#include "calibrate/fabric/transport.h"

namespace weir::calibrate {

// A TransportFactory. The rank uses the GPU of its local rank, or the only one
// that the launcher makes visible. Every wait ends at the request's time-out:
// NCCL's communicators are non-blocking and are then aborted
// (DeadlineExceeded). With one_gpu all ranks use GPU 0 and communicate over
// loopback sockets, each as a separate host: slow, for functional checks only.
// Its NCCL variables are set here, so NCCL must not have been used before.
// Returns Unavailable if there is no driver, no GPU, or an unsupported GPU.
absl::StatusOr<std::unique_ptr<Transport>> MakeNcclTransport(
    const TransportRequest& request);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FABRIC_NCCL_NCCL_TRANSPORT_H_
