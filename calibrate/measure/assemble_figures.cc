// SPDX-License-Identifier: Apache-2.0
// Model parameters that are fits or means of measurements.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "calibrate/fabric/fit_transfer.h"
#include "calibrate/fit/cross_validation.h"
#include "calibrate/fit/fit_figures.h"
#include "calibrate/fit/fit_gemms.h"
#include "calibrate/measure/assemble.h"
#include "calibrate/measure/assembler.h"
#include "calibrate/pricing/gemm_seconds.h"
#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/figures.h"
#include "models/layer_work.h"

namespace weir::calibrate {
namespace {

// Fewer samples are not fitted.
constexpr size_t kLeastSelfSends = 6;
// Residuals are errors on a tenth of the samples that the fit excludes. With
// too few samples, the left-out part is not representative.
constexpr int kNumFolds = 10;
constexpr size_t kLeastLeftOut = 20;

double Median(const WorkloadResult& result) { return result.seconds().p50(); }

}  // namespace

absl::Status Assembler::FitMemoryFigures() {
  std::vector<StreamSample> samples;
  std::set<StreamKind> kinds;
  for (const Workload& workload : plan_.workloads) {
    const WorkloadResult* result = Find(workload.key);
    if (workload.kind != Workload::Kind::kCopy || result == nullptr) continue;
    samples.push_back(
        {StreamKind::kMemory, 1, 2 * workload.bytes, Median(*result)});
  }
  for (const TimedOp& timed : ops_) {
    if (timed.op->kernels.size() != 1) continue;
    const models::Kernel& kernel = timed.op->kernels[0];
    if (kernel.kind != models::Kernel::Kind::kMemory || !(kernel.bytes > 0))
      continue;
    samples.push_back({StreamKindOf(kernel.part), double(kernel.launches),
                       kernel.bytes, timed.seconds()});
  }
  if (samples.empty()) return absl::OkStatus();
  std::set<std::pair<StreamKind, double>> sizes;
  for (const StreamSample& sample : samples) {
    kinds.insert(sample.kind);
    sizes.emplace(sample.kind, sample.bytes);
  }
  Figure* figures[] = {profile_.mutable_memory_efficiency(),
                       profile_.mutable_norm_efficiency(),
                       profile_.mutable_elementwise_efficiency()};
  StreamFigures start = {profile_.kernel_seconds().value(), {}};
  for (int i = 0; i < 3; ++i) {
    start.efficiency[i] = figures[figures[i]->value() > 0 ? i : 0]->value();
  }
  ASSIGN_OR_RETURN(
      const StreamFit fit,
      FitStreams(profile_.memory_bytes_per_second().value(), start, samples));
  const std::string source =
      FitSource("copies and memory-bound kernels", fit.errors);
  // With one size per kind, launch time and rate cannot be separated.
  if (sizes.size() > kinds.size()) {
    Set(fit.figures.launch_seconds, Figure::FITTED, source,
        profile_.mutable_kernel_seconds());
  }
  for (const StreamKind kind : kinds) {
    const int i = static_cast<int>(kind);
    Set(fit.figures.efficiency[i], Figure::FITTED, source, figures[i]);
  }
  if (kinds.count(StreamKind::kNorm) == 0 &&
      profile_.norm_efficiency().value() == 0) {
    profile_.clear_norm_efficiency();
  }
  if (kinds.count(StreamKind::kElementwise) == 0 &&
      profile_.elementwise_efficiency().value() == 0) {
    profile_.clear_elementwise_efficiency();
  }
  return SetStreamResidual(start, samples, source);
}

// Sets the residual by cross-validation; with few samples that of the start
// stays.
absl::Status Assembler::SetStreamResidual(
    const StreamFigures& start, absl::Span<const StreamSample> samples,
    const std::string& source) {
  if (samples.size() < kLeastLeftOut) return absl::OkStatus();
  const double peak = profile_.memory_bytes_per_second().value();
  ASSIGN_OR_RETURN(
      const std::vector<double> unseen,
      CrossValidate(
          RowFolds(static_cast<int>(samples.size()), kNumFolds),
          [&](absl::Span<const int> fitted, absl::Span<const int> left_out)
              -> absl::StatusOr<std::vector<double>> {
            std::vector<StreamSample> rest;
            for (int row : fitted) rest.push_back(samples[row]);
            ASSIGN_OR_RETURN(const StreamFit fit,
                             FitStreams(peak, start, rest));
            std::vector<double> seconds;
            for (int row : left_out) {
              seconds.push_back(SecondsOf(peak, fit.figures, samples[row]));
            }
            return seconds;
          }));
  std::vector<double> measured;
  for (const StreamSample& sample : samples) measured.push_back(sample.seconds);
  const double error = SummarizeErrors(unseen, measured).mean_absolute;
  *profile_.mutable_memory_residual() = ResidualOf(
      error, absl::StrFormat("%s, %.2f %% in cross-validation (10 folds)",
                             source, 100 * error));
  return absl::OkStatus();
}

absl::Status Assembler::FitAttentionFigures() {
  if (!of_replays()) return absl::OkStatus();
  std::vector<AttentionSample> samples;
  bool forward = false, backward = false;
  std::set<double> lengths;
  for (const TimedOp& timed : ops_) {
    if (timed.op->kernels.size() != 1) continue;
    const models::Kernel& kernel = timed.op->kernels[0];
    if (kernel.kind != models::Kernel::Kind::kAttention) continue;
    lengths.insert(kernel.n);
    (kernel.num_gemms > 2 ? backward : forward) = true;
    samples.push_back(SampleOf(kernel, timed.seconds()));
  }
  if (samples.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const AttentionFit fit,
                   FitAttention(peak_flops_, profile_.kernel_seconds().value(),
                                AttentionFiguresOf(profile_), samples));
  // The model's own heads and weir's own library were measured.
  profile_.clear_attention_head_sizes();
  profile_.clear_attention_libraries();
  const std::string source = FitSource("runs of fused attention", fit.errors);
  if (forward) {
    Set(fit.figures.forward_efficiency, Figure::FITTED, source,
        profile_.mutable_attention_efficiency());
  }
  if (backward) {
    Set(fit.figures.backward_efficiency, Figure::FITTED, source,
        profile_.mutable_attention_backward_efficiency());
  }
  if (lengths.size() > 1) {
    Set(fit.figures.ramp_keys, Figure::FITTED, source,
        profile_.mutable_attention_ramp_keys());
  }
  return absl::OkStatus();
}

absl::Status Assembler::FitGemmFigures() {
  std::vector<GemmSample> samples;
  Coverage* coverage = profile_.mutable_coverage();
  coverage->clear_gemm_m();
  coverage->clear_gemm_n();
  coverage->clear_gemm_k();
  coverage->clear_batched_gemms();
  for (const TimedOp& timed : ops_) {
    if (timed.op->kernels.size() != 1) continue;
    const models::Kernel& kernel = timed.op->kernels[0];
    if (kernel.kind != models::Kernel::Kind::kGemm) continue;
    samples.push_back({ShapeOf(kernel), timed.seconds()});
    Include(kernel.m, coverage->mutable_gemm_m());
    Include(kernel.n, coverage->mutable_gemm_n());
    Include(kernel.k, coverage->mutable_gemm_k());
    if (kernel.batch > 1) coverage->set_batched_gemms(true);
  }
  if (samples.empty()) return absl::OkStatus();
  const GemmMachine machine = {peak_flops_,
                               profile_.num_multiprocessors().value(),
                               profile_.memory_bytes_per_second().value()};
  GemmModel start = profile_.gemm();
  // The fit determines matrix_rate x sustained_rate, at the clocks of the
  // samples.
  if (journal_.has_sustained()) {
    start.mutable_sustained_rate()->set_value(SampledPartOfBoost());
  }
  ASSIGN_OR_RETURN(GemmFit fit,
                   FitGemms(machine, start, samples, "", Clock::kSustained));
  const std::string source =
      FitSource("GEMMs under sustained load", fit.errors);
  for (const NamedFigure& named : FiguresOf(&fit.model)) {
    if (!named.figure->source().empty()) continue;  // unchanged from the start
    named.figure->set_source(source);
    named.figure->clear_relative_error();
  }
  *profile_.mutable_gemm() = fit.model;
  if (journal_.has_sustained()) SetSustainedRate();
  return SetGemmResidual(machine, start, samples, source);
}

// Returns the rate of the sustained GEMM among the samples over its rate at
// first, when the GPU was cool; if it is not among them, that of its end.
double Assembler::SampledPartOfBoost() const {
  const SustainedResult& sustained = journal_.sustained();
  constexpr absl::string_view kPrefix = "sustained ";
  const WorkloadResult* sampled =
      Find(std::string(absl::StripPrefix(sustained.key(), kPrefix)));
  const double seconds =
      sampled != nullptr ? Median(*sampled) : sustained.last_seconds();
  return std::min(sustained.first_seconds() / seconds, 1.0);
}

void Assembler::SetSustainedRate() {
  const SustainedResult& sustained = journal_.sustained();
  const double rate =
      std::min(sustained.first_seconds() / sustained.last_seconds(), 1.0);
  Set(rate, Figure::MEASURED,
      absl::StrFormat(
          "%s for %.0f s on %s: %.3f ms at first, %.3f ms at %.0f MHz, %.0f W "
          "and %.0f C at the end",
          sustained.key(), sustained.busy_seconds(), where_,
          1e3 * sustained.first_seconds(), 1e3 * sustained.last_seconds(),
          sustained.multiprocessor_hertz() / 1e6, sustained.watts(),
          sustained.celsius()),
      profile_.mutable_gemm()->mutable_sustained_rate());
  constexpr double kNotable = 0.02;
  const double faster = SampledPartOfBoost() * sustained.last_seconds() /
                            sustained.first_seconds() -
                        1;
  if (faster < kNotable) return;
  profile_.mutable_provenance()->add_remarks(absl::StrFormat(
      "GEMMs were measured at clocks that are %.1f %% above those of sustained "
      "load",
      100 * faster));
}

// Leaves out all rows of one (n, k) together, like weir profile import.
absl::Status Assembler::SetGemmResidual(const GemmMachine& machine,
                                        const GemmModel& start,
                                        absl::Span<const GemmSample> samples,
                                        const std::string& source) {
  std::vector<std::pair<double, double>> shapes;
  std::vector<double> measured;
  for (const GemmSample& sample : samples) {
    shapes.emplace_back(sample.shape.n, sample.shape.k);
    measured.push_back(sample.seconds);
  }
  std::vector<int> folds = GroupsOf(shapes);
  if (*std::max_element(folds.begin(), folds.end()) + 1 < kNumFolds) {
    return absl::OkStatus();  // that of the start stays
  }
  for (int& fold : folds) fold %= kNumFolds;
  ASSIGN_OR_RETURN(
      const std::vector<double> unseen,
      CrossValidateGemms(machine, start, samples, folds, Clock::kSustained));
  const double error = SummarizeErrors(unseen, measured).mean_absolute;
  *profile_.mutable_gemm_residual() = ResidualOf(
      error, absl::StrFormat("%s, %.2f %% with their (n, k) left out", source,
                             100 * error));
  return absl::OkStatus();
}

// Fits a line through the origin, with each pass weighted by its relative
// error. Uses all passes if none of one block was measured.
void Assembler::FitGap() {
  std::vector<const MeasuredStage*> fitted, others;
  for (const MeasuredStage& stage : profile_.stages()) {
    (FitsGap(stage) ? fitted : others).push_back(&stage);
  }
  if (fitted.empty()) fitted = std::exchange(others, {});
  if (fitted.empty()) return;
  double gemms = 0, squares = 0;
  for (const MeasuredStage* stage : fitted) {
    const double seconds = PassSeconds(*stage);
    const double n = stage->num_kernels() / seconds;
    gemms += n * (seconds - stage->sum_of_kernels_seconds()) / seconds;
    squares += n * n;
  }
  const double gap = gemms / squares;
  const auto mean_error = [gap](const std::vector<const MeasuredStage*>& of) {
    double error = 0;
    for (const MeasuredStage* stage : of) {
      error += std::abs(
          (stage->sum_of_kernels_seconds() + stage->num_kernels() * gap) /
              PassSeconds(*stage) -
          1);
    }
    return 100 * error / of.size();
  };
  std::string source = absl::StrFormat(
      "%d passes of stages%s minus the sum of their kernels, on %s: mean error "
      "of a pass %.2f %%",
      fitted.size(), of_replays() ? ", launched one by one," : "", where_,
      mean_error(fitted));
  if (!others.empty()) {
    absl::StrAppendFormat(&source, "; of %d other passes %.2f %%",
                          others.size(), mean_error(others));
  }
  Set(gap, Figure::FITTED, source, profile_.mutable_kernel_gap_seconds());
}

void Assembler::FitSlowdowns() {
  for (const bool collectives : {false, true}) {
    double logarithms = 0;
    int n = 0;
    for (const PlannedOverlap& overlap : plan_.overlaps) {
      const WorkloadResult* alone = Find(overlap.alone_key);
      const WorkloadResult* overlapped = Find(overlap.overlapped_key);
      if (overlap.collectives != collectives || !alone || !overlapped) continue;
      logarithms += std::log(Median(*overlapped) / Median(*alone));
      ++n;
    }
    if (n == 0) continue;
    Set(std::exp(logarithms / n), Figure::MEASURED,
        absl::StrFormat("mean of %d GEMMs overlapped with background %s, on %s",
                        n, collectives ? "NCCL self-sends" : "copies", where_),
        collectives ? profile_.mutable_collective_slowdown()
                    : profile_.mutable_copy_slowdown());
  }
}

// Fits NCCL's time of a message from a GPU to itself.
absl::Status Assembler::FitSelfSends() {
  std::vector<TransferSample> samples;
  std::vector<double> knots;
  for (const Workload& workload : plan_.workloads) {
    const WorkloadResult* result = Find(workload.key);
    if (workload.kind != Workload::Kind::kSelfSend || result == nullptr) {
      continue;
    }
    samples.push_back({workload.bytes, Median(*result)});
    knots.push_back(workload.bytes);
  }
  if (samples.size() < kLeastSelfSends) return absl::OkStatus();
  const auto fit = FitTransfer(samples, knots);
  if (!fit.ok()) {
    profile_.mutable_provenance()->add_remarks(absl::StrCat(
        "no self-link of the GPU was fitted: ", fit.status().message()));
    return absl::OkStatus();
  }
  auto* links = profile_.mutable_links();
  for (int i = links->size() - 1; i >= 0; --i) {
    if (links->Get(i).distance() == LinkClass::SAME_GPU) {
      links->DeleteSubrange(i, 1);
    }
  }
  LinkClass* link = profile_.add_links();
  link->set_distance(LinkClass::SAME_GPU);
  link->mutable_pieces()->Assign(fit->pieces.begin(), fit->pieces.end());
  link->set_bidirectional_slowdown(1);
  link->set_num_pairs(1);
  link->set_pair_spread(1);
  link->set_residual(fit->residual);
  Set(fit->pieces.back().bytes_per_second(), Figure::FITTED,
      absl::StrCat(samples.size(), " sizes of self-sends with NCCL ",
                   journal_.provenance().software().nccl(), " on ", where_),
      link->mutable_figure());
  return absl::OkStatus();
}

double PassSeconds(const MeasuredStage& stage) {
  return stage.has_stream_seconds() ? stage.stream_seconds().p50()
                                    : stage.seconds().p50();
}

bool FitsGap(const MeasuredStage& stage) {
  return stage.num_blocks() == 1 && !stage.has_embedding() && !stage.has_head();
}

}  // namespace weir::calibrate
