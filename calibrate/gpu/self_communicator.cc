// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/self_communicator.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/watchdog.h"

namespace weir::calibrate {

absl::StatusOr<std::unique_ptr<SelfCommunicator>> SelfCommunicator::Create(
    int max_ctas, double timeout_seconds) {
  // NCCL blocks in this call, so it runs in a thread that can be abandoned.
  auto communicator = std::make_shared<ncclComm_t>(nullptr);
  RETURN_IF_ERROR(RunWithin(
      timeout_seconds, "starting NCCL with one rank",
      [communicator, max_ctas]() -> absl::Status {
        ncclUniqueId id;
        RETURN_IF_ERROR(NcclStatus(ncclGetUniqueId(&id), "starting NCCL"));
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        if (max_ctas > 0) config.maxCTAs = max_ctas;
        return NcclStatus(
            ncclCommInitRankConfig(communicator.get(), 1, id, 0, &config),
            "starting NCCL with one rank");
      }));
  return std::unique_ptr<SelfCommunicator>(
      new SelfCommunicator(*communicator, timeout_seconds));
}

// ncclCommDestroy waits until NCCL's kernels have finished and every graph that
// captured one is destroyed.
SelfCommunicator::~SelfCommunicator() {
  if (DeviceIsHung()) return;
  RunWithin(timeout_seconds_, "shutting down NCCL",
            [communicator = communicator_] {
              return NcclStatus(ncclCommDestroy(communicator),
                                "shutting down NCCL");
            })
      .IgnoreError();
}

absl::Status SelfCommunicator::Send(const void* from, void* to,
                                    int64_t num_bytes, cudaStream_t stream) {
  const std::string what =
      absl::StrCat("sending ", num_bytes, " bytes to self");
  RETURN_IF_ERROR(NcclStatus(ncclGroupStart(), what));
  const ncclResult_t sent =
      ncclSend(from, num_bytes, ncclUint8, 0, communicator_, stream);
  const ncclResult_t received =
      ncclRecv(to, num_bytes, ncclUint8, 0, communicator_, stream);
  const ncclResult_t ended = ncclGroupEnd();  // also after an error
  RETURN_IF_ERROR(NcclStatus(sent, what));
  RETURN_IF_ERROR(NcclStatus(received, what));
  return NcclStatus(ended, what);
}

}  // namespace weir::calibrate
