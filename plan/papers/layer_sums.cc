// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/layer_sums.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/problems.h"

namespace weir::plan {
namespace {

std::vector<double> SumsOf(const std::vector<PlannerLayer>& layers,
                           double PlannerLayer::*field) {
  std::vector<double> sums = {0};
  for (const PlannerLayer& layer : layers) {
    sums.push_back(sums.back() + layer.*field);
  }
  return sums;
}

}  // namespace

LayerSums::LayerSums(const std::vector<PlannerLayer>& layers)
    : forward_(SumsOf(layers, &PlannerLayer::forward_seconds)),
      backward_(SumsOf(layers, &PlannerLayer::backward_seconds)),
      activation_(SumsOf(layers, &PlannerLayer::activation_bytes)),
      input_(SumsOf(layers, &PlannerLayer::input_bytes)),
      parameter_(SumsOf(layers, &PlannerLayer::parameter_bytes)),
      gradient_(SumsOf(layers, &PlannerLayer::gradient_bytes)),
      state_(SumsOf(layers, &PlannerLayer::state_bytes)),
      version_(SumsOf(layers, &PlannerLayer::version_bytes)),
      blocks_({0}) {
  for (const PlannerLayer& layer : layers) {
    output_.push_back(layer.output_bytes);
    may_begin_.push_back(layer.is_block);
    blocks_.push_back(blocks_.back() + (layer.is_block ? 1 : 0));
  }
}

double LayerSums::memory_bytes(int first, int end, double in_flight,
                               double versions, StageKeeps keeps) const {
  const double activations = activation_bytes(first, end);
  double kept = in_flight * activations;
  if (keeps == StageKeeps::kInputs) {
    kept = std::min(kept, in_flight * input_bytes(first, end) + activations);
  } else if (keeps == StageKeeps::kSwapped) {
    kept = std::min(kept, 2 * activations);
  }
  return state_bytes(first, end) + (versions - 1) * version_bytes(first, end) +
         kept;
}

absl::Status CheckPlannerWork(absl::string_view planner,
                              const PlannerWork& work) {
  Problems problems(planner);
  if (work.layers.empty())
    problems.Add("layers", "are missing, expected at least one");
  if (work.devices.empty())
    problems.Add("devices", "are missing, expected at least one");
  if (work.num_microbatches < 1) {
    problems.Add("num_microbatches", absl::StrCat("is ", work.num_microbatches,
                                                  ", expected at least 1"));
  }
  bool is_square = work.bytes_per_second.size() == work.devices.size();
  for (size_t from = 0; from < work.bytes_per_second.size(); ++from) {
    const std::vector<double>& row = work.bytes_per_second[from];
    is_square = is_square && row.size() == work.devices.size();
    for (size_t to = 0; to < row.size(); ++to) {
      if (from != to && !(row[to] > 0)) {
        problems.Add(
            absl::StrCat("bytes_per_second[", from, "][", to, "]"),
            absl::StrCat("is ", row[to], ", expected a number above 0"));
      }
    }
  }
  if (!is_square) {
    problems.Add(
        "bytes_per_second",
        absl::StrCat("expected one row and one column for each of the ",
                     work.devices.size(), " devices"));
  }
  for (size_t i = 0; i < work.devices.size(); ++i) {
    problems.CheckPositive(absl::StrCat("devices[", i, "].speed"),
                           work.devices[i].speed);
  }
  return problems.ToStatus();
}

double SlowestSpeed(const PlannerWork& work) {
  double speed = work.devices.front().speed;
  for (const PlannerDevice& device : work.devices) {
    speed = std::min(speed, device.speed);
  }
  return speed;
}

double LeastMemoryBytes(const PlannerWork& work) {
  double bytes = work.devices.front().memory_bytes;
  for (const PlannerDevice& device : work.devices) {
    bytes = std::min(bytes, device.memory_bytes);
  }
  return bytes;
}

}  // namespace weir::plan
