// SPDX-License-Identifier: Apache-2.0
// Sums over contiguous layers, which all planners use.
#ifndef WEIR_PLAN_PAPERS_LAYER_SUMS_H_
#define WEIR_PLAN_PAPERS_LAYER_SUMS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "plan/papers/planner_work.h"

namespace weir::plan {

// The data that a stage saves for its backward.
enum class StageKeeps { kActivations, kInputs, kSwapped };

class LayerSums {
 public:
  explicit LayerSums(const std::vector<PlannerLayer>& layers);

  int num_layers() const { return static_cast<int>(forward_.size()) - 1; }
  // Return sums over layers [first, end): seconds of one microbatch, or bytes.
  double forward(int first, int end) const { return Of(forward_, first, end); }
  double backward(int first, int end) const {
    return Of(backward_, first, end);
  }
  double seconds(int first, int end) const {
    return forward(first, end) + backward(first, end);
  }
  double activation_bytes(int first, int end) const {
    return Of(activation_, first, end);
  }
  double input_bytes(int first, int end) const {
    return Of(input_, first, end);
  }
  double parameter_bytes(int first, int end) const {
    return Of(parameter_, first, end);
  }
  double gradient_bytes(int first, int end) const {
    return Of(gradient_, first, end);
  }
  double state_bytes(int first, int end) const {
    return Of(state_, first, end);
  }
  double version_bytes(int first, int end) const {
    return Of(version_, first, end);
  }
  // Returns the bytes sent over a cut before `layer`, in one direction.
  double cut_bytes(int layer) const { return output_[layer - 1]; }

  // Returns true if the layers include a block and may begin with the first
  // one.
  bool MayBeStage(int first, int end) const {
    return blocks_[end] > blocks_[first] && (first == 0 || may_begin_[first]);
  }

  // Returns the memory of one device with `in_flight` microbatches that await
  // their backward and `versions` of the weights. With kInputs, one microbatch
  // at a time is recomputed; with kSwapped, one is resident and one in
  // transfer.
  double memory_bytes(int first, int end, double in_flight, double versions = 1,
                      StageKeeps keeps = StageKeeps::kActivations) const;

 private:
  static double Of(const std::vector<double>& sums, int first, int end) {
    return sums[end] - sums[first];
  }

  std::vector<double> forward_, backward_, activation_, input_, parameter_,
      gradient_, state_, version_;  // prefix sums, excluding the layer
  std::vector<double> output_;
  std::vector<int> blocks_;
  std::vector<bool> may_begin_;
};

// Checks what all planners require: layers, devices, positive bandwidths
// between all pairs, microbatches. Returns InvalidArgument with all problems;
// messages begin with `planner`.
absl::Status CheckPlannerWork(absl::string_view planner,
                              const PlannerWork& work);

// Returns the speed of the slowest device, which planners for equal devices
// use.
double SlowestSpeed(const PlannerWork& work);
double LeastMemoryBytes(const PlannerWork& work);

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_LAYER_SUMS_H_
