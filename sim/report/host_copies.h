// SPDX-License-Identifier: Apache-2.0
// The copies to and from the host that training makes during passes.
#ifndef WEIR_SIM_REPORT_HOST_COPIES_H_
#define WEIR_SIM_REPORT_HOST_COPIES_H_

#include "results/result.pb.h"
#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"

namespace weir::sim {

// Adds the copies of training.cpu_offloading_num_layers that end at or after
// result->timeline().from_seconds() to result->host_copies(). They are where
// their windows are in the time of the kernels (docs/offload.md): the copy of a
// window begins with it, and the next one begins when both have ended. Of a
// pass that takes longer than priced, because something slows its GPU down, all
// of them are longer in proportion. Adds nothing if nothing is copied.
void FillHostCopies(const PipelineInputs& inputs, const PipelineGraph& graph,
                    const Recording& recording, Result* result);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_HOST_COPIES_H_
