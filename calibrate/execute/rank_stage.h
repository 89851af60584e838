// SPDX-License-Identifier: Apache-2.0
// A stage on one rank: its weights, and the buffers of its microbatches.
#ifndef WEIR_CALIBRATE_EXECUTE_RANK_STAGE_H_
#define WEIR_CALIBRATE_EXECUTE_RANK_STAGE_H_

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "calibrate/execute/rank_device.h"
#include "calibrate/execute/stage_layout.h"
#include "calibrate/execute/weight_versions.h"

namespace weir::calibrate {

// An estimate that all passes of an update compute with.
struct KeptEstimate {
  void* memory = nullptr;
  int uses_left = 0;
  bool is_spare = false;  // in addition to the predicted copy
};

struct RankStage {
  RankStage(std::shared_ptr<const StageProgram> program, int stage)
      : stage(stage), layout(std::move(program)) {}

  // Returns a table of the buffers that no microbatch owns.
  Buffers StaticTable(void* weights) const {
    Buffers table(layout.program().buffers.size(), nullptr);
    table[layout.weights] = weights;
    table[layout.gradients] = gradients;
    table[layout.state] = state;
    return table;
  }

  int stage;
  StageLayout layout;

  // Weights and training state.
  std::unique_ptr<WeightVersions> versions;
  int steps_done = 0;
  int updates_done = 0;  // in this step
  void* gradients = nullptr;
  void* state = nullptr;
  std::vector<void*> averages;

  // Predicted weights.
  void* predicted = nullptr;
  bool predicted_in_use = false;
  std::map<int, KeptEstimate> estimates;  // by update

  // Microbatches.
  std::vector<int> forwards;                // in program order
  std::vector<Buffers> tables;              // [microbatch]
  std::vector<double> alive_bytes;          // [microbatch]
  std::vector<double> kept_bytes;           // [microbatch], after its forward
  std::vector<int> admitted;                // [microbatch], vertical sync
  std::vector<bool> last_of_version;        // [microbatch]
  std::map<int, std::vector<int>> on_host;  // buffers, by microbatch
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_RANK_STAGE_H_
