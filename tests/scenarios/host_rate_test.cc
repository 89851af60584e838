// SPDX-License-Identifier: Apache-2.0
#include "scenarios/host_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "scenarios/scenario.h"

namespace weir::scenarios::host_rate_test {

TEST(HostRateTest, ASlowHostScalesItsTimes) {
  Runtime runtime;
  runtime.mutable_forward_launch_seconds()->set_value(1e-5);
  runtime.mutable_forward_launch_seconds()->set_relative_error(0.3);
  runtime.mutable_module_seconds()->set_value(2e-5);
  runtime.mutable_update_seconds()->set_value(1e-3);
  const Runtime before = runtime;
  DeviceProfile device;
  ScaleHostTimes(device, &runtime);
  EXPECT_EQ(runtime.SerializeAsString(), before.SerializeAsString());
  device.set_name("arm");
  device.mutable_host_slowdown()->set_value(2.5);
  device.mutable_host_slowdown()->set_relative_error(0.4);
  ScaleHostTimes(device, &runtime);
  EXPECT_DOUBLE_EQ(runtime.forward_launch_seconds().value(), 2.5e-5);
  EXPECT_DOUBLE_EQ(runtime.forward_launch_seconds().relative_error(), 0.5);
  EXPECT_THAT(runtime.forward_launch_seconds().source(),
              testing::HasSubstr("times host_slowdown 2.5 of arm"));
  EXPECT_DOUBLE_EQ(runtime.module_seconds().value(), 5e-5);
  // An update waits for the GPU.
  EXPECT_EQ(runtime.update_seconds().value(), 1e-3);
  EXPECT_FALSE(runtime.has_backward_launch_seconds());
}

// --set changes the factor, or what it was applied to.
TEST(HostRateTest, ScenariosScaleTheTimesOfTheirRuntime) {
  const auto launch = [](const std::string& cluster,
                         const std::string& setting) {
    Scenario scenario;
    scenario.set_model("llama-3.1-8b");
    scenario.set_cluster(cluster);
    scenario.set_num_nodes(1);
    scenario.set_runtime("megatron-lm");
    scenario.mutable_batch()->set_global_batch_size(72);
    if (!setting.empty()) scenario.add_set_figures(setting);
    const auto resolved = ResolveScenario("s", scenario);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    return resolved.ok() ? resolved->runtime.forward_launch_seconds().value()
                         : 0;
  };
  const double x86 = launch("dgx-h100", "");
  EXPECT_GT(x86, 0);
  EXPECT_DOUBLE_EQ(launch("gb200-nvl72", ""), 2.75 * x86);
  EXPECT_DOUBLE_EQ(launch("gb300-nvl72", ""), 2.75 * x86);
  EXPECT_DOUBLE_EQ(launch("gb200-nvl72", "host_slowdown=3"), 3 * x86);
  EXPECT_EQ(launch("gb200-nvl72", "runtime.forward_launch_seconds=1e-6"), 1e-6);
}

}  // namespace weir::scenarios::host_rate_test
