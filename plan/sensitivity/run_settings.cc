// SPDX-License-Identifier: Apache-2.0
#include "plan/sensitivity/run_settings.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scenarios/recomputation.h"

namespace weir::plan {
namespace {

// The speed of a GPU that is throttled or shared, for comparison.
constexpr double kSlowSpeed = 0.8;

// Lists scenarios that differ from the given one in one setting.
class Settings {
 public:
  explicit Settings(const scenarios::ResolvedScenario& scenario)
      : base_(scenario.scenario),
        first_gpu_(scenario.placement.gpus.empty()
                       ? 0
                       : scenario.placement.gpus.front()) {}

  std::vector<RunSetting> List() {
    AddRecompute();
    const Communication& communication = base_.communication();
    const bool blocking = communication.transfers() == BLOCKING;
    Add(absl::StrCat("--transfers ", blocking ? "overlapped" : "blocking"))
        .mutable_communication()
        ->set_transfers(blocking ? OVERLAPPED : BLOCKING);
    const bool overlapped =
        communication.gradient_reduction() == REDUCTION_OVERLAPPED;
    Add(absl::StrCat("--gradient-reduction ",
                     overlapped ? "blocking" : "overlapped"))
        .mutable_communication()
        ->set_gradient_reduction(overlapped ? REDUCTION_BLOCKING
                                            : REDUCTION_OVERLAPPED);
    const Training& training = base_.training();
    const auto value = [](bool on) { return on ? "" : "=false"; };
    Add(absl::StrCat("--fp32-gradients", value(!training.fp32_gradients())))
        .mutable_training()
        ->set_fp32_gradients(!training.fp32_gradients());
    Add(absl::StrCat("--flash-attention", value(!training.flash_attention())))
        .mutable_training()
        ->set_flash_attention(!training.flash_attention());
    SlowPart* slow =
        Add(absl::StrCat("--slow gpu", first_gpu_, "=", kSlowSpeed)).add_slow();
    slow->set_gpu(static_cast<uint32_t>(first_gpu_));
    slow->set_speed(kSlowSpeed);
    return std::move(settings_);
  }

 private:
  Scenario& Add(std::string text) {
    return settings_.emplace_back(RunSetting{std::move(text), base_}).scenario;
  }

  void AddRecompute() {
    const models::Recompute now = scenarios::RecomputeOf(base_.training());
    for (const auto& [name, mode] :
         {std::pair("none", RECOMPUTE_NONE),
          std::pair("selective", RECOMPUTE_SELECTIVE),
          std::pair("full", RECOMPUTE_FULL)}) {
      if (mode == now) continue;
      scenarios::SetRecompute(
          mode, Add(absl::StrCat("--recompute ", name)).mutable_training());
    }
  }

  const Scenario& base_;
  int first_gpu_;
  std::vector<RunSetting> settings_;
};

}  // namespace

std::vector<RunSetting> OtherSettings(
    const scenarios::ResolvedScenario& scenario) {
  return Settings(scenario).List();
}

double SecondsWith(const RunSetting& setting, absl::string_view label,
                   sim::FastSimulator* simulator) {
  const auto changed = scenarios::ResolveScenario(label, setting.scenario);
  if (!changed.ok()) return 0;
  const auto estimate = simulator->Estimate(*changed);
  return estimate.ok() ? estimate->batch_seconds : 0;
}

std::vector<results::SettingCause> NearerSettings(
    std::vector<results::SettingCause> settings, double batch_seconds,
    double measured_seconds) {
  // A smaller change explains nothing.
  constexpr double kLeastChange = 1e-3;
  const auto distance = [&](double seconds) {
    return std::abs(std::log(seconds / measured_seconds));
  };
  std::erase_if(settings, [&](const results::SettingCause& setting) {
    return !(setting.seconds > 0) ||
           distance(setting.seconds) + kLeastChange > distance(batch_seconds);
  });
  std::stable_sort(settings.begin(), settings.end(),
                   [&](const auto& a, const auto& b) {
                     return distance(a.seconds) < distance(b.seconds);
                   });
  return settings;
}

}  // namespace weir::plan
