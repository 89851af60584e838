// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/host_offload.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/infinity.h"
#include "base/status_macros.h"

namespace weir::sim {
namespace {

// Bytes that a GPU holds while a layer runs, besides the temporary ones of the
// layer.
std::vector<double> HeldBytes(const std::vector<const models::LayerWork*>& all,
                              const std::vector<int>& blocks,
                              const std::vector<int>& ends) {
  const auto n = static_cast<int>(ends.size());
  std::vector<double> held;
  double resident = 0;  // of layers that stay
  int block = 0;        // blocks that have begun
  for (size_t l = 0; l < all.size(); ++l) {
    const bool is_block =
        block < std::ssize(blocks) && blocks[block] == static_cast<int>(l);
    if (is_block) ++block;
    if (!is_block || block > n) resident += all[l]->stash_bytes;
    double bytes = resident;
    for (int i = 0; i < std::min(block, n); ++i) {
      if (ends[i] >= block - 1) bytes += all[blocks[i]]->stash_bytes;
    }
    held.push_back(bytes);
  }
  return held;
}

// Returns the rate of the slowest GPU's copies while all GPUs copy.
absl::StatusOr<double> CopyBytesPerSecond(
    const scenarios::ResolvedScenario& scenario,
    const scenarios::Network& network) {
  double rate = kInfinity;
  std::map<int32_t, int> users;  // by link
  const std::vector<int>& gpus = scenario.placement.gpus;
  for (const int gpu : gpus) {
    for (const int32_t link : network.RouteToHost(gpu).links) ++users[link];
  }
  for (const int gpu : gpus) {
    const scenarios::Route route = network.RouteToHost(gpu);
    if (route.links.empty()) {
      if (!scenario.device.has_host_bytes_per_second()) {
        return absl::InvalidArgumentError(absl::StrCat(
            scenario.label, ": training offloads to the host, but GPU ", gpu,
            " has no link to it, expected pcie in the node of the cluster, or "
            "host_bytes_per_second in the device profile"));
      }
      rate = std::min(rate, scenario.device.host_bytes_per_second().value());
    }
    for (const int32_t link : route.links) {
      rate =
          std::min(rate, network.links()[link].bytes_per_second / users[link]);
    }
  }
  return rate;
}

void AddExposed(double copy_bytes_per_second, const Runtime& runtime,
                StageCosts* stage) {
  HostOffload& offload = stage->offload;
  offload.copy_bytes_per_second = copy_bytes_per_second;
  double forward = 0, backward = 0;
  for (const HostOffload::Window& window : offload.windows) {
    const double copy = window.bytes / copy_bytes_per_second;
    forward += std::max(copy - window.forward_seconds, 0.0);
    backward += std::max(copy - window.backward_seconds, 0.0);
  }
  stage->seconds.forward += forward;
  stage->seconds.backward += backward;
  if (auto& parts = stage->seconds.backward_parts; parts.has_value()) {
    parts->input += backward;
  }
  if (offload.host_step_bytes == 0) return;
  StageStep& step = stage->step;
  step.copy_seconds = offload.copied_optimizer_bytes / copy_bytes_per_second;
  step.host_seconds = offload.host_step_bytes /
                      runtime.host_optimizer_bytes_per_second().value();
  step.seconds += step.copy_seconds + step.host_seconds;
}

}  // namespace

std::vector<int> OffloadWindowEnds(int num_blocks, int n) {
  std::vector<int> ends;
  for (int i = 0; i < n; ++i) {
    ends.push_back(num_blocks / n * (i + 1) - 1 +
                   std::min(i + 1, num_blocks % n));
  }
  return ends;
}

void OffloadActivations(const models::LayerList& layers, int first, int last,
                        int num_layers, LayerPrices* prices,
                        StageCosts* stage) {
  if (num_layers == 0) return;
  std::vector<const models::LayerWork*> all;
  std::vector<int> blocks;
  for (int l = first; l < last; ++l) {
    all.push_back(&layers[l]);
    if (layers[l].role == models::LayerRole::kBlock ||
        layers[l].role == models::LayerRole::kMeasured) {
      blocks.push_back(l - first);
    }
  }
  const auto num_blocks = static_cast<int>(blocks.size());
  const int n = std::min(num_layers, num_blocks - 1);
  if (n < 1) return;
  const std::vector<int> ends = OffloadWindowEnds(num_blocks, n);
  const auto backward_of = [&](const models::LayerWork& layer) {
    const LayerSeconds& seconds = prices->Of(layer);
    return seconds.backward_input + seconds.backward_weight + seconds.backward;
  };
  for (int l = 0; l <= blocks[0]; ++l) {
    stage->offload.forward_before_seconds += prices->Of(*all[l]).forward;
  }
  for (int l = blocks.back() + 1; l < std::ssize(all); ++l) {
    stage->offload.backward_before_seconds += backward_of(*all[l]);
  }
  double offloaded = 0;
  // The copy of block 0 begins after its forward and must be back before its
  // backward.
  int begin = 1;
  for (int i = 0; i < n; ++i) {
    HostOffload::Window window;
    window.bytes = all[blocks[i]]->stash_bytes;
    for (; begin <= ends[i]; ++begin) {
      const models::LayerWork& block = *all[blocks[begin]];
      window.forward_seconds += prices->Of(block).forward;
      window.backward_seconds += backward_of(block);
    }
    stage->offload.windows.push_back(window);
    offloaded += window.bytes;
  }
  StageActivations& bytes = stage->activations;
  bytes.saved_bytes -= offloaded;
  const std::vector<double> held = HeldBytes(all, blocks, ends);
  double forward = 0, backward = 0, kept = 0;
  for (size_t l = all.size(); l-- > 0;) {
    forward = std::max(forward, held[l] + all[l]->forward_scratch_bytes);
    backward =
        std::max(backward, held[l] + kept + all[l]->backward_scratch_bytes);
    kept += all[l]->backward_kept_bytes;
  }
  bytes.forward_scratch_bytes = std::max(forward - bytes.saved_bytes, 0.0);
  bytes.backward_scratch_bytes = std::max(backward - bytes.saved_bytes, 0.0);
}

void OffloadOptimizer(double fraction, double stepped_part, double step_bytes,
                      StageCosts* stage) {
  stage->offload.host_state_bytes =
      fraction * stepped_part * stage->parameters.optimizer_state_bytes;
  stage->parameters.optimizer_state_bytes *= 1 - fraction;
  stage->offload.copied_optimizer_bytes =
      fraction * stepped_part *
      (stage->parameters.gradient_bytes + stage->parameters.weight_bytes);
  stage->offload.host_step_bytes = fraction * step_bytes;
}

absl::Status ApplyHostOffload(const scenarios::ResolvedScenario& scenario,
                              const scenarios::Network& network,
                              const schedules::Schedule& schedule,
                              Costs* costs) {
  const Training& training = scenario.scenario.training();
  const bool activations = training.cpu_offloading_num_layers() > 0;
  if (!activations && training.optimizer_offload_fraction() == 0) {
    return absl::OkStatus();
  }
  if (schedule.forward_only) return absl::OkStatus();
  for (const auto& actions : schedule.rank_actions) {
    const bool splits = std::any_of(
        actions.begin(), actions.end(), [](const schedules::Action& action) {
          return action.op == schedules::Op::kBackwardWeight;
        });
    if (!activations || !splits) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        scenario.label, ": training.cpu_offloading_num_layers is ",
        training.cpu_offloading_num_layers(), ", expected 0: ", schedule.name,
        " splits backward passes into I and W"));
  }
  ASSIGN_OR_RETURN(const double rate, CopyBytesPerSecond(scenario, network));
  const Runtime& runtime = scenario.runtime;
  for (StageCosts& stage : costs->stages) AddExposed(rate, runtime, &stage);
  for (DeviceCosts& other : costs->other_devices) {
    for (StageCosts& stage : other.stages) AddExposed(rate, runtime, &stage);
  }
  return absl::OkStatus();
}

}  // namespace weir::sim
