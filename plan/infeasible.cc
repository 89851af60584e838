// SPDX-License-Identifier: Apache-2.0
#include "plan/infeasible.h"

#include <algorithm>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "scenarios/cluster.h"

namespace weir {
namespace {

constexpr int kMostTimesGpus = 64;

// Batches near the given one that some shape divides; none where some divides
// the given one.
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
                      "): nearest that are: ", nearest);
}

// Times the GPUs: the fewest whose smallest shape holds its weights, states and
// a microbatch. 0: not even the most.
int TimesGpus(const PlanRequest& request, double limit_bytes,
              const SearchOptions& options, int num_gpus) {
  for (int times = 1; times <= kMostTimesGpus; times *= 2) {
    PlanRequest larger = request;
    PlanSpace& space = *larger.mutable_space();
    space.clear_gpus();
    space.clear_data();
    space.add_gpus(static_cast<uint32_t>(num_gpus) * times);
    larger.mutable_scenario()->clear_num_nodes();
    space.clear_microbatch_size();
    space.add_microbatch_size(1);
    space.clear_recompute();
    space.add_recompute(RECOMPUTE_FULL);
    space.clear_orders();
    space.add_orders("tp-dp-pp");
    const auto made = MakeSpace("", larger);
    if (!made.ok()) continue;
    Crew crew(*made, options.num_processes);
    const auto figures = crew.OfShapes();
    if (!figures.ok()) return 0;
    for (const SearchFigures& one : *figures) {
      if (!one.absent() && one.problem().empty() &&
          one.bytes() <= limit_bytes) {
        return times;
      }
    }
  }
  return 0;
}

double SmallestDevice(const Space& space) {
  double bytes = space.base.device.memory_bytes().value();
  for (const DeviceProfile& other : space.base.other_devices) {
    bytes = std::min(bytes, other.memory_bytes().value());
  }
  return bytes;
}

}  // namespace

absl::Status NothingLegal(const Space& space,
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
      absl::StrCat(label, ": no candidate is legal; what refuses most:")};
  for (size_t i = 0; i < most.size() && i < 5; ++i) {
    lines.push_back(
        absl::StrCat(most[i].second, " (", most[i].first, " candidates)"));
  }
  return absl::FailedPreconditionError(absl::StrJoin(lines, "\n"));
}

absl::Status NothingFits(const PlanRequest& request, const Space& space,
                         const std::vector<SearchFigures>& shapes,
                         const std::vector<Seed>& seeds,
                         const SearchOptions& options, double limit_bytes,
                         Crew* crew) {
  Goal goal;
  goal.objective = OBJECTIVE_MEMORY;
  goal.limit_bytes = limit_bytes;
  goal.ignore_memory = true;
  BestFirst smallest(space, shapes, seeds, options, goal, crew);
  RETURN_IF_ERROR(smallest.Run());
  const std::vector<Found> best = smallest.Best();
  if (best.empty()) return NothingLegal(space, smallest.problems());
  std::string text =
      absl::StrCat(space.base.label, ": nothing fits ",
                   FormatBytes(limit_bytes), ": the smallest plan found needs ",
                   FormatBytes(best[0].bytes), ": ", best[0].text);
  const double device = SmallestDevice(space);
  if (best[0].bytes <= device) {
    absl::StrAppend(&text, "; raise --memory-limit to ",
                    absl::StrFormat("%.0f", best[0].bytes), " bytes");
  } else {
    absl::StrAppend(&text, "; a GPU of ", space.base.device.name(), " has ",
                    FormatBytes(device));
    const int times =
        TimesGpus(request, limit_bytes, options, best[0].num_gpus);
    if (times > 1) {
      absl::StrAppend(&text, "; weights, states and a microbatch need ",
                      times * best[0].num_gpus, " GPUs or more");
    } else if (request.space().sharding().empty()) {
      absl::StrAppend(&text, "; try --sharding optimizer,full");
    }
  }
  return absl::FailedPreconditionError(text);
}

}  // namespace weir
