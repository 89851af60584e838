// SPDX-License-Identifier: Apache-2.0
// Stands in for NCCL and for the CUDA runtime below calibrate/gpu's
// communicator: notes what is called, and is slow, stuck or broken on demand.
#ifndef WEIR_TESTS_CALIBRATE_NETWORK_FAKE_NCCL_H_
#define WEIR_TESTS_CALIBRATE_NETWORK_FAKE_NCCL_H_

#include <nccl.h>

#include <string>
#include <vector>

namespace weir {

struct FakeNccl {
  // "send 1024 to 1", "group {", "}", "all_reduce 512", "record", "abort" ...
  std::vector<std::string> calls;
  int num_polls_in_progress = 0;  // after every call that may go on
  bool is_stuck = false;          // events never come, nothing ever settles
  ncclResult_t async_error = ncclSuccess;
  int num_events_pending = 0;  // queries that say "not ready"
  float elapsed_milliseconds = 1;
  int blocking = -1;  // of the last communicator's configuration
};

FakeNccl& Fake();

}  // namespace weir

#endif  // WEIR_TESTS_CALIBRATE_NETWORK_FAKE_NCCL_H_
