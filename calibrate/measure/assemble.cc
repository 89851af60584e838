// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/assemble.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/assets.h"
#include "base/status_macros.h"
#include "calibrate/device_profile.h"
#include "calibrate/figures.h"
#include "calibrate/fit/fit_products.h"
#include "calibrate/measure/fit_figures.h"

namespace weir {
namespace {

// Samples beyond this part of all make a kernel `throttled`.
constexpr double kThrottledPart = 0.1;

using Results = std::map<std::string, const WorkloadResult*>;

// An operation of the plan that was timed.
struct TimedOp {
  const StageOp* op;
  const WorkloadResult* result;
  bool of_pass = false;  // else only for fits
};

double Median(const WorkloadResult& result) { return result.seconds().p50(); }

bool Throttled(const WorkloadResult& result) {
  return result.num_power_capped() + result.num_slowed_by_heat() >
         kThrottledPart * result.seconds().num_samples();
}

class Assembler {
 public:
  Assembler(const Plan& plan, const Calibration& journal,
            const DeviceProfile& start)
      : plan_(plan), journal_(journal), profile_(start) {
    const Provenance& provenance = journal.provenance();
    where_ = absl::StrCat(provenance.gpu_name(), ", ", provenance.measured_on(),
                          ", weir ", provenance.weir_version());
    for (const WorkloadResult& result : journal.workloads()) {
      if (result.state() == WorkloadResult::TIMED) {
        results_[result.key()] = &result;
      }
    }
  }

  absl::StatusOr<DeviceProfile> Assemble();

 private:
  void CollectOps();
  void AddKernels();
  void AddStages();
  void AddMemory();
  absl::Status FitMemoryFigures();
  absl::Status FitAttentionFigures();
  absl::Status FitProductFigures();
  void FitGap();
  void FitSlowdowns();
  void SetMemoryFigures();
  void AddProvenance();

  const WorkloadResult* Find(const std::string& key) const {
    const auto found = results_.find(key);
    return found == results_.end() ? nullptr : found->second;
  }
  void Set(double value, Figure::Kind kind, const std::string& source,
           Figure* figure) const {
    figure->Clear();
    figure->set_value(value);
    figure->set_kind(kind);
    figure->set_source(source);
  }
  std::string FitSource(const char* what, const ErrorStatistics& errors) const {
    return absl::StrFormat("%d %s on %s: mean error %.2f %%", errors.num_rows,
                           what, where_, 100 * errors.mean_absolute);
  }

  const Plan& plan_;
  const Calibration& journal_;
  DeviceProfile profile_;
  std::string where_;
  double peak_flops_ = 0;
  Results results_;
  std::vector<TimedOp> ops_;
};

void Assembler::CollectOps() {
  std::set<std::string> of_passes;
  for (const PlannedPass& pass : plan_.passes) {
    of_passes.insert(pass.op_keys.begin(), pass.op_keys.end());
  }
  for (const Workload& workload : plan_.workloads) {
    if (workload.kind != Workload::Kind::kOp) continue;
    const WorkloadResult* result = Find(workload.key);
    if (result == nullptr) continue;
    ops_.push_back(
        {&OpOf(workload), result, of_passes.count(workload.key) > 0});
  }
}

MeasuredKernel::Kind KindOf(const Kernel& kernel) {
  switch (kernel.kind) {
    case Kernel::Kind::kProduct:
      return MeasuredKernel::PRODUCT;
    case Kernel::Kind::kAttention:
      return MeasuredKernel::ATTENTION;
    case Kernel::Kind::kMemory:
      break;
  }
  return MeasuredKernel::MEMORY;
}

MeasuredKernel KernelOf(const TimedOp& timed, absl::string_view format) {
  const Kernel& kernel = timed.op->kernels[0];
  const WorkloadResult& result = *timed.result;
  MeasuredKernel measured;
  measured.set_kind(KindOf(kernel));
  measured.set_part(Name(kernel.part));
  measured.set_format(std::string(format));
  measured.set_batch(kernel.batch);
  measured.set_m(kernel.m);
  measured.set_n(kernel.n);
  measured.set_k(kernel.k);
  if (kernel.kind == Kernel::Kind::kAttention) {
    measured.set_products(kernel.products);
    measured.set_causal(timed.op->causal);
  }
  measured.set_bytes(kernel.bytes);
  measured.set_performed_flops(
      kernel.performed_flops > 0 ? kernel.performed_flops : kernel.flops);
  *measured.mutable_seconds() = result.seconds();
  measured.set_host_launch_seconds(result.host_launch_seconds());
  measured.set_multiprocessor_hertz(result.multiprocessor_hertz());
  measured.set_watts(result.watts());
  measured.set_throttled(Throttled(result));
  measured.set_algorithm(result.algorithm());
  return measured;
}

// Operations of several kernels (unfused attention) have no shape of one. A
// product of the grid stays out where the model has the same.
void Assembler::AddKernels() {
  profile_.clear_kernels();
  std::set<std::tuple<int, double, double, double, double>> of_model;
  const auto shape = [](const Kernel& kernel) {
    return std::make_tuple(static_cast<int>(kernel.kind), kernel.batch,
                           kernel.m, kernel.n, kernel.k);
  };
  for (const TimedOp& timed : ops_) {
    if (timed.op->kernels.size() == 1 && timed.of_pass) {
      of_model.insert(shape(timed.op->kernels[0]));
    }
  }
  for (const TimedOp& timed : ops_) {
    if (timed.op->kernels.size() != 1) continue;
    const bool known = of_model.count(shape(timed.op->kernels[0])) > 0;
    if (!timed.of_pass && known) continue;
    *profile_.add_kernels() = KernelOf(timed, Name(plan_.format));
  }
}

void Assembler::AddStages() {
  profile_.clear_stages();
  for (const PlannedPass& pass : plan_.passes) {
    const WorkloadResult* result = Find(pass.key);
    if (result == nullptr) continue;
    double sum = 0;
    bool whole = true;
    for (const std::string& key : pass.op_keys) {
      const WorkloadResult* op = Find(key);
      whole = whole && op != nullptr;
      if (op != nullptr) sum += Median(*op);
    }
    if (!whole) continue;
    const PlannedStage& planned = plan_.stages[pass.stage];
    MeasuredStage* stage = profile_.add_stages();
    stage->set_model(plan_.model);
    stage->set_pass(Name(pass.pass));
    stage->set_num_blocks(planned.num_blocks);
    stage->set_has_embedding(planned.has_embedding);
    stage->set_has_head(planned.has_head);
    stage->set_microbatch_size(planned.spec.work.microbatch_size);
    stage->set_sequence_length(planned.spec.work.sequence_length);
    stage->set_tensor_parallel(planned.spec.work.tensor_parallel);
    stage->set_num_kernels(pass.op_keys.size());
    *stage->mutable_seconds() = result->seconds();
    stage->set_sum_of_kernels_seconds(sum);
  }
}

void Assembler::AddMemory() {
  profile_.clear_memory();
  std::map<std::string, const MeasuredMemory*> measured;
  for (const StageMemoryResult& result : journal_.stage_memory()) {
    if (result.has_memory()) measured[result.key()] = &result.memory();
  }
  for (const PlannedMemory& planned : plan_.memory) {
    const auto found = measured.find(planned.key);
    if (found == measured.end()) continue;
    const PlannedStage& stage = plan_.stages[planned.stage];
    MeasuredMemory* memory = profile_.add_memory();
    memory->set_model(plan_.model);
    memory->set_num_blocks(stage.num_blocks);
    memory->set_has_embedding(stage.has_embedding);
    memory->set_has_head(stage.has_head);
    memory->set_microbatch_size(stage.spec.work.microbatch_size);
    memory->set_sequence_length(stage.spec.work.sequence_length);
    memory->set_tensor_parallel(stage.spec.work.tensor_parallel);
    memory->set_num_microbatches(planned.num_microbatches);
    memory->set_predicted_bytes(
        PredictedPeakBytes(*stage.program, planned.num_microbatches));
    memory->set_used_high_bytes(found->second->used_high_bytes());
    memory->set_reserved_high_bytes(found->second->reserved_high_bytes());
  }
}

StreamKind StreamKindOf(KernelPart part) {
  switch (part) {
    case KernelPart::kNorm:
      return StreamKind::kNorm;
    case KernelPart::kElementwise:
    case KernelPart::kSoftmax:
      return StreamKind::kElementwise;
    default:
      return StreamKind::kMemory;
  }
}

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
    const Kernel& kernel = timed.op->kernels[0];
    if (kernel.kind != Kernel::Kind::kMemory || !(kernel.bytes > 0)) continue;
    samples.push_back({StreamKindOf(kernel.part), double(kernel.launches),
                       kernel.bytes, Median(*timed.result)});
  }
  if (samples.empty()) return absl::OkStatus();
  for (const StreamSample& sample : samples) kinds.insert(sample.kind);
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
      FitSource("copies and kernels that move bytes", fit.errors);
  Set(fit.figures.launch_seconds, Figure::FITTED, source,
      profile_.mutable_kernel_seconds());
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
  *profile_.mutable_memory_residual() =
      ResidualOf(fit.errors.mean_absolute, source);
  return absl::OkStatus();
}

absl::Status Assembler::FitAttentionFigures() {
  std::vector<AttentionSample> samples;
  bool backward = false;
  for (const TimedOp& timed : ops_) {
    if (timed.op->kernels.size() != 1) continue;
    const Kernel& kernel = timed.op->kernels[0];
    if (kernel.kind != Kernel::Kind::kAttention) continue;
    AttentionSample sample;
    sample.products = kernel.products;
    sample.flops =
        kernel.performed_flops > 0 ? kernel.performed_flops : kernel.flops;
    sample.flops_per_ramp_key =
        2 * kernel.products * kernel.batch * kernel.m * kernel.k;
    sample.launches = kernel.launches;
    sample.seconds = Median(*timed.result);
    backward = backward || kernel.products > 2;
    samples.push_back(sample);
  }
  if (samples.empty()) return absl::OkStatus();
  AttentionFigures start;
  start.forward_efficiency = profile_.has_attention_efficiency()
                                 ? profile_.attention_efficiency().value()
                                 : 0.5;
  start.backward_efficiency =
      profile_.has_attention_backward_efficiency()
          ? profile_.attention_backward_efficiency().value()
          : start.forward_efficiency;
  start.ramp_keys = profile_.attention_ramp_keys().value();
  ASSIGN_OR_RETURN(const AttentionFit fit,
                   FitAttention(peak_flops_, profile_.kernel_seconds().value(),
                                start, samples));
  const std::string source = FitSource("runs of fused attention", fit.errors);
  Set(fit.figures.forward_efficiency, Figure::FITTED, source,
      profile_.mutable_attention_efficiency());
  if (backward) {
    Set(fit.figures.backward_efficiency, Figure::FITTED, source,
        profile_.mutable_attention_backward_efficiency());
  }
  Set(fit.figures.ramp_keys, Figure::FITTED, source,
      profile_.mutable_attention_ramp_keys());
  return absl::OkStatus();
}

absl::Status Assembler::FitProductFigures() {
  std::vector<ProductSample> samples;
  Coverage* coverage = profile_.mutable_coverage();
  coverage->clear_product_m();
  coverage->clear_product_n();
  coverage->clear_product_k();
  coverage->clear_batched_products();
  for (const TimedOp& timed : ops_) {
    if (timed.op->kernels.size() != 1) continue;
    const Kernel& kernel = timed.op->kernels[0];
    if (kernel.kind != Kernel::Kind::kProduct) continue;
    samples.push_back({ShapeOf(kernel), Median(*timed.result)});
    Include(kernel.m, coverage->mutable_product_m());
    Include(kernel.n, coverage->mutable_product_n());
    Include(kernel.k, coverage->mutable_product_k());
    if (kernel.batch > 1) coverage->set_batched_products(true);
  }
  if (samples.empty()) return absl::OkStatus();
  const ProductMachine machine = {peak_flops_,
                                  profile_.num_multiprocessors().value(),
                                  profile_.memory_bytes_per_second().value()};
  ASSIGN_OR_RETURN(ProductFit fit, FitProducts(machine, profile_.product(),
                                               samples, "", Clock::kSustained));
  const std::string source = FitSource("products in steady work", fit.errors);
  for (const NamedFigure& named : FiguresOf(&fit.model)) {
    if (!named.figure->source().empty()) continue;  // as it was at the start
    named.figure->set_source(source);
    named.figure->clear_relative_error();
  }
  *profile_.mutable_product() = fit.model;
  *profile_.mutable_product_residual() =
      ResidualOf(fit.errors.mean_absolute, source);
  return absl::OkStatus();
}

// Through the origin, each pass weighed by its relative error.
void Assembler::FitGap() {
  double products = 0, squares = 0;
  int num_passes = 0;
  for (const MeasuredStage& stage : profile_.stages()) {
    const double seconds = stage.seconds().p50();
    const double n = stage.num_kernels() / seconds;
    products += n * (seconds - stage.sum_of_kernels_seconds()) / seconds;
    squares += n * n;
    ++num_passes;
  }
  if (num_passes == 0) return;
  const double gap = products / squares;
  double error = 0;
  for (const MeasuredStage& stage : profile_.stages()) {
    error +=
        std::abs((stage.sum_of_kernels_seconds() + stage.num_kernels() * gap) /
                     stage.seconds().p50() -
                 1);
  }
  Set(gap, Figure::FITTED,
      absl::StrFormat("%d passes of stages less their kernels, on %s: mean "
                      "error of a pass %.2f %%",
                      num_passes, where_, 100 * error / num_passes),
      profile_.mutable_kernel_gap_seconds());
}

void Assembler::FitSlowdowns() {
  for (const bool collectives : {false, true}) {
    double logarithms = 0;
    int n = 0;
    for (const PlannedOverlap& overlap : plan_.overlaps) {
      const WorkloadResult* alone = Find(overlap.alone_key);
      const WorkloadResult* beside = Find(overlap.beside_key);
      if (overlap.collectives != collectives || !alone || !beside) continue;
      logarithms += std::log(Median(*beside) / Median(*alone));
      ++n;
    }
    if (n == 0) continue;
    Set(std::exp(logarithms / n), Figure::MEASURED,
        absl::StrFormat("mean of %d products beside endless %s, on %s", n,
                        collectives ? "self-sends of NCCL" : "copies", where_),
        collectives ? profile_.mutable_collective_slowdown()
                    : profile_.mutable_copy_slowdown());
  }
}

void Assembler::SetMemoryFigures() {
  const Provenance& provenance = journal_.provenance();
  if (provenance.memory_bytes() > 0) {
    Set(static_cast<double>(provenance.memory_bytes()), Figure::MEASURED,
        absl::StrCat("what the driver says, on ", where_),
        profile_.mutable_memory_bytes());
  }
  if (provenance.num_multiprocessors() > 0) {
    Set(provenance.num_multiprocessors(), Figure::MEASURED,
        absl::StrCat("what the driver says, on ", where_),
        profile_.mutable_num_multiprocessors());
  }
  if (!journal_.has_memory_steps()) return;
  const MemoryStepResult& steps = journal_.memory_steps();
  const std::string source =
      absl::StrCat("device memory in use before and after, on ", where_);
  Set(steps.context_bytes(), Figure::MEASURED, source,
      profile_.mutable_context_bytes());
  Set(steps.library_bytes(), Figure::MEASURED, source,
      profile_.mutable_library_bytes());
  Set(steps.workspace_bytes(), Figure::MEASURED, source,
      profile_.mutable_workspace_bytes());
  Set(steps.context_bytes() + steps.library_bytes() + steps.workspace_bytes(),
      Figure::MEASURED, source, profile_.mutable_reserved_bytes());
}

void Assembler::AddProvenance() {
  *profile_.mutable_provenance() = journal_.provenance();
  int capped = 0, hot = 0, drifted = 0, unsettled = 0, refused = 0;
  for (const WorkloadResult& result : journal_.workloads()) {
    capped += result.num_power_capped() > 0;
    hot += result.num_slowed_by_heat() > 0;
    drifted += result.drifted();
    unsettled += result.unsettled();
    refused += result.state() == WorkloadResult::REFUSED;
  }
  const auto remark = [&](int n, const char* what) {
    if (n == 0) return;
    profile_.mutable_provenance()->add_remarks(absl::StrCat(
        n, " of ", journal_.workloads_size(), " workloads ", what));
  };
  remark(capped, "ran at the power limit");
  remark(hot, "were slowed by heat");
  remark(drifted, "drifted by more than 2 % and are flagged");
  remark(unsettled, "did not settle in their warm-up");
  remark(refused, "were wrong or broke and are left out");
}

absl::StatusOr<DeviceProfile> Assembler::Assemble() {
  ASSIGN_OR_RETURN(peak_flops_, PeakFlops(profile_, Name(plan_.format)));
  CollectOps();
  if (ops_.empty()) {
    return absl::InvalidArgumentError(
        "no operation was timed: there is nothing to make a profile of");
  }
  SetMemoryFigures();
  AddProvenance();
  AddKernels();
  AddStages();
  AddMemory();
  RETURN_IF_ERROR(FitMemoryFigures());
  RETURN_IF_ERROR(FitAttentionFigures());
  RETURN_IF_ERROR(FitProductFigures());
  FitGap();
  FitSlowdowns();
  return std::move(profile_);
}

}  // namespace

absl::StatusOr<std::string> StartProfileOf(const std::string& gpu_name) {
  struct Known {
    const char* part;  // of the driver's name
    const char* preset;
  };
  // The first that fits; "H100 80GB HBM3" is the SXM board, "H100 PCIe" not.
  static constexpr Known kKnown[] = {
      {"B200", "b200-sxm"},
      {"H200", "h200-sxm"},
      {"H100 80GB HBM3", "h100-sxm"},
      {"H100 SXM5 96GB", "h100-sxm-96gb-500w"},
      {"A100-SXM4-80GB", "a100-sxm-80gb"},
      {"A100-SXM4-40GB", "a100-sxm-40gb"},
      {"V100-SXM2-32GB", "v100-sxm2-32gb"},
      {"V100-SXM2-16GB", "v100-sxm2-16gb"},
      {"Tesla T4", "t4"},
  };
  // "NVIDIA H200 NVL" is another board: less power, other links.
  for (const Known& known : kKnown) {
    if (absl::StrContains(gpu_name, known.part) &&
        !absl::StrContains(gpu_name, "NVL")) {
      return known.preset;
    }
  }
  std::vector<std::string> presets;
  for (const std::string& name : ListAssets("calibrate")) {
    presets.push_back(name);
  }
  return absl::NotFoundError(absl::StrCat(
      "no preset is known for \"", gpu_name,
      "\": give the nearest, or a profile of your own, with --start (",
      absl::StrJoin(presets, ", "), ")"));
}

absl::StatusOr<DeviceProfile> AssembleProfile(const Plan& plan,
                                              const Calibration& journal,
                                              const DeviceProfile& start) {
  return Assembler(plan, journal, start).Assemble();
}

}  // namespace weir
