// SPDX-License-Identifier: Apache-2.0
// What a batch's time is made of, as far as it can be priced again with other
// figures without another simulation: the critical path, whose passes are taken
// for those of one GPU.
#ifndef WEIR_SIM_GPU_WORK_H_
#define WEIR_SIM_GPU_WORK_H_

#include <array>
#include <utility>
#include <vector>

#include "calibrate/device_profile.pb.h"
#include "calibrate/runtime.pb.h"
#include "sim/engine.h"
#include "sim/pipeline_graph.h"
#include "sim/window.h"

namespace weir {

inline constexpr int kNumCallRoles = 5;

struct GpuWork {
  // Equal passes.
  struct Pass {
    double count = 0;
    double seconds = 0;                           // of all of them
    std::vector<std::pair<int, double>> kernels;  // index, how often
    double given_seconds = 0;                     // not from kernels
    HostWork host;
    double tensor_seconds = 0, expert_seconds = 0;  // of its collectives
    double slowdown_seconds = 0;                    // by flows on its GPU
    double sharing_part = 0;  // by other parts of its card, over its own time
  };
  struct Step {
    double count = 0;
    double seconds = 0;
    int kernel = 0;
    bool updates = false;  // the host's part of an update is in it
    double given_seconds = 0;
    double sharing_part = 0;
  };

  int device = 0;  // Costs::gpu_device
  double peak_flops = 0;
  const KernelPrices* kernel_prices = nullptr;  // of the costs; null: figures
  std::vector<Kernel> kernels;                  // distinct
  std::vector<Pass> passes;
  std::vector<Step> steps;
  std::vector<CollectiveCall> calls;  // of all GPUs
  bool blocking = false;
  // What slows its passes down: copies, or kernels that communicate.
  Mover slowed_by = Mover::kKernels;
  // Of the batch's critical path (sim/critical_path.h): what is not passes or
  // steps; and how much of those this GPU's are.
  double transfer_seconds = 0, reduction_seconds = 0, gather_seconds = 0;
  double pass_scale = 1, step_scale = 1;
};

// Per batch of the window.
GpuWork WorkOf(const PipelineInputs& inputs, const PipelineGraph& graph,
               const Recording& recording, int gpu, const Window& window);

// What is varied: seconds of each kernel and call, and the host.
struct WorkPrices {
  std::vector<KernelPrice> kernels;  // [GpuWork::kernels]
  double kernel_gap_seconds = 0;
  std::vector<double> call_seconds;  // [GpuWork::calls]
  double slowdown = 1;               // of passes, by GpuWork::slowed_by
  Runtime runtime;
};
// Collectives and links are those of the first device.
WorkPrices PriceWork(const GpuWork& work, const DeviceProfile& device,
                     const DeviceProfile& first, const Runtime& runtime);

// The figure behind WorkPrices::slowdown.
const Figure& SlowdownFigure(const GpuWork& work, const DeviceProfile& device);

// Seconds of one batch at `prices`: those of the batch itself at `base`, as far
// as collectives take what they take alone.
double WorkSeconds(const GpuWork& work, const WorkPrices& base,
                   const WorkPrices& prices, double given_factor = 1);

}  // namespace weir

#endif  // WEIR_SIM_GPU_WORK_H_
