// SPDX-License-Identifier: Apache-2.0
#include "sim/report/evidence.h"

#include <algorithm>
#include <cmath>

namespace weir::sim {
namespace {

constexpr double kLeastElasticity = 0.1;

int Weakness(Figure::Kind kind) {
  switch (kind) {
    case Figure::MEASURED:
      return 1;
    case Figure::FITTED:
      return 2;
    case Figure::ASSUMED:
      return 3;
    default:
      return 0;
  }
}

void Weaken(Figure::Kind kind, double log_move, double before, double after,
            Figure::Kind* known) {
  if (!(before > 0 && after > 0)) return;
  const double elasticity = std::log(after / before) / log_move;
  // The margin keeps rounding errors from changing the result.
  if (std::abs(elasticity) < kLeastElasticity * (1 - 1e-9)) return;
  if (Weakness(kind) > Weakness(*known)) *known = kind;
}

class Sum {
 public:
  Sum(const GpuWork& work, const WorkPrices& prices, const WeakestKinds& kinds,
      const DeviceProfile& device)
      : work_(work), prices_(prices), kinds_(kinds), device_(device) {}

  SecondsByEvidence Run(double batch_seconds) {
    for (size_t i = 0; i < work_.passes.size(); ++i) AddPass(i);
    for (const GpuWork::Step& step : work_.steps) AddStep(step);
    AddPurpose(CallPurpose::kReduction, work_.reduction_seconds);
    AddPurpose(CallPurpose::kGather, work_.gather_seconds);
    AddPurpose(CallPurpose::kTransfer, work_.transfer_seconds);
    // The rest of the path is assumed to be of the same kinds.
    const double sum = sum_.measured() + sum_.interpolated() + sum_.fitted() +
                       sum_.datasheet() + sum_.assumed() + sum_.given();
    if (!(sum > 0)) return {};
    const double scale = batch_seconds / sum;
    sum_.set_measured(scale * sum_.measured());
    sum_.set_interpolated(scale * sum_.interpolated());
    sum_.set_fitted(scale * sum_.fitted());
    sum_.set_datasheet(scale * sum_.datasheet());
    sum_.set_assumed(scale * sum_.assumed());
    sum_.set_given(scale * sum_.given());
    return sum_;
  }

 private:
  void Add(Figure::Kind kind, double seconds) {
    switch (kind) {
      case Figure::MEASURED:
        return sum_.set_measured(sum_.measured() + seconds);
      case Figure::FITTED:
        return sum_.set_fitted(sum_.fitted() + seconds);
      case Figure::ASSUMED:
        return sum_.set_assumed(sum_.assumed() + seconds);
      default:
        return sum_.set_datasheet(sum_.datasheet() + seconds);
    }
  }

  void AddKernel(size_t index, double seconds) {
    switch (prices_.kernels[index].basis) {
      case calibrate::KernelPrice::Basis::kMeasured:
        return sum_.set_measured(sum_.measured() + seconds);
      case calibrate::KernelPrice::Basis::kInterpolated:
        return sum_.set_interpolated(sum_.interpolated() + seconds);
      case calibrate::KernelPrice::Basis::kFigures:
        return Add(kinds_.of_kernel(index), seconds);
    }
  }

  void AddGiven(double seconds) { sum_.set_given(sum_.given() + seconds); }

  // Adds sharing time, which counts as measured, no matter what it lengthens.
  void AddSharing(double own_seconds, double part) {
    if (part > 0) Add(Figure::MEASURED, own_seconds * part);
  }

  void AddPass(size_t index) {
    const GpuWork::Pass& pass = work_.passes[index];
    const double count = pass.count * work_.pass_scale;
    double own = pass.given_seconds;
    AddGiven(count * pass.given_seconds);
    for (const auto& [kernel, calls] : pass.kernels) {
      const double seconds = prices_.kernels[kernel].seconds;
      const double gap = GapAfter(seconds, prices_.kernel_gap_seconds);
      // A negative gap shortens the kernel and takes no time of its own.
      AddKernel(kernel, count * calls * (seconds + std::min(gap, 0.0)));
      Add(device_.kernel_gap_seconds().kind(),
          count * calls * std::max(gap, 0.0));
      own += calls * (seconds + gap);
    }
    Add(SlowdownFigure(work_, device_).kind(),
        count * std::max(pass.slowdown_seconds, 0.0));
    const double collectives =
        pass.tensor_seconds + pass.expert_seconds + pass.context_seconds;
    const double host = pass.host.Seconds(prices_.runtime) - collectives - own;
    if (host > 0) Add(kinds_.of_host(index), count * host);
    AddSharing(count * (own + std::max(host, 0.0)), pass.sharing_part);
    AddPurpose(CallPurpose::kTensor, count * pass.tensor_seconds);
    AddPurpose(CallPurpose::kExpert, count * pass.expert_seconds);
    AddPurpose(CallPurpose::kContext, count * pass.context_seconds);
  }

  void AddStep(const GpuWork::Step& step) {
    const double count = step.count * work_.step_scale;
    AddKernel(step.kernel, count * prices_.kernels[step.kernel].seconds);
    AddGiven(count * step.given_seconds);
    // Links are those of the cluster's description.
    Add(Figure::DATASHEET, count * step.copy_seconds);
    if (step.host_seconds > 0) {
      Add(prices_.runtime.host_optimizer_bytes_per_second().kind(),
          count * step.host_seconds);
    }
    double own = prices_.kernels[step.kernel].seconds + step.given_seconds +
                 step.copy_seconds + step.host_seconds;
    if (step.updates) {
      const Figure& update = prices_.runtime.update_seconds();
      Add(update.kind(), count * update.value());
      own += update.value();
    }
    AddSharing(count * own, step.sharing_part);
  }

  // Distributes the seconds over the calls of the purpose; without a model of
  // collectives all are from the links' datasheets.
  void AddPurpose(CallPurpose purpose, double seconds) {
    const Figure& exchange = prices_.runtime.exchange_seconds();
    const bool blocking = work_.blocking && purpose == CallPurpose::kTransfer;
    double all = 0;
    for (size_t i = 0; i < work_.calls.size(); ++i) {
      if (work_.calls[i].purpose != purpose) continue;
      all += work_.calls[i].count *
             (prices_.call_seconds[i] + (blocking ? exchange.value() : 0));
    }
    if (!(all > 0)) return Add(Figure::DATASHEET, seconds);
    for (size_t i = 0; i < work_.calls.size(); ++i) {
      if (work_.calls[i].purpose != purpose) continue;
      const double part = seconds * work_.calls[i].count / all;
      Add(kinds_.of_call(i), part * prices_.call_seconds[i]);
      if (blocking) Add(exchange.kind(), part * exchange.value());
    }
  }

  const GpuWork& work_;
  const WorkPrices& prices_;
  const WeakestKinds& kinds_;
  const DeviceProfile& device_;
  SecondsByEvidence sum_;
};

}  // namespace

WeakestKinds::WeakestKinds(const GpuWork& work, const WorkPrices& base)
    : work_(work),
      base_(base),
      kernels_(work.kernels.size(), Figure::DATASHEET),
      calls_(work.calls.size(), Figure::DATASHEET),
      hosts_(work.passes.size(), Figure::DATASHEET) {}

void WeakestKinds::Note(Figure::Kind kind, double log_move,
                        const WorkPrices& moved) {
  for (size_t i = 0; i < kernels_.size(); ++i) {
    Weaken(kind, log_move, base_.kernels[i].seconds, moved.kernels[i].seconds,
           &kernels_[i]);
  }
  for (size_t i = 0; i < calls_.size(); ++i) {
    Weaken(kind, log_move, base_.call_seconds[i], moved.call_seconds[i],
           &calls_[i]);
  }
  for (size_t i = 0; i < hosts_.size(); ++i) {
    const HostWork& host = work_.passes[i].host;
    Weaken(kind, log_move, host.Seconds(base_.runtime),
           host.Seconds(moved.runtime), &hosts_[i]);
  }
}

SecondsByEvidence EvidenceOf(const GpuWork& work, const WorkPrices& prices,
                             const WeakestKinds& kinds,
                             const DeviceProfile& device,
                             double batch_seconds) {
  return Sum(work, prices, kinds, device).Run(batch_seconds);
}

}  // namespace weir::sim
