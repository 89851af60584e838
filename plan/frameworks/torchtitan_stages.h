// SPDX-License-Identifier: Apache-2.0
// torchtitan's division of layers into pipeline stages, and its names of
// schedules.
#ifndef WEIR_PLAN_FRAMEWORKS_TORCHTITAN_STAGES_H_
#define WEIR_PLAN_FRAMEWORKS_TORCHTITAN_STAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace weir::plan {

// A schedule of torch.distributed.pipelining (get_schedule_class, PyTorch 2.9).
struct TorchSchedule {
  absl::string_view torch_name;  // "Interleaved1F1B"
  absl::string_view name;        // "interleaved-1f1b"
  bool has_chunks = false;       // two or more stages per rank
};

const std::vector<TorchSchedule>& TorchSchedules();

// Returns the blocks of each stage if torchtitan divides the layers itself
// (generate_llm_fqn_per_model_part): evenly, where the embedding counts as
// `first_less` and norm and output as `last_less` layers. Empty if it refuses.
std::vector<uint32_t> TorchtitanBlocks(uint32_t num_stages, uint32_t num_layers,
                                       uint32_t first_less, uint32_t last_less);

// Returns module_fqns_per_model_part for these blocks, as JSON.
std::string TorchtitanModules(const std::vector<uint32_t>& blocks);

// Returns the blocks of such a value. The embedding must be in the first stage,
// norm and output in the last one, and the layers in order. Returns
// InvalidArgument with what was expected.
absl::StatusOr<std::vector<uint32_t>> BlocksOfModules(absl::string_view json,
                                                      uint32_t num_layers);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_TORCHTITAN_STAGES_H_
