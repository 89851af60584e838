// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/dapple_length.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace weir::plan {
namespace {

int NumServers(const std::vector<int>& counts) {
  return static_cast<int>(std::count_if(counts.begin(), counts.end(),
                                        [](int count) { return count > 0; }));
}

int NumDevices(const std::vector<int>& counts) {
  return std::accumulate(counts.begin(), counts.end(), 0);
}

std::vector<int> CountsOf(const Servers& servers,
                          const std::vector<int>& devices) {
  std::vector<int> counts;
  for (const std::vector<int>& server : servers.devices) {
    counts.push_back(static_cast<int>(
        std::count_if(devices.begin(), devices.end(), [&](int device) {
          return std::binary_search(server.begin(), server.end(), device);
        })));
  }
  return counts;
}

// Takes up to `count` devices from the servers that `may_take` accepts, in
// order. Returns the number not taken.
template <class MayTake>
int TakeDevices(const std::vector<int>& sizes, const std::vector<int>& used,
                MayTake may_take, int count, std::vector<int>* taken) {
  for (size_t i = 0; i < sizes.size() && count > 0; ++i) {
    if (!may_take(i)) continue;
    const int some = std::min(count, sizes[i] - used[i] - (*taken)[i]);
    (*taken)[i] += some;
    count -= some;
  }
  return count;
}

}  // namespace

Servers ServersOf(const PlannerWork& work) {
  std::map<int, std::vector<int>> devices;
  for (size_t i = 0; i < work.devices.size(); ++i) {
    devices[work.devices[i].server].push_back(static_cast<int>(i));
  }
  Servers servers;
  for (const auto& [server, list] : devices) {
    servers.devices.push_back(list);
    servers.sizes.push_back(static_cast<int>(list.size()));
  }
  return servers;
}

DappleOptions WithRates(const PlannerWork& work, DappleOptions options) {
  if (options.between_bytes_per_second == 0) {
    options.between_bytes_per_second = work.servers_bytes_per_second;
  }
  if (options.between_all_reduce_bytes_per_second == 0) {
    options.between_all_reduce_bytes_per_second =
        options.between_bytes_per_second;
  }
  if (options.inside_bytes_per_second == 0) {
    options.inside_bytes_per_second = work.server_bytes_per_second;
  }
  return options;
}

double DappleTransferSeconds(const std::vector<int>& from,
                             const std::vector<int>& to, double bytes,
                             const DappleOptions& options) {
  if (NumServers(to) > 1) {
    return bytes / options.between_all_reduce_bytes_per_second;
  }
  const size_t server = std::max_element(to.begin(), to.end()) - to.begin();
  const double senders = NumDevices(from), elsewhere = senders - from[server];
  if (elsewhere == 0) return bytes / options.inside_bytes_per_second;
  return bytes * elsewhere / senders / options.between_bytes_per_second;
}

double DappleAllReduceSeconds(int num_devices, int num_servers, double bytes,
                              const DappleOptions& options) {
  const int n = num_devices;
  if (n == 1) return 0;
  const double sent = 2 * bytes * (n - 1) / n;
  if (num_servers > 1) {
    return sent / options.between_all_reduce_bytes_per_second;
  }
  const int num_pairs = n / 2;
  return sent / options.inside_bytes_per_second / num_pairs;
}

double DappleTransferSeconds(const PlannerWork& work,
                             const std::vector<int>& from,
                             const std::vector<int>& to, double bytes,
                             const DappleOptions& options) {
  const Servers servers = ServersOf(work);
  return DappleTransferSeconds(CountsOf(servers, from), CountsOf(servers, to),
                               bytes, options);
}

double DappleAllReduceSeconds(const PlannerWork& work,
                              const std::vector<int>& devices, double bytes,
                              const DappleOptions& options) {
  const std::vector<int> counts = CountsOf(ServersOf(work), devices);
  return DappleAllReduceSeconds(NumDevices(counts), NumServers(counts), bytes,
                                options);
}

double DappleSeconds(const PlannerWork& work,
                     const std::vector<PlannedStage>& stages, int spread,
                     const DappleOptions& options) {
  const LayerSums sums(work.layers);
  const Servers servers = ServersOf(work);
  std::vector<PlacedStage> placed;
  for (const PlannedStage& stage : stages) {
    placed.push_back({stage.first_layer, stage.end_layer,
                      static_cast<int>(stage.devices.size()) / spread,
                      CountsOf(servers, stage.devices)});
  }
  const DappleLength length(work, sums, spread, options);
  PlacedStages pipeline;
  for (PlacedStage& stage : placed) {
    length.Place(pipeline, &stage);
    length.Price(&stage);
    pipeline.push_back(&stage);
  }
  return length.Seconds(pipeline);
}

std::vector<std::vector<int>> DapplePlacements(const std::vector<int>& sizes,
                                               const std::vector<int>& used,
                                               int count) {
  std::vector<std::vector<int>> placements;
  if (NumDevices(sizes) - NumDevices(used) < count) return placements;
  const auto all = [](size_t) { return true; };
  const auto fresh = [&](size_t i) { return used[i] == 0; };
  const auto touched = [&](size_t i) { return used[i] > 0; };
  const auto add = [&](const std::vector<int>& taken) {
    if (std::find(placements.begin(), placements.end(), taken) ==
        placements.end()) {
      placements.push_back(taken);
    }
  };
  const std::vector<int> none(sizes.size());
  std::vector<int> taken = none;
  TakeDevices(sizes, used, all, TakeDevices(sizes, used, fresh, count, &taken),
              &taken);
  add(taken);
  taken = none;
  TakeDevices(sizes, used, all,
              TakeDevices(sizes, used, touched, count, &taken), &taken);
  add(taken);
  // Takes devices in turn from every touched server; from all if none is
  // touched or those are full.
  taken = none;
  bool only_touched = NumDevices(used) > 0;
  for (int left = count; left > 0;) {
    const int before = left;
    for (size_t i = 0; i < sizes.size() && left > 0; ++i) {
      if ((only_touched && used[i] == 0) || used[i] + taken[i] == sizes[i]) {
        continue;
      }
      ++taken[i];
      --left;
    }
    if (left == before) only_touched = false;
  }
  add(taken);
  return placements;
}

double DapplePivotSeconds(const std::vector<double>& forward,
                          const std::vector<double>& backward,
                          const std::vector<double>& all_reduce,
                          int num_microbatches) {
  const int n = static_cast<int>(forward.size());
  double before = 0, longest = -1;
  int pivot = 0;
  for (int s = n - 1; s >= 0; --s) {
    double length = (num_microbatches - 1) * (forward[s] + backward[s]);
    for (int i = 0; i <= s; ++i) length += forward[i] + backward[i];
    if (length > longest) {
      longest = length;
      pivot = s;
    }
  }
  for (int i = 0; i <= pivot; ++i) before += forward[i];
  before += (num_microbatches - 1) * (forward[pivot] + backward[pivot]);
  double ending = 0, left = 0;
  for (int s = pivot; s >= 0; --s) {
    left += backward[s];
    ending = std::max(ending, all_reduce[s] + left);
  }
  left = 0;
  for (int s = pivot + 1; s < n; ++s) {
    ending = std::max(ending, all_reduce[s] + left);
    left -= backward[s];
  }
  return before + ending;
}

DappleLength::DappleLength(const PlannerWork& work, const LayerSums& sums,
                           int spread, const DappleOptions& options)
    : sums_(sums),
      options_(options),
      speed_(SlowestSpeed(work)),
      spread_(spread),
      num_steps_(work.num_microbatches / spread) {}

void DappleLength::Place(const PlacedStages& before, PlacedStage* stage) const {
  stage->num_devices = NumDevices(stage->counts);
  stage->num_servers = NumServers(stage->counts);
  stage->transfer_seconds =
      before.empty()
          ? 0
          : DappleTransferSeconds(before.back()->counts, stage->counts,
                                  sums_.cut_bytes(stage->first), options_);
}

void DappleLength::Price(PlacedStage* stage) const {
  stage->seconds =
      sums_.seconds(stage->first, stage->end) / stage->units / speed_;
  stage->all_reduce_seconds = DappleAllReduceSeconds(
      stage->num_devices, stage->num_servers,
      sums_.gradient_bytes(stage->first, stage->end), options_);
}

double DappleLength::Seconds(const PlacedStages& stages) const {
  if (options_.paper_length) return PaperSeconds(stages);
  double block = 0, once = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    block = std::max(block, stages[s]->seconds);
    once += sums_.seconds(stages[s]->first, stages[s]->end) / speed_;
    if (s == 0) continue;
    const double transfer = stages[s]->transfer_seconds;
    block = std::max(block, 2 * spread_ * transfer);
    once += transfer;
  }
  double left = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    left = std::max(
        left, stages[s]->all_reduce_seconds - static_cast<double>(s) * block);
  }
  return block * (num_steps_ - 1) + once + left;
}

double DappleLength::PaperSeconds(const PlacedStages& stages) const {
  std::vector<double> forward, backward, all_reduce;
  for (size_t s = 0; s < stages.size(); ++s) {
    if (s > 0) {
      const double transfer = spread_ * stages[s]->transfer_seconds;
      forward.push_back(transfer);
      backward.push_back(transfer);
      all_reduce.push_back(0);
    }
    const PlacedStage& stage = *stages[s];
    forward.push_back(sums_.forward(stage.first, stage.end) / stage.units /
                      speed_);
    backward.push_back(sums_.backward(stage.first, stage.end) / stage.units /
                       speed_);
    all_reduce.push_back(stage.all_reduce_seconds);
  }
  return DapplePivotSeconds(forward, backward, all_reduce, num_steps_);
}

double DappleLength::LeastSeconds(const PlacedStage& stage) const {
  return std::max(num_steps_ * stage.seconds,
                  (num_steps_ - 1) * 2 * spread_ * stage.transfer_seconds);
}

double DappleLength::AcrOf(const PlacedStages& stages) const {
  double transfer = 0, compute = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    compute = std::max(compute, stages[s]->seconds);
    if (s > 0) {
      transfer = std::max(transfer, stages[s]->transfer_seconds);
    }
  }
  return compute > 0 ? 2 * spread_ * transfer / compute : 0;
}

}  // namespace weir::plan
