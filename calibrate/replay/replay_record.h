// SPDX-License-Identifier: Apache-2.0
// What a replay did and when. Seconds count from the beginning of a step (of a
// schedule without flush: of the run).
#ifndef WEIR_CALIBRATE_REPLAY_REPLAY_RECORD_H_
#define WEIR_CALIBRATE_REPLAY_REPLAY_RECORD_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "schedules/semantics.h"

namespace weir {

// Names as in MemoryClass of results/result.proto.
enum class ReplayMemory : uint8_t {
  kWeights,
  kWeightStash,
  kGradients,
  kOptimizerState,
  kActivations,
  kWeightGradientStash,
  kPassScratch,
  kCommunicationBuffers,
  kPredictedWeights,
  kEstimateBuffers,
};
inline constexpr int kNumReplayMemories = 10;
const char* Name(ReplayMemory memory);  // "weight_stash"

struct ActionRecord {
  double start_seconds = 0, end_seconds = 0;
};

struct UpdateRecord {
  int stage = 0, update = 0;
  double start_seconds = 0, end_seconds = 0;
};

struct TransferRecord {
  int from_rank = 0, to_rank = 0;
  bool gradient = false;  // of an activation
  int stage = 0;          // that sent it
  int microbatch = 0;
  double bytes = 0;
  double ready_seconds = 0;  // what it carries was made
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
  std::array<double, kNumReplayMemories> peak_by_class{};
  // Most bytes taken at a time, in program order: receive buffers wait there
  // for their messages, sent ones for whoever shows that they have arrived.
  double taken_peak_bytes = 0;
  // What the device's own allocator says of that; 0: it has none.
  double allocator_peak_bytes = 0;
};

// One step: a batch with flush, else the whole run.
struct StepRecord {
  std::vector<RankRecord> ranks;
  std::vector<TransferRecord> transfers;
  // [stage][microbatch]: versions as they were really read, 0 being the one at
  // the step's beginning.
  std::vector<std::vector<VersionUse>> uses;
  std::vector<double> losses;  // [microbatch], mean over its tokens
  double makespan_seconds = 0;
};

struct ReplayRecord {
  std::vector<StepRecord> steps;
  // [stage]: the newest weights at the end. On a GPU fp32 master weights.
  // Empty where the plan asks for none.
  std::vector<std::vector<double>> weights;
  std::string device;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_REPLAY_RECORD_H_
