// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/two_bw.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "scenarios/recomputation.h"

namespace weir::plan {
namespace {

constexpr double kRecomputeFactor = 4.0 / 3;
constexpr TwoBwExecution kExecutions[] = {TwoBwExecution::kNotPipelined,
                                          TwoBwExecution::kPipelined,
                                          TwoBwExecution::kRecomputed};

int NumBlocks(const PlannerWork& work) {
  return static_cast<int>(
      std::count_if(work.layers.begin(), work.layers.end(),
                    [](const PlannerLayer& layer) { return layer.is_block; }));
}

// Returns the first layer of each stage, followed by the number of layers.
// Layers that are not blocks belong to the first or the last stage.
std::vector<int> EqualCut(const PlannerWork& work, int depth) {
  const int per_stage = NumBlocks(work) / depth;
  std::vector<int> first = {0};
  int blocks = 0;
  for (size_t i = 0; i < work.layers.size(); ++i) {
    if (!work.layers[i].is_block) continue;
    if (blocks > 0 && blocks % per_stage == 0) {
      first.push_back(static_cast<int>(i));
    }
    ++blocks;
  }
  first.push_back(static_cast<int>(work.layers.size()));
  return first;
}

double Sum(const PlannerWork& work, int first, int end,
           double PlannerLayer::*field) {
  double sum = 0;
  for (int i = first; i < end; ++i) sum += work.layers[i].*field;
  return sum;
}

double Rate(const TwoBwProblem& request, int degree) {
  return degree < request.devices_per_server ? request.server_bytes_per_second
                                             : request.servers_bytes_per_second;
}

absl::Status Check(const TwoBwProblem& request) {
  Problems problems("2bw");
  if (request.works.empty())
    problems.Add("works", "are missing, expected at least one");
  for (size_t i = 0; i < request.works.size(); ++i) {
    const std::string name = absl::StrCat("works[", i, "]");
    problems.CheckRange(name + ".microbatch_size",
                        request.works[i].microbatch_size, 1, 1e9);
    if (NumBlocks(request.works[i]) == 0) {
      problems.Add(name + ".layers", "have no block, expected at least one");
    }
  }
  problems.CheckRange("num_devices", request.num_devices, 1, 1e6);
  problems.CheckRange("devices_per_server", request.devices_per_server, 1, 1e6);
  problems.CheckRange("global_batch_size", request.global_batch_size, 1, 1e9);
  return problems.ToStatus();
}

// Visits every configuration that divides the batch and the blocks.
template <typename Visit>
void ForEachConfiguration(const TwoBwProblem& request, Visit visit) {
  for (int width = 1; width <= request.num_devices; ++width) {
    for (int depth = 1; depth <= request.num_devices / width; ++depth) {
      for (const PlannerWork& work : request.works) {
        const int64_t at_once = int64_t{width} * depth * work.microbatch_size;
        if (NumBlocks(work) % depth != 0 ||
            request.global_batch_size % at_once != 0) {
          continue;
        }
        TwoBwPlan plan;
        plan.width = width;
        plan.depth = depth;
        plan.microbatch_size = work.microbatch_size;
        plan.num_microbatches =
            request.global_batch_size / (width * work.microbatch_size);
        for (TwoBwExecution execution : kExecutions) {
          plan.execution = execution;
          plan.memory_bytes = TwoBwMemoryBytes(work, depth, execution);
          plan.microbatch_seconds = TwoBwMicrobatchSeconds(
              request, work, width, depth, plan.num_microbatches, execution);
          plan.samples_per_second =
              width * plan.microbatch_size / plan.microbatch_seconds;
          visit(plan);
        }
      }
    }
  }
}

// `is_sayable`: considers only what a schedule of weir can run.
absl::StatusOr<TwoBwPlan> Search(const TwoBwProblem& request, bool is_sayable) {
  RETURN_IF_ERROR(Check(request));
  std::optional<TwoBwPlan> best;
  double least_memory = std::numeric_limits<double>::infinity();
  ForEachConfiguration(request, [&](const TwoBwPlan& plan) {
    if (is_sayable && plan.depth > 1 &&
        plan.execution == TwoBwExecution::kNotPipelined) {
      return;
    }
    least_memory = std::min(least_memory, plan.memory_bytes);
    if (plan.memory_bytes > request.memory_bytes) return;
    if (!best.has_value() ||
        std::make_tuple(-plan.samples_per_second, plan.memory_bytes) <
            std::make_tuple(-best->samples_per_second, best->memory_bytes)) {
      best = plan;
    }
  });
  if (best.has_value()) return *best;
  return absl::NotFoundError(
      std::isinf(least_memory)
          ? absl::StrCat(
                "2bw: no width, depth and microbatch size divide a batch of ",
                request.global_batch_size)
          : absl::StrCat(
                "2bw: nothing fits ", FormatBytes(request.memory_bytes),
                ": the smallest plan needs ", FormatBytes(least_memory)));
}

}  // namespace

const char* Name(TwoBwExecution execution) {
  switch (execution) {
    case TwoBwExecution::kNotPipelined:
      return "not pipelined";
    case TwoBwExecution::kPipelined:
      return "pipelined";
    default:
      return "pipelined, recomputed";
  }
}

int Coalesced(const TwoBwPlan& plan) {
  return plan.num_microbatches / plan.depth;
}

double TwoBwMicrobatchSeconds(const TwoBwProblem& request,
                              const PlannerWork& work, int width, int depth,
                              int num_microbatches, TwoBwExecution execution) {
  const std::vector<int> first = EqualCut(work, depth);
  double sum = 0, slowest = 0;
  for (int stage = 0; stage < depth; ++stage) {
    const int begin = first[stage], end = first[stage + 1];
    double compute = Sum(work, begin, end, &PlannerLayer::forward_seconds) +
                     Sum(work, begin, end, &PlannerLayer::backward_seconds);
    if (execution == TwoBwExecution::kRecomputed) compute *= kRecomputeFactor;
    double transferred = 0;
    if (stage > 0) transferred += work.layers[begin - 1].output_bytes;
    if (stage + 1 < depth) transferred += work.layers[end - 1].output_bytes;
    const double reduced = 2.0 * (width - 1) / width *
                           Sum(work, begin, end, &PlannerLayer::gradient_bytes);
    const double seconds =
        std::max(compute + 2 * transferred / Rate(request, depth),
                 reduced / Rate(request, width) / num_microbatches);
    sum += seconds;
    slowest = std::max(slowest, seconds);
  }
  return execution == TwoBwExecution::kNotPipelined ? sum : slowest;
}

double TwoBwMemoryBytes(const PlannerWork& work, int depth,
                        TwoBwExecution execution) {
  const std::vector<int> first = EqualCut(work, depth);
  double most = 0;
  for (int stage = 0; stage < depth; ++stage) {
    const int begin = first[stage], end = first[stage + 1];
    double bytes = Sum(work, begin, end, &PlannerLayer::state_bytes);
    const double activations =
        Sum(work, begin, end, &PlannerLayer::activation_bytes);
    const double inputs = Sum(work, begin, end, &PlannerLayer::input_bytes);
    if (execution == TwoBwExecution::kNotPipelined) {
      bytes += activations;
    } else {
      bytes +=
          Sum(work, begin, end, &PlannerLayer::version_bytes) + depth * inputs +
          (execution == TwoBwExecution::kPipelined ? depth : 1) * activations;
    }
    most = std::max(most, bytes);
  }
  return most;
}

absl::StatusOr<TwoBwPlan> SearchTwoBw(const TwoBwProblem& request) {
  return Search(request, /*is_sayable=*/false);
}

namespace {

absl::StatusOr<TwoBwProblem> ProblemOf(const scenarios::ResolvedScenario& given,
                                       const PlannerLinks& links) {
  scenarios::ResolvedScenario scenario = given;
  scenarios::SetRecompute(RECOMPUTE_NONE, scenario.scenario.mutable_training());
  Batch& batch = *scenario.scenario.mutable_batch();
  TwoBwProblem request;
  request.global_batch_size = static_cast<int>(batch.global_batch_size());
  for (int size = 1; size <= request.global_batch_size; size *= 2) {
    if (request.global_batch_size % size != 0) break;
    batch.set_microbatch_size(size);
    ASSIGN_OR_RETURN(request.works.emplace_back(),
                     PlannerWorkOf(scenario, links));
  }
  const PlannerWork& work = request.works.front();
  request.num_devices = static_cast<int>(work.devices.size());
  request.server_bytes_per_second = work.server_bytes_per_second;
  request.servers_bytes_per_second = work.servers_bytes_per_second;
  request.memory_bytes = std::numeric_limits<double>::infinity();
  std::map<int, int> sizes;
  for (const PlannerDevice& device : work.devices) {
    ++sizes[device.server];
    request.memory_bytes = std::min(request.memory_bytes, device.memory_bytes);
  }
  request.devices_per_server = request.num_devices;
  for (const auto& [server, size] : sizes) {
    request.devices_per_server = std::min(request.devices_per_server, size);
  }
  // A single server has no bandwidth between servers.
  if (sizes.size() == 1) {
    request.servers_bytes_per_second = request.server_bytes_per_second;
  }
  if (request.devices_per_server == 1) {
    request.server_bytes_per_second = request.servers_bytes_per_second;
  }
  return request;
}

}  // namespace

absl::StatusOr<PlannedPipeline> PlanTwoBw(
    const scenarios::ResolvedScenario& given, const PlannerLinks& links) {
  ASSIGN_OR_RETURN(const TwoBwProblem request, ProblemOf(given, links));
  ASSIGN_OR_RETURN(const TwoBwPlan found, Search(request, true));
  const std::vector<int> first = EqualCut(request.works.front(), found.depth);
  PlannedPipeline plan;
  plan.algorithm = "pipedream-2bw";
  plan.schedule = found.execution == TwoBwExecution::kNotPipelined
                      ? "1f1b"
                      : "pipedream-2bw";
  plan.objective_seconds = found.microbatch_seconds;
  plan.objectives_per_batch = found.num_microbatches;
  plan.microbatch_size = found.microbatch_size;
  plan.num_microbatches = found.num_microbatches;
  plan.chooses_recompute = true;
  for (int stage = 0; stage < found.depth; ++stage) {
    PlannedStage& planned = plan.stages.emplace_back();
    planned.first_layer = first[stage];
    planned.end_layer = first[stage + 1];
    planned.recompute = found.execution == TwoBwExecution::kRecomputed;
    // Replicas are adjacent, so that their all-reduce stays inside a server.
    for (int replica = 0; replica < found.width; ++replica) {
      planned.devices.push_back(stage * found.width + replica);
    }
  }
  plan.notes.push_back(absl::StrFormat(
      "width %d, depth %d, microbatch %d, g %d, %s: %.4g samples/s, %.4g GB",
      found.width, found.depth, found.microbatch_size, Coalesced(found),
      Name(found.execution), found.samples_per_second,
      found.memory_bytes / 1e9));
  return plan;
}

}  // namespace weir::plan
