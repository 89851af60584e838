// SPDX-License-Identifier: Apache-2.0
// The parts of a batch's time in a form that can be priced again with other
// model parameters without another simulation. Describes the critical path; its
// passes are assumed to be those of one GPU.
#ifndef WEIR_SIM_REPORT_GPU_WORK_H_
#define WEIR_SIM_REPORT_GPU_WORK_H_

#include <array>
#include <utility>
#include <vector>

#include "calibrate/profile/device_profile.pb.h"
#include "calibrate/profile/runtime.pb.h"
#include "sim/engine/engine.h"
#include "sim/graph/pipeline_graph.h"
#include "sim/report/window.h"

namespace weir::sim {

inline constexpr int kNumCallPurposes = 6;

struct GpuWork {
  // Passes of the same stage, operation and number of microbatches.
  struct Pass {
    double count = 0;
    double seconds = 0;                           // total of all passes
    std::vector<std::pair<int, double>> kernels;  // index, calls per pass
    double given_seconds = 0;                     // per pass, not from kernels
    HostWork host;
    // Collectives, per pass. context_seconds: only what kernels do not hide.
    double tensor_seconds = 0, expert_seconds = 0, context_seconds = 0;
    double slowdown_seconds = 0;  // by flows on its GPU, per pass
    double sharing_part = 0;  // by other partitions, relative to its own time
  };
  struct Step {
    double count = 0;
    double seconds = 0;
    int kernel = 0;
    bool updates = false;  // includes the host's part of an update
    double given_seconds = 0;
    // Of an offloaded optimizer: copies, and the step on the host.
    double copy_seconds = 0, host_seconds = 0;
    double sharing_part = 0;
  };

  int device = 0;  // as in Costs::gpu_device
  double peak_flops = 0;
  const calibrate::KernelPrices* kernel_prices =
      nullptr;                          // null: no measurements
  std::vector<models::Kernel> kernels;  // distinct
  std::vector<Pass> passes;
  std::vector<Step> steps;
  std::vector<CollectiveCall> calls;  // over all GPUs
  bool blocking = false;
  // The kind of flows that slows its passes down.
  Mover slowed_by = Mover::kKernels;
  // From the batch's critical path (sim/report/critical_path.h): its seconds
  // outside passes and steps, and the ratios of its passes and steps to those
  // of this GPU.
  double transfer_seconds = 0, reduction_seconds = 0, gather_seconds = 0;
  double pass_scale = 1, step_scale = 1;
};

// Returns the work of `gpu` per batch of the window.
GpuWork WorkOf(const PipelineInputs& inputs, const PipelineGraph& graph,
               const Recording& recording, int gpu, const Window& window);

// The prices that are varied: seconds of each kernel and call, and the host
// parameters.
struct WorkPrices {
  std::vector<calibrate::KernelPrice> kernels;  // [GpuWork::kernels]
  double kernel_gap_seconds = 0;
  std::vector<double> call_seconds;  // [GpuWork::calls]
  double slowdown = 1;               // factor of passes, by GpuWork::slowed_by
  Runtime runtime;
};
// Prices `work` on `device`. Collectives and links are those of `first`, the
// first device.
WorkPrices PriceWork(const GpuWork& work, const DeviceProfile& device,
                     const DeviceProfile& first, const Runtime& runtime);

// Returns the model parameter from which WorkPrices::slowdown is taken.
const Figure& SlowdownFigure(const GpuWork& work, const DeviceProfile& device);

// Returns the time of one batch at `prices`. At `base` it is that of the batch
// itself, provided that collectives take their uncontended time. `given_factor`
// scales GpuWork::Pass::given_seconds.
double WorkSeconds(const GpuWork& work, const WorkPrices& base,
                   const WorkPrices& prices, double given_factor = 1);

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_GPU_WORK_H_
