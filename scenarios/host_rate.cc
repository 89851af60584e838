// SPDX-License-Identifier: Apache-2.0
#include "scenarios/host_rate.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "base/infinity.h"
#include "calibrate/profile/figures.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/cluster/network.h"

namespace weir::scenarios {
namespace {

constexpr double kFastestPcie = 128e9;  // PCIe 6.0 x16, 64 GT/s per lane
constexpr double kRelativeError = 0.7;  // a factor of two

// Returns the rate of the slowest link between a GPU and its host; 0: none is
// known.
double SlowestHostLink(const Cluster& cluster) {
  const Network network(cluster);
  double slowest = kInfinity;
  for (int gpu = 0; gpu < NumGpus(cluster); ++gpu) {
    const Route route = network.RouteToHost(gpu);
    if (route.links.empty()) return 0;
    for (const int32_t link : route.links) {
      slowest = std::min(slowest, network.links()[link].bytes_per_second);
    }
  }
  return slowest;
}

}  // namespace

Figure AssumedHostOptimizerRate(const Cluster& cluster) {
  Figure figure;
  figure.set_kind(Figure::ASSUMED);
  figure.set_relative_error(kRelativeError);
  if (SlowestHostLink(cluster) > kFastestPcie) {
    figure.set_value(128e9);
    figure.set_source(
        "half of a Grace CPU's 512 GB/s of LPDDR5X, shared by two GPUs");
  } else {
    figure.set_value(25e9);
    figure.set_source(
        "half of two sockets with eight channels of DDR4-3200 (2 x 205 GB/s), "
        "shared by eight GPUs");
  }
  return figure;
}

void FillHostOptimizerRate(const Scenario& scenario, const Cluster& cluster,
                           Runtime* runtime) {
  if (scenario.training().optimizer_offload_fraction() == 0 ||
      runtime->has_host_optimizer_bytes_per_second()) {
    return;
  }
  *runtime->mutable_host_optimizer_bytes_per_second() =
      AssumedHostOptimizerRate(cluster);
}

void ScaleHostTimes(const DeviceProfile& device, Runtime* runtime) {
  if (!device.has_host_slowdown()) return;
  const Figure& slowdown = device.host_slowdown();
  const auto scale = [&](bool is_given, Figure* (Runtime::*mutable_figure)()) {
    if (!is_given) return;
    Figure* figure = (runtime->*mutable_figure)();
    const double error = std::hypot(calibrate::RelativeError(*figure),
                                    calibrate::RelativeError(slowdown));
    figure->set_value(slowdown.value() * figure->value());
    figure->set_relative_error(error);
    figure->set_source(absl::StrFormat("%s; times host_slowdown %g of %s",
                                       figure->source(), slowdown.value(),
                                       device.name()));
  };
  scale(runtime->has_forward_launch_seconds(),
        &Runtime::mutable_forward_launch_seconds);
  scale(runtime->has_backward_launch_seconds(),
        &Runtime::mutable_backward_launch_seconds);
  scale(runtime->has_collective_launch_seconds(),
        &Runtime::mutable_collective_launch_seconds);
  scale(runtime->has_module_seconds(), &Runtime::mutable_module_seconds);
  scale(runtime->has_pass_seconds(), &Runtime::mutable_pass_seconds);
  scale(runtime->has_exchange_seconds(), &Runtime::mutable_exchange_seconds);
  scale(runtime->has_list_rank_seconds(), &Runtime::mutable_list_rank_seconds);
}

}  // namespace weir::scenarios
