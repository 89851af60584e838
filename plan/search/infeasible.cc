// SPDX-License-Identifier: Apache-2.0
#include "plan/search/infeasible.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/interrupt.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "scenarios/cluster/cluster.h"

namespace weir::plan {
namespace {

constexpr uint32_t kMostTimesNodes = 64;
constexpr uint32_t kMostNodesTried = 64;
// Plans are searched for on up to this many more nodes, one by one, then on 2,
// 4 and 8 times as many.
constexpr uint32_t kMostNodesAdded = 8;

// Returns a message with the batch sizes nearest to the given one that some
// shape divides; empty if some shape divides the given one.
std::string NearestBatches(const Space& space) {
  const int batch =
      static_cast<int>(space.base.scenario.batch().global_batch_size());
  int below = 0, above = std::numeric_limits<int>::max();
  std::set<int> shares;
  for (const Shape& shape : space.shapes) {
    const int share = shape.data * shape.microbatch_size;
    if (batch % share == 0) return "";
    shares.insert(share);
    below = std::max(below, batch / share * share);
    above = std::min(above, (batch / share + 1) * share);
  }
  std::vector<int> few(shares.begin(), shares.end());
  const bool more = few.size() > 4;
  if (more) few.resize(4);
  const std::string nearest =
      below > 0 ? absl::StrCat(below, " and ", above) : absl::StrCat(above);
  return absl::StrCat("global batch ", batch,
                      " is not divisible by data x microbatch size of any "
                      "layout (",
                      absl::StrJoin(few, ", "), more ? ", ..." : "",
                      "): closest divisible batches: ", nearest);
}

// Returns the request on `num_gpus` GPUs that needs the least memory: one
// microbatch of one sample with full recomputation.
PlanRequest OnGpus(const PlanRequest& request, uint32_t num_gpus) {
  PlanRequest larger = request;
  PlanSpace& space = *larger.mutable_space();
  space.clear_data();
  space.clear_gpus();
  space.add_gpus(num_gpus);
  larger.mutable_scenario()->clear_num_nodes();
  space.clear_microbatch_size();
  space.add_microbatch_size(1);
  space.clear_recompute();
  space.clear_partial_recompute();
  space.add_recompute(RECOMPUTE_FULL);
  space.clear_orders();
  space.add_orders("tp-dp-pp");
  return larger;
}

// Returns true if some layout on `num_gpus` GPUs holds its weights, its states
// and one fully recomputed microbatch on every GPU, which is necessary for any
// plan.
bool MayFit(const PlanRequest& request, const SearchOptions& options,
            uint32_t num_gpus) {
  const PlanRequest larger = OnGpus(request, num_gpus);
  const auto made = MakeSpace("", larger);
  if (!made.ok()) return false;
  SearchWorkers workers(*made, options);
  const auto estimates = workers.OfShapes();
  return estimates.ok() &&
         std::any_of(estimates->begin(), estimates->end(),
                     [&](const SearchEstimate& one) {
                       return !one.absent() && one.problem().empty() &&
                              one.bytes() <= made->memory_limit_bytes;
                     });
}

// Returns a remark on memory that is estimated without moving states or
// activations to the host, although plans may do so.
absl::string_view WithoutOffloading(const Space& space) {
  const bool offloads = std::any_of(
      space.variants.begin(), space.variants.end(), [](const Variant& variant) {
        return variant.optimizer_offload > 0 || variant.offloaded_fraction > 0;
      });
  return offloads ? " without offloading" : "";
}

struct EnoughNodes {
  uint32_t nodes = 0;  // 0: even the most tried are too few
  // Whether every smaller number was tried, not only powers of two times the
  // first.
  bool is_fewest = false;
};

// Returns the fewest nodes, from `first` on, on which a plan may fit. Layouts
// need divisors, so more nodes are not always better: numbers are tried one by
// one unless there are too many.
EnoughNodes FindEnoughNodes(const PlanRequest& request,
                            const SearchOptions& options, uint32_t first,
                            uint32_t gpus_each) {
  const auto may_fit = [&](uint32_t nodes) {
    return MayFit(request, options, nodes * gpus_each);
  };
  const uint32_t most = first * kMostTimesNodes;
  uint32_t enough = first;
  while (enough <= most && !may_fit(enough)) enough *= 2;
  const bool found = enough <= most;
  if ((found ? enough : most) - first > kMostNodesTried) {
    return {found ? enough : 0, false};
  }
  for (uint32_t nodes = first + 1; nodes < std::min(enough, most); ++nodes) {
    if (MustEnd(options)) return {found ? enough : 0, false};
    if (may_fit(nodes)) return {nodes, true};
  }
  return {found ? enough : 0, true};
}

// Returns "; ..." with a sufficient number of GPUs. Empty if the current ones
// suffice by this estimate, or if the cluster has different nodes and cannot
// grow.
std::string EnoughGpusText(const PlanRequest& request, const Space& space,
                           const SearchOptions& options, int num_gpus) {
  const Cluster& cluster = space.base.cluster;
  if (cluster.groups_size() != 1) return "";
  const uint32_t each = cluster.groups(0).node().num_gpus();
  const uint32_t has = cluster.groups(0).count();
  const auto used = static_cast<uint32_t>(num_gpus);
  if (MayFit(request, options, used)) return "";
  const EnoughNodes enough = FindEnoughNodes(
      request, options, used < has * each ? has : has + 1, each);
  if (enough.nodes == 0) return "";
  return absl::StrCat("; weights, optimizer states and one microbatch fit",
                      WithoutOffloading(space), " on ", enough.nodes * each,
                      " GPUs (--nodes ", enough.nodes,
                      enough.is_fewest
                          ? ") and on no fewer nodes"
                          : "; not all smaller numbers of nodes were tried)");
}

// Returns true if a plan with the tensor parallelism, chunks and schedule of
// `like` fits on `num_gpus` GPUs.
bool FitsLike(const PlanRequest& request, const Scenario& like,
              const SearchOptions& options, uint32_t num_gpus) {
  PlanRequest larger = OnGpus(request, num_gpus);
  PlanSpace& space = *larger.mutable_space();
  space.clear_tensor();
  space.add_tensor(std::max(like.parallelism().tensor(), 1u));
  space.clear_chunks();
  space.add_chunks(std::max(like.parallelism().chunks(), 1u));
  space.clear_schedules();
  space.add_schedules(like.schedule());
  const auto made = MakeSpace("", larger);
  if (!made.ok()) return false;
  SearchOptions silent = options;
  silent.progress = nullptr;
  SearchWorkers workers(*made, silent);
  const auto estimates = workers.OfShapes();
  if (!estimates.ok()) return false;
  Goal goal;
  goal.objective = OBJECTIVE_MEMORY;
  goal.limit_bytes = made->memory_limit_bytes;
  const std::vector<Seed> no_seeds;
  BestFirst search(*made, *estimates, no_seeds, silent, goal, &workers);
  return search.Run().ok() && !search.Best().empty();
}

// Returns "; ..." with a number of nodes on which a plan fits; empty if none
// was found. A search is needed if the lower bound on memory already fits.
std::string FittingNodesText(const PlanRequest& request, const Space& space,
                             const SearchOptions& options,
                             const RankedPlan& smallest) {
  const Cluster& cluster = space.base.cluster;
  if (cluster.groups_size() != 1) return "";
  const uint32_t each = cluster.groups(0).node().num_gpus();
  const uint32_t used =
      (static_cast<uint32_t>(smallest.num_gpus) + each - 1) / each;
  std::vector<uint32_t> numbers;
  for (uint32_t n = 1; n <= kMostNodesAdded; ++n) numbers.push_back(used + n);
  for (const uint32_t times : {2u, 4u, 8u}) {
    if (used * times > numbers.back()) numbers.push_back(used * times);
  }
  for (const uint32_t nodes : numbers) {
    if (MustEnd(options)) return "";
    if (FitsLike(request, smallest.scenario, options, nodes * each)) {
      return absl::StrCat("; a plan fits on ", nodes * each, " GPUs (--nodes ",
                          nodes, ")");
    }
  }
  return "";
}

// Returns true if the request leaves no sharding to search.
bool ShardsNothing(const Space& space) {
  return std::all_of(
      space.shapes.begin(), space.shapes.end(),
      [](const Shape& shape) { return shape.sharding == Sharding::kNone; });
}

// Returns the middle of the time that is left to the search.
std::chrono::steady_clock::time_point HalfOfTime(const SearchOptions& options) {
  const auto now = std::chrono::steady_clock::now();
  if (options.deadline == std::chrono::steady_clock::time_point::max() ||
      options.deadline < now) {
    return options.deadline;
  }
  return now + (options.deadline - now) / 2;
}

double SmallestDevice(const Space& space) {
  double bytes = space.base.device.memory_bytes().value();
  for (const DeviceProfile& other : space.base.other_devices) {
    bytes = std::min(bytes, other.memory_bytes().value());
  }
  return bytes;
}

}  // namespace

absl::Status NothingValid(const Space& space,
                          const std::map<std::string, uint64_t>& problems) {
  const std::string& label = space.base.label;
  const std::string batches = NearestBatches(space);
  if (!batches.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(label, ": ", batches));
  }
  std::vector<std::pair<uint64_t, std::string>> most;
  for (const auto& [problem, count] : problems)
    most.push_back({count, problem});
  std::sort(most.rbegin(), most.rend());
  std::vector<std::string> lines = {
      absl::StrCat(label, ": no candidate is valid; most frequent reasons:")};
  for (size_t i = 0; i < most.size() && i < 5; ++i) {
    lines.push_back(
        absl::StrCat(most[i].second, " (", most[i].first, " candidates)"));
  }
  return absl::FailedPreconditionError(absl::StrJoin(lines, "\n"));
}

absl::Status NothingFits(const PlanRequest& request, const Space& space,
                         const std::vector<SearchEstimate>& shapes,
                         const std::vector<Seed>& seeds,
                         const SearchOptions& options, SearchWorkers* workers) {
  const double limit_bytes = space.memory_limit_bytes;
  Goal goal;
  goal.objective = OBJECTIVE_MEMORY;
  goal.limit_bytes = limit_bytes;
  goal.ignore_memory = true;
  // Leaves time to find a sufficient number of GPUs.
  SearchOptions half = options;
  half.deadline = HalfOfTime(options);
  BestFirst smallest(space, shapes, seeds, half, goal, workers);
  absl::Status run = smallest.Run();
  // That nothing fits is known even if the time is over.
  if (!run.ok() && (!absl::IsCancelled(run) || Interrupted())) return run;
  const std::vector<RankedPlan> best = smallest.Best();
  if (best.empty() && run.ok()) return NothingValid(space, smallest.problems());
  if (best.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        space.base.label, ": nothing fits ", FormatBytes(limit_bytes),
        "; --time-limit ended the search for the smallest plan"));
  }
  std::string text = absl::StrCat(
      space.base.label, ": nothing fits ", FormatBytes(limit_bytes),
      ": the smallest plan found", WithoutOffloading(space), " needs ",
      FormatBytes(best[0].bytes), ": ", best[0].text);
  const double device = SmallestDevice(space);
  if (best[0].bytes <= device * space.memory_part) {
    constexpr double kTenthOfGib = (1 << 30) / 10.0;
    absl::StrAppend(
        &text, "; raise --memory-limit to ",
        absl::StrFormat("%.1fGiB",
                        std::ceil(best[0].bytes / kTenthOfGib) / 10));
  } else if (best[0].bytes <= device) {
    absl::StrAppend(&text, "; a GPU of ", space.base.device.name(), " has ",
                    FormatBytes(device), ", of which --memory-margin keeps ",
                    FormatPercent(1 - space.memory_part), " free");
    const std::string nodes =
        FittingNodesText(request, space, options, best[0]);
    absl::StrAppend(
        &text, nodes.empty()
                   ? EnoughGpusText(request, space, options, best[0].num_gpus)
                   : nodes);
  } else {
    absl::StrAppend(&text, "; a GPU of ", space.base.device.name(), " has ",
                    FormatBytes(device));
    const std::string gpus =
        EnoughGpusText(request, space, options, best[0].num_gpus);
    absl::StrAppend(&text, gpus);
    if (gpus.empty()) {
      absl::StrAppend(&text,
                      ShardsNothing(space)
                          ? "; try --sharding optimizer,full"
                          : FittingNodesText(request, space, options, best[0]));
    }
  }
  return absl::FailedPreconditionError(text);
}

}  // namespace weir::plan
