// SPDX-License-Identifier: Apache-2.0
#include "sim/report/host_copies.h"

#include <algorithm>
#include <span>
#include <vector>

namespace weir::sim {
namespace {

struct Copy {
  int block = 0;
  double bytes = 0;
  double start_seconds = 0, end_seconds = 0;  // from the start of the pass
};

// Returns the copies of one microbatch in the order of time.
std::vector<Copy> CopiesOfPass(const HostOffload& offload, bool forward) {
  std::vector<Copy> copies;
  const auto num_windows = static_cast<int>(offload.windows.size());
  double seconds = forward ? offload.forward_before_seconds
                           : offload.backward_before_seconds;
  for (int k = 0; k < num_windows; ++k) {
    const int block = forward ? k : num_windows - 1 - k;
    const HostOffload::Window& window = offload.windows[block];
    const double end = seconds + window.bytes / offload.copy_bytes_per_second;
    copies.push_back({block, window.bytes, seconds, end});
    seconds = std::max(end, seconds + (forward ? window.forward_seconds
                                               : window.backward_seconds));
  }
  return copies;
}

class CopyFiller {
 public:
  CopyFiller(const PipelineInputs& inputs, const PipelineGraph& graph,
             const Recording& recording, Result* result)
      : in_(inputs),
        graph_(graph),
        start_(recording.start_seconds()),
        end_(recording.end_seconds()),
        result_(*result) {}

  void AddGpu(int gpu) {
    const auto& actions = in_.schedule.rank_actions[graph_.rank_of(gpu)];
    for (int i = 0; i < std::ssize(actions); ++i) {
      const schedules::Action& action = actions[i];
      const bool forward = action.op == schedules::Op::kForward;
      if (!forward && action.op != schedules::Op::kBackward) continue;
      const StageCosts& stage = in_.costs.of(gpu, action.stage);
      if (stage.offload.windows.empty()) continue;
      const double priced =
          forward ? stage.seconds.forward : stage.seconds.backward;
      if (!(priced > 0)) continue;
      const int32_t task = graph_.ActionTask(gpu, i);
      const double scale = (end_[task] - start_[task]) / priced;
      for (const Copy& copy : CopiesOfPass(stage.offload, forward)) {
        Add(gpu, action, copy, start_[task], scale);
      }
    }
  }

 private:
  void Add(int gpu, const schedules::Action& action, const Copy& copy,
           double start, double scale) {
    const double end = start + scale * copy.end_seconds;
    if (end < result_.timeline().from_seconds()) return;
    HostCopies* copies = result_.mutable_host_copies();
    copies->add_gpu(gpu);
    copies->add_op(action.op == schedules::Op::kForward
                       ? Timeline::Actions::OFFLOAD
                       : Timeline::Actions::RELOAD);
    copies->add_stage(action.stage);
    copies->add_microbatch(action.microbatch);
    copies->add_block(copy.block);
    copies->add_bytes(copy.bytes * action.num_microbatches);
    copies->add_start_seconds(start + scale * copy.start_seconds);
    copies->add_end_seconds(end);
  }

  const PipelineInputs& in_;
  const PipelineGraph& graph_;
  const std::span<const double> start_, end_;
  Result& result_;
};

}  // namespace

void FillHostCopies(const PipelineInputs& inputs, const PipelineGraph& graph,
                    const Recording& recording, Result* result) {
  if (inputs.schedule.forward_only) return;
  const auto& stages = inputs.costs.stages;
  if (std::all_of(stages.begin(), stages.end(), [](const StageCosts& stage) {
        return stage.offload.windows.empty();
      })) {
    return;
  }
  CopyFiller filler(inputs, graph, recording, result);
  for (int gpu = 0; gpu < graph.num_gpus(); ++gpu) filler.AddGpu(gpu);
}

}  // namespace weir::sim
