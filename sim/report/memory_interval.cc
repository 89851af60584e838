// SPDX-License-Identifier: Apache-2.0
#include "sim/report/memory_interval.h"

#include <algorithm>
#include <cmath>

#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/figures.h"
#include "results/memory_limits.h"
#include "results/result_enums.h"

namespace weir::sim {
namespace {

// Of tensors: 1.25 x the mean error of allocated memory on the source of
// docs/uncertainty.md with the larger error.
constexpr double kAllocatedError = 0.04;
// Fitted to all sources of whole GPUs and of reserved memory, see
// results/accuracy/README.md.
constexpr double kMoreError = 0.055;
constexpr double kLessError = 0.05;
// Of a program whose memory nobody has measured, assumed.
constexpr double kUnrecordedError = 0.05;
// Of communicators whose number the runtime does not state: frameworks create
// up to ten, of up to 0.7 GB each. Assumed, only upwards.
constexpr double kUnknownCommunicatorBytes = 1e9;

double Bytes(const RankResult& rank, MemoryClass::Kind kind) {
  double bytes = 0;
  for (const MemoryClass& memory : rank.peak_memory_classes()) {
    if (memory.name() == results::NameOf(kind)) bytes += memory.bytes();
  }
  return bytes;
}

PeakMemory PeakOf(const RankResult& rank) {
  PeakMemory peak;
  peak.reserved_bytes = Bytes(rank, MemoryClass::RESERVED);
  peak.communicator_bytes = rank.communicator_bytes();
  peak.allocated_bytes =
      rank.peak_memory_bytes() - peak.reserved_bytes - peak.communicator_bytes;
  return peak;
}

double ReservedError(const scenarios::ResolvedScenario& scenario) {
  const DeviceProfile& device = scenario.device;
  if (scenario.runtime.loads_all_kernels() && device.has_full_context_bytes()) {
    return calibrate::RelativeError(device.full_context_bytes());
  }
  return calibrate::HasReservedParts(device)
             ? calibrate::RelativeError(device.context_bytes())
             : calibrate::RelativeError(device.reserved_bytes());
}

bool StatesCommunicators(const scenarios::ResolvedScenario& scenario) {
  return scenario.runtime.has_communicator_bytes() ||
         calibrate::HasMeasuredCommunicators(scenario.device);
}

double CommunicatorError(const scenarios::ResolvedScenario& scenario) {
  if (calibrate::HasMeasuredCommunicators(scenario.device)) {
    return calibrate::RelativeError(
        scenario.device.collectives().memory().once_bytes());
  }
  return calibrate::RelativeError(
      scenario.runtime.has_communicator_bytes()
          ? scenario.runtime.communicator_bytes()
          : scenario.device.communication_buffer_bytes());
}

}  // namespace

MemoryUncertainty MemoryUncertaintyOf(
    const scenarios::ResolvedScenario& scenario, const PeakMemory& peak) {
  MemoryUncertainty error;
  error.set_allocated_bytes(kAllocatedError * peak.allocated_bytes);
  error.set_library_bytes(
      std::hypot(ReservedError(scenario) * peak.reserved_bytes,
                 CommunicatorError(scenario) * peak.communicator_bytes));
  const bool unknown =
      peak.communicator_bytes > 0 && !StatesCommunicators(scenario);
  error.set_more_bytes(std::hypot(kMoreError * peak.allocated_bytes,
                                  unknown ? kUnknownCommunicatorBytes : 0));
  error.set_less_bytes(kLessError * peak.allocated_bytes);
  if (scenario.runtime.num_memory_sources() == 0) {
    error.set_unrecorded_bytes(kUnrecordedError * peak.allocated_bytes);
  }
  return error;
}

void FillMemoryInterval(const scenarios::ResolvedScenario& scenario,
                        Result* result) {
  if (scenario.given_costs || result->ranks().empty()) return;
  const RankResult& worst =
      *std::max_element(result->ranks().begin(), result->ranks().end(),
                        [](const RankResult& a, const RankResult& b) {
                          return a.peak_memory_bytes() < b.peak_memory_bytes();
                        });
  const MemoryUncertainty error = MemoryUncertaintyOf(scenario, PeakOf(worst));
  *result->mutable_memory_uncertainty() = error;
  const double peak = result->peak_memory_bytes();
  const results::MemoryLimits limits = results::LimitsOf(error);
  result->set_peak_memory_bytes_low(std::max(peak - limits.less_bytes, 0.0));
  result->set_peak_memory_bytes_high(peak + limits.more_bytes);
}

double MemoryMargin(const scenarios::ResolvedScenario& scenario,
                    double memory_bytes, int num_gpus) {
  PeakMemory peak;
  peak.reserved_bytes = calibrate::ReservedBytes(scenario.device);
  if (num_gpus > 1) {
    peak.communicator_bytes =
        scenario.device.communication_buffer_bytes().value();
  }
  // The interval grows with the peak, so that bisection finds the largest peak
  // that fits with its upper end.
  double low = 0, high = memory_bytes;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    peak.allocated_bytes =
        std::max(middle - peak.reserved_bytes - peak.communicator_bytes, 0.0);
    const double upper =
        middle +
        results::LimitsOf(MemoryUncertaintyOf(scenario, peak)).more_bytes;
    (upper <= memory_bytes ? low : high) = middle;
  }
  return memory_bytes > 0 ? 1 - low / memory_bytes : 0;
}

}  // namespace weir::sim
