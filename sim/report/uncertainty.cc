// SPDX-License-Identifier: Apache-2.0
#include "sim/report/uncertainty.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "base/units.h"
#include "calibrate/pricing/link_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/figures.h"
#include "models/quantization.h"
#include "models/recipe.h"
#include "sim/costs/stage_costs.h"
#include "sim/report/evidence.h"

namespace weir::sim {
namespace {

constexpr double kDefaultGemmResidual = 0.1;
constexpr double kDefaultCollectiveResidual = 0.1;
constexpr double kDefaultMemoryResidual = 0.15;
constexpr double kDefaultStepResidual = 0.06;
// Additional errors of predictions that were never compared with a measured
// step on the device, under the runtime or in the number format. ASSUMED: about
// the spread between the mean errors of devices and of programs on record.
constexpr double kUnrecordedDevice = 0.15;
constexpr double kUnrecordedRuntime = 0.1;
constexpr double kUnrecordedFormat = 0.1;
// Error of layers that were measured whole.
constexpr double kGivenError = 0.02;
// A normal variable lies within this many standard deviations of its mean in
// nine cases of ten.
constexpr double kNineOfTen = 1.6448536269514722;
constexpr double kLeastWarned = 0.05;

double ValueOr(bool has, const Figure& figure, double value) {
  return has ? figure.value() : value;
}

const DeviceProfile& DeviceOf(const scenarios::ResolvedScenario& scenario,
                              int device) {
  return device == 0 ? scenario.device : scenario.other_devices[device - 1];
}

bool IsMemory(const models::Kernel& kernel) {
  return kernel.kind == models::Kernel::Kind::kMemory;
}

// Returns true if two kernels have the same error factor.
bool ShareResidual(const models::Kernel& a, const models::Kernel& b) {
  if (a.kind != b.kind) return false;
  if (IsMemory(a)) return a.part == b.part;
  return a.batch == b.batch && a.m == b.m && a.n == b.n && a.k == b.k &&
         a.num_gemms == b.num_gemms;
}

class Variations {
 public:
  Variations(const scenarios::ResolvedScenario& scenario, const GpuWork& work)
      : work_(work),
        device_(DeviceOf(scenario, work.device)),
        first_(scenario.device),
        runtime_(scenario.runtime),
        base_(Price()),
        base_seconds_(WorkSeconds(work, base_, base_)),
        kinds_(work, base_) {}

  Uncertainty Run() {
    for (size_t i = 0; i < work_.calls.size(); ++i) {
      const LinkClass* link =
          calibrate::FindLink(first_, work_.calls[i].distance);
      if (link != nullptr) kinds_.SetCall(i, link->figure().kind());
    }
    Uncertainty result;
    if (!(base_seconds_ > 0)) return result;
    result.set_figures(std::sqrt(Figures()));
    result.set_kernels(std::sqrt(Kernels()));
    result.set_collectives(std::sqrt(OfCollectives()));
    result.set_step(ValueOr(runtime_.has_step_residual(),
                            runtime_.step_residual(), kDefaultStepResidual));
    result.set_slower_step(device_.slower_step_residual().value());
    result.set_faster_step(device_.faster_step_residual().value());
    return result;
  }

  // Requires: Run() was called.
  SecondsByEvidence Evidence(double batch_seconds) const {
    return EvidenceOf(work_, base_, kinds_, device_, batch_seconds);
  }

 private:
  WorkPrices Price() const {
    return PriceWork(work_, device_, first_, runtime_);
  }

  // Returns the square of the change of the logarithm.
  double Change(const WorkPrices& prices, double given_factor = 1) const {
    const double change = std::log(
        WorkSeconds(work_, base_, prices, given_factor) / base_seconds_);
    return change * change;
  }

  double Moved(Figure::Kind kind, double error, const WorkPrices& prices) {
    kinds_.Note(kind, error, prices);
    return Change(prices);
  }

  // Returns false for the figures of experts and latent attention where the
  // work has none of them.
  bool IsUsed(absl::string_view path) const {
    const auto any_kernel = [&](models::Kernel::Variant variant) {
      return std::any_of(work_.kernels.begin(), work_.kernels.end(),
                         [&](const models::Kernel& kernel) {
                           return kernel.variant == variant;
                         });
    };
    if (absl::StartsWith(path, "collectives.dispatch.") ||
        absl::StartsWith(path, "collectives.combine.")) {
      return std::any_of(
          work_.calls.begin(), work_.calls.end(),
          [](const CollectiveCall& call) { return call.routing.tokens > 0; });
    }
    if (absl::StartsWith(path, "latent_attention.")) {
      return any_kernel(models::Kernel::Variant::kLatent);
    }
    return path != "grouped_gemm_time" ||
           any_kernel(models::Kernel::Variant::kGrouped);
  }

  // Collectives are those of the first device, kernels those of this one.
  double FiguresOfDevice(DeviceProfile* device, bool collectives) {
    double sum = 0;
    for (const calibrate::NamedFigure& named : calibrate::FiguresOf(device)) {
      const double error = calibrate::RelativeError(*named.figure);
      const double value = named.figure->value();
      if (absl::StartsWith(named.path, "collectives.") != collectives ||
          error == 0 || value == 0 || !IsUsed(named.path)) {
        continue;
      }
      named.figure->set_value(value * std::exp(error));
      sum += Moved(named.figure->kind(), error, Price());
      named.figure->set_value(value);
    }
    return sum;
  }

  double Figures() {
    double sum = FiguresOfDevice(&device_, false);
    if (!work_.calls.empty()) sum += FiguresOfDevice(&first_, true);
    WorkPrices prices = base_;
    for (const calibrate::NamedFigure& named :
         calibrate::FiguresOf(&prices.runtime)) {
      const double error = calibrate::RelativeError(*named.figure);
      const double value = named.figure->value();
      if (error == 0 || value == 0) continue;
      named.figure->set_value(value * std::exp(error));
      sum += Moved(named.figure->kind(), error, prices);
      named.figure->set_value(value);
    }
    return sum + Change(base_, std::exp(kGivenError));
  }

  double Kernels() const {
    const double gemm = ValueOr(device_.has_gemm_residual(),
                                device_.gemm_residual(), kDefaultGemmResidual);
    const double memory =
        ValueOr(device_.has_memory_residual(), device_.memory_residual(),
                kDefaultMemoryResidual);
    const std::vector<models::Kernel>& kernels = work_.kernels;
    std::vector<bool> done(kernels.size(), false);
    double sum = 0;
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (done[i]) continue;
      WorkPrices prices = base_;
      const calibrate::KernelPrice& price = base_.kernels[i];
      if (price.basis != calibrate::KernelPrice::Basis::kFigures) {
        // Its own error; between two measured sizes at most that of the
        // formula.
        prices.kernels[i].seconds *=
            std::exp(std::hypot(price.relative_error, gemm * price.distance));
        sum += Change(prices);
        continue;
      }
      for (size_t k = i; k < kernels.size(); ++k) {
        if (base_.kernels[k].basis != calibrate::KernelPrice::Basis::kFigures ||
            !ShareResidual(kernels[i], kernels[k])) {
          continue;
        }
        done[k] = true;
        prices.kernels[k].seconds *=
            std::exp(IsMemory(kernels[i]) ? memory : gemm);
      }
      sum += Change(prices);
    }
    return sum;
  }

  double OfCollectives() const {
    const double residual =
        ValueOr(first_.has_collective_residual(), first_.collective_residual(),
                kDefaultCollectiveResidual);
    double sum = 0;
    for (size_t i = 0; i < work_.calls.size(); ++i) {
      WorkPrices prices = base_;
      const LinkClass* link =
          calibrate::FindLink(first_, work_.calls[i].distance);
      prices.call_seconds[i] *=
          std::exp(link == nullptr
                       ? residual
                       : std::hypot(link->residual(),
                                    calibrate::RelativeError(link->figure())));
      sum += Change(prices);
    }
    return sum;
  }

  const GpuWork& work_;
  DeviceProfile device_, first_;
  const Runtime& runtime_;
  const WorkPrices base_;
  const double base_seconds_;
  WeakestKinds kinds_;
};

// What no measured step on record has.
struct Unrecorded {
  std::string names;    // "T4, pytorch and fp32"; empty: nothing
  std::string formats;  // of the recipe: the interval is not fitted to them
  double error = 0;
};

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

Uncertainty UncertaintyOf(const scenarios::ResolvedScenario& scenario,
                          const GpuWork& work) {
  return Variations(scenario, work).Run();
}

LogErrors TotalLogErrors(const Uncertainty& uncertainty) {
  const double both =
      std::hypot(std::hypot(uncertainty.figures(), uncertainty.kernels()),
                 std::hypot(uncertainty.collectives(), uncertainty.step()),
                 uncertainty.unrecorded());
  return {.faster = std::hypot(both, uncertainty.faster_step()),
          .slower = std::hypot(both, uncertainty.slower_step())};
}

void FillUncertainty(const scenarios::ResolvedScenario& scenario,
                     const GpuWork& work, Result* result) {
  Variations variations(scenario, work);
  *result->mutable_uncertainty() = variations.Run();
  *result->mutable_seconds_by_evidence() =
      variations.Evidence(result->batch_seconds());
  const Unrecorded unrecorded =
      UnrecordedOf(scenario, DeviceOf(scenario, work.device));
  result->mutable_uncertainty()->set_unrecorded(unrecorded.error);
  const LogErrors errors = TotalLogErrors(result->uncertainty());
  result->set_batch_seconds_low(result->batch_seconds() *
                                std::exp(-kNineOfTen * errors.faster));
  result->set_batch_seconds_high(result->batch_seconds() *
                                 std::exp(kNineOfTen * errors.slower));
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
