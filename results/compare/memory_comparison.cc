// SPDX-License-Identifier: Apache-2.0
#include "results/compare/memory_comparison.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"

namespace weir::results {
namespace {

constexpr char kReserved[] = "reserved";
constexpr char kCommunication[] = "communication_buffers";

std::map<std::string, double> ClassesOf(const RankResult& rank) {
  std::map<std::string, double> classes;
  for (const MemoryClass& one : rank.peak_memory_classes()) {
    const bool end = one.name() == "end_activations";
    classes[end ? "activations" : one.name()] += one.bytes();
  }
  return classes;
}

// Returns the action in progress, or else the previous one.
std::string ActionAt(const std::vector<TimelineAction>& actions,
                     double seconds) {
  const TimelineAction* under_way = nullptr;
  const TimelineAction* before = nullptr;
  for (const TimelineAction& action : actions) {
    if (!action.computes() || action.start_seconds > seconds) continue;
    if (action.end_seconds > seconds) under_way = &action;
    before = &action;
  }
  if (under_way != nullptr) return ActionText(*under_way);
  return before == nullptr ? "the start"
                           : absl::StrCat("after ", ActionText(*before));
}

struct Side {
  const RankResult& rank;
  std::map<std::string, double> classes;
  const std::vector<TimelineAction>& actions;
};

// Removes from `side` what the other side does not count; returns its peak.
MemoryPeak PeakOf(const Side& other, Side* side) {
  MemoryPeak peak;
  const auto leave_out = [&](const char* name, double bytes) {
    const auto found = side->classes.find(name);
    if (found == side->classes.end()) return;
    bytes = std::min(bytes, found->second);
    found->second -= bytes;
    peak.left_out_bytes += bytes;
    if (found->second == 0) side->classes.erase(found);
  };
  if (other.rank.communicator_bytes() == 0) {
    leave_out(kCommunication, side->rank.communicator_bytes());
  }
  bool counts_reserved = false;
  for (const MemoryClass& one : other.rank.peak_memory_classes()) {
    counts_reserved |= one.name() == kReserved && one.bytes() > 0;
  }
  if (!counts_reserved) leave_out(kReserved, side->rank.peak_memory_bytes());
  peak.bytes = side->rank.peak_memory_bytes() - peak.left_out_bytes;
  peak.at_seconds = side->rank.peak_memory_at_seconds();
  peak.during = ActionAt(side->actions, peak.at_seconds);
  return peak;
}

std::vector<ComparedClass> Compare(const Side& predicted,
                                   const Side& measured) {
  std::set<std::string> names;
  for (const Side* side : {&predicted, &measured}) {
    for (const auto& [name, bytes] : side->classes) names.insert(name);
  }
  const auto bytes_of = [](const Side& side, const std::string& name) {
    const auto found = side.classes.find(name);
    return found == side.classes.end() ? 0 : found->second;
  };
  std::vector<ComparedClass> classes;
  for (const std::string& name : names) {
    classes.push_back(
        {name, bytes_of(predicted, name), bytes_of(measured, name)});
  }
  return classes;
}

}  // namespace

std::vector<RankMemory> CompareMemory(const Result& predicted,
                                      const PipelineEvents& predicted_timeline,
                                      const Result& measured,
                                      const PipelineEvents& measured_timeline) {
  std::vector<RankMemory> ranks;
  const int num_ranks =
      std::min(predicted_timeline.num_ranks(), measured_timeline.num_ranks());
  for (int i = 0; i < num_ranks; ++i) {
    const RankResult& p = predicted.ranks(predicted_timeline.gpus[i]);
    const RankResult& m = measured.ranks(measured_timeline.gpus[i]);
    Side predicted_side = {p, ClassesOf(p), predicted_timeline.ranks[i]};
    Side measured_side = {m, ClassesOf(m), measured_timeline.ranks[i]};
    RankMemory rank;
    rank.rank = i;
    rank.predicted = PeakOf(measured_side, &predicted_side);
    rank.measured = PeakOf(predicted_side, &measured_side);
    if (!(rank.predicted.bytes > 0) || !(rank.measured.bytes > 0)) continue;
    const auto& allocator = measured.replay().allocator_peak_bytes();
    if (i < allocator.size()) rank.allocator_bytes = allocator.Get(i);
    const auto& taken = measured.replay().taken_peak_bytes();
    if (i < taken.size()) rank.taken_bytes = taken.Get(i);
    rank.classes = Compare(predicted_side, measured_side);
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

}  // namespace weir::results
