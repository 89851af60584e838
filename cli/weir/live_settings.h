// SPDX-License-Identifier: Apache-2.0
// The settings that the page of "weir live" changes.
#ifndef WEIR_CLI_WEIR_LIVE_SETTINGS_H_
#define WEIR_CLI_WEIR_LIVE_SETTINGS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "cli/options/flags.h"
#include "scenarios/scenario.h"

namespace weir::cli {

struct LiveSettings {
  uint32_t pipeline = 0;
  uint32_t microbatches = 0;
  uint32_t chunks = 0;
  std::string schedule;
  // Factor of the rate of every link between and inside nodes; with given costs
  // the hop takes 1 / factor as long.
  double bandwidth = 1;
  double memory_limit_bytes = 0;  // per GPU; 0: all memory of the device
  // Speed of GPU 0, 1: as the others. Must be 1 with given costs.
  double slowest_gpu = 1;
};

inline constexpr uint32_t kMostLivePipeline = 512;
inline constexpr uint32_t kMostLiveMicrobatches = 4096;
inline constexpr uint32_t kMostLiveChunks = 64;
inline constexpr double kMostLiveBandwidth = 64;  // and its inverse the least
inline constexpr double kLeastLiveSpeed = 0.05;

nlohmann::ordered_json LiveSettingsJson(const LiveSettings& settings);

// Reads settings that a page sent. Returns InvalidArgument with every member
// that is missing or out of range.
absl::StatusOr<LiveSettings> ParseLiveSettings(const std::string& text);

// Returns the settings that the scenario has.
LiveSettings LiveSettingsOf(const scenarios::ResolvedScenario& scenario);

// Returns the scenario of the flags with the settings. Returns the errors of
// ResolveFlags.
absl::StatusOr<scenarios::ResolvedScenario> WithLiveSettings(
    const ScenarioFlags& flags, const LiveSettings& settings);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_LIVE_SETTINGS_H_
