// SPDX-License-Identifier: Apache-2.0
// Record of a replay's actions and their times. Seconds count from the
// beginning of a step (without flush: of the run).
#ifndef WEIR_CALIBRATE_EXECUTE_EXECUTION_RECORD_H_
#define WEIR_CALIBRATE_EXECUTE_EXECUTION_RECORD_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "results/result.pb.h"
#include "schedules/semantics.h"

namespace weir::calibrate {

struct ActionRecord {
  double start_seconds = 0, end_seconds = 0;
};

struct UpdateRecord {
  int stage = 0, update = 0;
  double start_seconds = 0, end_seconds = 0;
};

struct TransferRecord {
  int from_rank = 0, to_rank = 0;
  bool gradient = false;  // gradient of an activation
  int stage = 0;          // the sending stage
  int microbatch = 0;
  double bytes = 0;
  double ready_seconds = 0;  // when its contents were computed
  double start_seconds = 0, end_seconds = 0;
};

// Bytes as a GPU would hold them (StageBuffer::bytes), in program order.
struct MemoryRecord {
  double seconds = 0;
  double bytes = 0;  // in use from then on
};

struct RankRecord {
  std::vector<ActionRecord> actions;  // [position]
  std::vector<UpdateRecord> updates;
  std::vector<MemoryRecord> memory;
  double peak_bytes = 0, peak_at_seconds = 0;
  // [MemoryClass::Kind]
  std::array<double, MemoryClass::Kind_ARRAYSIZE> peak_by_class{};
  // Peak allocated bytes in program order, which includes receive buffers that
  // wait for their messages, and sent buffers whose arrival is not yet certain.
  double taken_peak_bytes = 0;
  // The same according to the device's own allocator; 0: it has none.
  double allocator_peak_bytes = 0;
};

// One step: a batch with flush, otherwise the whole run.
struct StepRecord {
  std::vector<RankRecord> ranks;
  std::vector<TransferRecord> transfers;
  // [stage][microbatch]: versions that were actually read; 0 is the version at
  // the start of the step.
  std::vector<std::vector<schedules::VersionUse>> uses;
  std::vector<double> losses;  // [microbatch], mean over its tokens
  double makespan_seconds = 0;
};

struct ExecutionRecord {
  std::vector<StepRecord> steps;
  // [stage]: the newest weights at the end; on a GPU, the fp32 master weights.
  // Empty if the plan does not request them.
  std::vector<std::vector<double>> weights;
  std::string device;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_EXECUTION_RECORD_H_
