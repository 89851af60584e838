// SPDX-License-Identifier: Apache-2.0
// Fakes of NCCL and of the CUDA runtime for calibrate/gpu's communicator. They
// record the calls, and are slow, stuck or broken on demand.
#ifndef WEIR_TESTS_CALIBRATE_FABRIC_NCCL_FAKE_NCCL_H_
#define WEIR_TESTS_CALIBRATE_FABRIC_NCCL_FAKE_NCCL_H_

#include <nccl.h>

#include <string>
#include <vector>

namespace weir::calibrate {

struct FakeNccl {
  // Such as "send 1024 to 1", "group {", "}", "all_reduce 512", "record",
  // "abort".
  std::vector<std::string> calls;
  int num_polls_in_progress = 0;  // after every asynchronous call
  bool is_stuck = false;          // events and calls never complete
  ncclResult_t async_error = ncclSuccess;
  int num_events_pending = 0;  // event queries that return "not ready"
  float elapsed_milliseconds = 1;
  int blocking = -1;  // from the last communicator's configuration
};

FakeNccl& Fake();

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_FABRIC_NCCL_FAKE_NCCL_H_
