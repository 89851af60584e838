// SPDX-License-Identifier: Apache-2.0
#include "sim/report/sweep_memory.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

namespace weir::sim {
namespace {

// Relative to the later time: smaller differences may be rounding errors.
constexpr double kSimultaneousTolerance = 1e-13;

// The most bytes that each stream of a program holds that allocates gathered
// weights and gradients on streams of their own.
class StreamPeaks {
 public:
  void Add(const MemoryByKind& now) {
    const double gathered = now[MemoryClass::GATHERED_WEIGHTS];
    const double gradients = now[MemoryClass::GRADIENTS];
    gathered_ = std::max(gathered_, gathered);
    gradients_ = std::max(gradients_, gradients);
    others_ = std::max(others_, std::accumulate(now.begin(), now.end(), 0.0) -
                                    gathered - gradients);
  }
  double bytes() const { return gathered_ + gradients_ + others_; }

 private:
  double gathered_ = 0, gradients_ = 0, others_ = 0;
};

// Adds a sample of each class that changed since the last one.
void SampleClasses(double seconds, const MemoryByKind& now,
                   MemoryByKind* sampled, std::vector<ClassSample>* samples) {
  for (size_t kind = 0; kind < now.size(); ++kind) {
    if (now[kind] == (*sampled)[kind]) continue;
    (*sampled)[kind] = now[kind];
    samples->push_back(
        {static_cast<MemoryClass::Kind>(kind), seconds, now[kind]});
  }
}

}  // namespace

MemoryTimeline SweepMemory(const MemoryByKind& lasting,
                           absl::Span<const MemoryEvent> events,
                           const SweepOptions& options) {
  MemoryTimeline timeline;
  timeline.communicator_bytes = lasting[MemoryClass::COMMUNICATION_BUFFERS];
  MemoryByKind now = lasting;
  std::array<int64_t, MemoryClass::Kind_ARRAYSIZE> held{};
  const auto total = [&] {
    return std::accumulate(now.begin(), now.end(), 0.0);
  };
  timeline.floor_bytes = timeline.peak_bytes = total();
  StreamPeaks streams;
  streams.Add(now);
  double of_steps = 0;                          // part of the total
  double most_of_passes = timeline.peak_bytes;  // without it
  timeline.peak_by_kind = now;
  MemoryByKind sampled{};  // the last sample of each class
  if (options.keep_samples) {
    timeline.samples.push_back({0, timeline.floor_bytes});
    SampleClasses(0, now, &sampled, &timeline.class_samples);
  }
  for (size_t i = 0; i < events.size(); ++i) {
    const MemoryEvent& event = events[i];
    const auto kind = static_cast<size_t>(event.kind);
    now[kind] += event.bytes;
    held[kind] += event.count;
    if (event.of_step) of_steps += event.bytes;
    // Sums of fractions of bytes leave a remainder.
    if (held[kind] == 0) now[kind] = lasting[kind];
    // Simultaneous events count when all of them have happened.
    if (i + 1 < events.size() &&
        events[i + 1].seconds - event.seconds <=
            kSimultaneousTolerance * events[i + 1].seconds) {
      continue;
    }
    const double bytes = total();
    streams.Add(now);
    most_of_passes = std::max(most_of_passes, bytes - of_steps);
    if (bytes > timeline.peak_bytes) {
      timeline.peak_bytes = bytes;
      timeline.peak_at_seconds = event.seconds;
      timeline.peak_by_kind = now;
    }
    if (!options.keep_samples) continue;
    SampleClasses(event.seconds, now, &sampled, &timeline.class_samples);
    if (event.seconds == 0) {
      timeline.samples.front().bytes = bytes;
    } else {
      timeline.samples.push_back({event.seconds, bytes});
    }
  }
  timeline.final_bytes = total();
  timeline.cached_bytes = std::max(
      most_of_passes + options.separate_bytes - timeline.peak_bytes, 0.0);
  if (options.by_stream) {
    timeline.cached_bytes =
        std::max(timeline.cached_bytes, streams.bytes() - timeline.peak_bytes);
  }
  return timeline;
}

}  // namespace weir::sim
