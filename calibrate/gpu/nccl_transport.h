// SPDX-License-Identifier: Apache-2.0
// Messages between GPUs with NCCL, timed by the GPU. Built, not yet run.
#ifndef WEIR_CALIBRATE_GPU_NCCL_TRANSPORT_H_
#define WEIR_CALIBRATE_GPU_NCCL_TRANSPORT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "calibrate/network/command.h"
#include "calibrate/network/transport.h"

namespace weir {

// A TransportFactory. The rank uses the GPU of its local rank, or the only one
// that the launcher shows it. Every wait ends at the request's time-out: NCCL's
// communicators do not block and are aborted then (DeadlineExceeded). With
// one_gpu all ranks use GPU 0 and talk over loopback sockets, each as a host of
// its own: slow, only to see that everything works; NCCL's variables for it are
// set here, so NCCL must not have been used before. Unavailable: no driver, no
// GPU, one of another kind.
absl::StatusOr<std::unique_ptr<Transport>> MakeNcclTransport(
    const TransportRequest& request);

}  // namespace weir

#endif  // WEIR_CALIBRATE_GPU_NCCL_TRANSPORT_H_
