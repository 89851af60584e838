// SPDX-License-Identifier: Apache-2.0
#include "sim/report/coverage.h"

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/text.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/figures.h"
#include "models/quantization.h"
#include "models/recipe.h"
#include "sim/costs/stage_costs.h"

namespace weir::sim {
namespace {

// Additional errors of predictions that were never compared with a measured
// step on the device, under the runtime or in the number format. ASSUMED: about
// the spread between the mean errors of devices and of programs on record.
constexpr double kUnrecordedDevice = 0.15;
constexpr double kUnrecordedRuntime = 0.1;
constexpr double kUnrecordedFormat = 0.1;

constexpr double kLeastWarned = 0.05;

bool Holds(const Range& range, double value) {
  return range.low() <= value && value <= range.high();
}

bool Covers(const Coverage& coverage, const models::Kernel& kernel) {
  return (kernel.batch <= 1 || coverage.batched_gemms()) &&
         Holds(coverage.gemm_m(), kernel.m) &&
         Holds(coverage.gemm_n(), kernel.n) &&
         Holds(coverage.gemm_k(), kernel.k);
}

bool IsBetweenNodes(const CollectiveCall& call) {
  return call.group.num_ranks > call.group.ranks_per_node;
}

// Seconds of a batch that are outside the measured range.
struct Outside {
  double gemms = 0;
  double attention = 0;
  double throttled = 0;      // inside, but measured on a throttled GPU
  double between_nodes = 0;  // collectives and transfers
  double in_node = 0;
};

// Adds the time of a purpose whose calls are outside the coverage.
void AddCollectives(const GpuWork& work, const WorkPrices& prices,
                    const Coverage& coverage, CallPurpose purpose,
                    double role_seconds, Outside* outside) {
  double all = 0, between = 0, inside_node = 0;
  for (size_t i = 0; i < work.calls.size(); ++i) {
    const CollectiveCall& call = work.calls[i];
    if (call.purpose != purpose) continue;
    const double seconds = call.count * prices.call_seconds[i];
    all += seconds;
    if (call.distance != LinkClass::DISTANCE_UNSPECIFIED) continue;
    if (IsBetweenNodes(call)) {
      if (!coverage.between_nodes()) between += seconds;
    } else if (!Holds(coverage.collective_ranks(), call.group.num_ranks) ||
               !Holds(coverage.collective_bytes(), call.bytes)) {
      inside_node += seconds;
    }
  }
  if (!(all > 0)) return;
  outside->between_nodes += role_seconds * between / all;
  outside->in_node += role_seconds * inside_node / all;
}

Outside OutsideOf(const scenarios::ResolvedScenario& scenario,
                  const GpuWork& work) {
  const DeviceProfile& device = DeviceOf(scenario, work.device);
  const WorkPrices prices =
      PriceWork(work, device, scenario.device, scenario.runtime);
  Outside outside;
  double tensor = 0, expert = 0, context = 0;
  for (const GpuWork::Pass& pass : work.passes) {
    const double count = pass.count * work.pass_scale;
    tensor += count * pass.tensor_seconds;
    expert += count * pass.expert_seconds;
    context += count * pass.context_seconds;
    for (const auto& [index, calls] : pass.kernels) {
      const models::Kernel& kernel = work.kernels[index];
      const calibrate::KernelPrice& price = prices.kernels[index];
      const double seconds = count * calls * price.seconds;
      if (price.throttled) outside.throttled += seconds;
      if (price.basis != calibrate::KernelPrice::Basis::kFigures) continue;
      if (kernel.kind == models::Kernel::Kind::kAttention && price.outside) {
        outside.attention += seconds;
      } else if (kernel.kind == models::Kernel::Kind::kGemm &&
                 !Covers(device.coverage(), kernel)) {
        outside.gemms += seconds;
      }
    }
  }
  const std::pair<CallPurpose, double> purposes[] = {
      {CallPurpose::kTensor, tensor},
      {CallPurpose::kExpert, expert},
      {CallPurpose::kContext, context},
      {CallPurpose::kReduction, work.reduction_seconds},
      {CallPurpose::kGather, work.gather_seconds},
      {CallPurpose::kTransfer, work.transfer_seconds}};
  for (const auto& [purpose, seconds] : purposes) {
    AddCollectives(work, prices, scenario.device.coverage(), purpose, seconds,
                   &outside);
  }
  return outside;
}

// Returns "bf16" if GEMMs and attention were measured only in that format and
// the scenario computes in another one; else an empty string.
std::string OtherFormat(const DeviceProfile& device, absl::string_view format) {
  std::set<std::string> formats;
  for (const MeasuredKernel& kernel : device.kernels()) {
    if (kernel.kind() != MeasuredKernel::MEMORY) {
      formats.insert(kernel.format());
    }
  }
  if (formats.count(std::string(format)) > 0) return "";
  return absl::StrJoin(formats, " and ");
}

}  // namespace

const DeviceProfile& DeviceOf(const scenarios::ResolvedScenario& scenario,
                              int device) {
  return device == 0 ? scenario.device : scenario.other_devices[device - 1];
}

Unrecorded UnrecordedOf(const scenarios::ResolvedScenario& scenario,
                        const DeviceProfile& device) {
  std::vector<std::string> names;
  Unrecorded unrecorded;
  const auto add = [&](const std::string& name, double error) {
    names.push_back(name);
    unrecorded.error = std::hypot(unrecorded.error, error);
  };
  if (device.num_step_sources() == 0) {
    add(std::string(Ascii(device.name())), kUnrecordedDevice);
  }
  if (scenario.runtime.num_step_sources() == 0) {
    add(absl::StrCat("runtime ", Ascii(scenario.runtime.name())),
        kUnrecordedRuntime);
  }
  const std::string format = MatrixFormat(scenario.scenario);
  if (format != "bf16" && format != "fp16") add(format, kUnrecordedFormat);
  std::vector<std::string> formats;
  const auto add_format = [&](const std::string& name) {
    formats.push_back(name);
    unrecorded.error = std::hypot(unrecorded.error, kUnrecordedFormat);
  };
  for (const OperandFormat operand : models::FormatsOf(scenario.recipe)) {
    const MatrixRate* rate = calibrate::FindRate(device, models::Name(operand));
    if (rate != nullptr && rate->num_step_sources() > 0) continue;
    add_format(absl::StrCat("GEMMs in ", models::Name(operand)));
  }
  const OperandFormat attention = scenario.recipe.attention();
  if (attention != OPERAND_16_BIT) {
    add_format(absl::StrCat("attention in ", models::Name(attention)));
  }
  unrecorded.formats = absl::StrJoin(formats, ", ");
  unrecorded.names = absl::StrJoin(names, ", ");
  return unrecorded;
}

void WarnOfCoverage(const scenarios::ResolvedScenario& scenario,
                    const GpuWork& work, const Unrecorded& unrecorded,
                    Result* result) {
  if (!unrecorded.formats.empty()) {
    result->add_warnings(absl::StrCat(
        "the interval is wider by an assumption for ", unrecorded.formats,
        ": no measured step of the ", Ascii(scenario.device.name()),
        " in this format is on record "
        "(docs/number-formats.md, \"Errors\")"));
  }
  if (!unrecorded.names.empty()) {
    result->add_warnings(
        absl::StrCat("no measured training step is on record for ",
                     unrecorded.names, "; the interval is wider"));
  }
  if (!scenario.device.gemms_of().empty()) {
    result->add_warnings(absl::StrFormat(
        "no GEMM of %s is on record: its rates are assumed from the %s, with "
        "a spread of %.0f %%; weir profile import fits measured ones",
        Ascii(scenario.device.name()), Ascii(scenario.device.gemms_of()),
        100 * calibrate::RelativeError(scenario.device.gemm().matrix_rate())));
  }
  const Outside outside = OutsideOf(scenario, work);
  const std::string& device = scenario.device.name();
  const auto warn_of = [&](double seconds, const std::string& what) {
    const double part = seconds / result->batch_seconds();
    if (part < kLeastWarned) return;
    // In words, so that results of several schedules share a warning.
    result->add_warnings(absl::StrCat(part < 0.2 ? "over 5 %" : "over 20 %",
                                      " of the time is spent on ", what));
  };
  const auto warn = [&](double seconds, const char* what) {
    warn_of(seconds, absl::StrCat(what, " outside the calibrated range of the ",
                                  device, " profile"));
  };
  warn(outside.gemms, "GEMMs whose shapes or batches are");
  warn(outside.attention, "attention at sequence lengths");
  warn(outside.between_nodes,
       "collectives and transfers between nodes, which are");
  warn(outside.in_node, "collectives whose sizes or numbers of GPUs are");
  const char* format = MatrixFormat(scenario.scenario);
  const std::string other = OtherFormat(scenario.device, format);
  if (!other.empty()) {
    result->add_warnings(absl::StrCat(
        Ascii(device), ": its GEMMs and attention were measured only in ",
        Ascii(other), "; these measurements are not used in ", format));
  }
  warn_of(outside.throttled,
          absl::StrCat("kernels that were measured while the ", device,
                       " was throttled"));
}

}  // namespace weir::sim
