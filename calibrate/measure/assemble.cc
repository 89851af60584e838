// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/assemble.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "calibrate/measure/assembler.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/software.h"
#include "models/layer_work.h"

namespace weir::calibrate {
namespace {

// A kernel is `throttled` if a larger fraction of its samples is.
constexpr double kThrottledPart = 0.1;

bool Throttled(const WorkloadResult& result) {
  return result.num_power_capped() + result.num_slowed_by_heat() >
         kThrottledPart * result.seconds().num_samples();
}

MeasuredKernel::Kind KindOf(const models::Kernel& kernel) {
  switch (kernel.kind) {
    case models::Kernel::Kind::kGemm:
      return MeasuredKernel::GEMM;
    case models::Kernel::Kind::kAttention:
      return MeasuredKernel::ATTENTION;
    case models::Kernel::Kind::kMemory:
      break;
  }
  return MeasuredKernel::MEMORY;
}

MeasuredKernel KernelOf(const TimedOp& timed, absl::string_view format) {
  const models::Kernel& kernel = timed.op->kernels[0];
  const WorkloadResult& result = *timed.result;
  MeasuredKernel measured;
  measured.set_kind(KindOf(kernel));
  measured.set_part(models::Name(kernel.part));
  measured.set_format(std::string(format));
  measured.set_batch(kernel.batch);
  measured.set_m(kernel.m);
  measured.set_n(kernel.n);
  measured.set_k(kernel.k);
  if (kernel.kind == models::Kernel::Kind::kAttention) {
    measured.set_num_gemms(kernel.num_gemms);
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

}  // namespace

Assembler::Assembler(const MeasuringPlan& plan, const Calibration& journal,
                     const DeviceProfile& start)
    : plan_(plan),
      journal_(journal),
      profile_(start),
      other_start_(OtherStart(start, journal.provenance())) {
  const Provenance& provenance = journal.provenance();
  where_ = absl::StrCat(
      of_part()
          ? absl::StrCat("one of ", journal.num_partitions(), " partitions of ")
          : "",
      provenance.gpu_name(), ", ", provenance.measured_on(), ", weir ",
      provenance.weir_version());
  for (const WorkloadResult& result : journal.workloads()) {
    if (result.state() == WorkloadResult::TIMED) {
      results_[result.key()] = &result;
    }
  }
}

void Assembler::Set(double value, Figure::Kind kind, const std::string& source,
                    Figure* figure) {
  figure->Clear();
  figure->set_value(value);
  figure->set_kind(kind);
  figure->set_source(source);
}

std::string Assembler::FitSource(const char* what,
                                 const ErrorStatistics& errors) const {
  return absl::StrFormat("%d %s on %s: mean error %.2f %%", errors.num_rows,
                         what, where_, 100 * errors.mean_absolute);
}

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

// Skips operations of several kernels (unfused attention), which have no single
// shape; GEMMs of the grid whose shape the model also has; and weir's own
// attention if the profile predicts frameworks, which run other kernels.
void Assembler::AddKernels() {
  profile_.clear_kernels();
  std::set<std::tuple<int, double, double, double, double>> of_model;
  const auto shape = [](const models::Kernel& kernel) {
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
    const bool is_attention =
        timed.op->kernels[0].kind == models::Kernel::Kind::kAttention;
    if (is_attention && !of_replays()) continue;
    *profile_.add_kernels() = KernelOf(timed, Name(plan_.format));
  }
}

void Assembler::AddStages() {
  profile_.clear_stages();
  for (const PlannedPass& pass : plan_.passes) {
    const WorkloadResult* result = Find(pass.key);
    // An optimizer update is not a pass of the schedule: it stays in the
    // journal only.
    if (result == nullptr || pass.pass == ProgramPass::kOptimizer) continue;
    double sum = 0;
    bool whole = true;
    for (const std::string& key : pass.op_keys) {
      const WorkloadResult* op = Find(key);
      whole = whole && op != nullptr;
      if (op != nullptr) sum += op->seconds().p50();
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
    const WorkloadResult* by_stream = Find(pass.stream_key);
    if (by_stream != nullptr) {
      *stage->mutable_stream_seconds() = by_stream->seconds();
    }
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
    memory->set_rounded_bytes(found->second->rounded_bytes());
  }
}

void Assembler::SetMemoryFigures() {
  const Provenance& provenance = journal_.provenance();
  // Partitions share a GPU's memory, and one context with its libraries.
  const double parts = std::max(journal_.num_partitions(), 1U);
  const double processors = of_part() ? journal_.part_multiprocessors()
                                      : provenance.num_multiprocessors();
  if (provenance.memory_bytes() > 0) {
    Set(static_cast<double>(provenance.memory_bytes()) / parts,
        Figure::MEASURED, absl::StrCat("reported by the driver, on ", where_),
        profile_.mutable_memory_bytes());
  }
  if (processors > 0) {
    Set(processors, Figure::MEASURED,
        absl::StrCat("reported by the driver, on ", where_),
        profile_.mutable_num_multiprocessors());
  }
  if (!journal_.has_memory_steps()) return;
  const MemoryStepResult& steps = journal_.memory_steps();
  const std::string source =
      absl::StrCat("device memory in use before and after, on ", where_);
  const double context_bytes = steps.context_bytes() / parts;
  const double library_bytes = steps.library_bytes() / parts;
  Set(context_bytes, Figure::MEASURED, source,
      profile_.mutable_context_bytes());
  Set(library_bytes, Figure::MEASURED, source,
      profile_.mutable_library_bytes());
  Set(steps.workspace_bytes(), Figure::MEASURED, source,
      profile_.mutable_workspace_bytes());
  Set(context_bytes + library_bytes + steps.workspace_bytes(), Figure::MEASURED,
      source, profile_.mutable_reserved_bytes());
}

void Assembler::AddProvenance() {
  // The start may include messages measured by a run with many ranks.
  const Provenance start = profile_.provenance();
  *profile_.mutable_provenance() =
      start.num_ranks() > 1 ? BothProvenances(journal_.provenance(), start)
                            : journal_.provenance();
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
  if (!other_start_.empty()) {
    profile_.mutable_provenance()->add_remarks(other_start_);
  }
  remark(capped, "ran at the power limit");
  remark(hot, "were throttled by temperature");
  remark(drifted, "drifted by more than 2 % and are flagged");
  remark(unsettled, "did not settle in their warm-up");
  remark(refused, "gave wrong results or failed and are left out");
  profile_.mutable_provenance()->add_remarks(
      of_replays()
          ? "predicts replays: attention of weir's own kernels, operations "
            "launched one by one"
          : "predicts frameworks: attention keeps the parameters of the start "
            "profile");
}

absl::StatusOr<DeviceProfile> Assembler::Assemble() {
  RETURN_IF_ERROR(CheckStart(profile_));
  profile_.clear_gpu_names();
  profile_.set_purpose(plan_.purpose);
  if (of_part()) SetPartition();
  ASSIGN_OR_RETURN(peak_flops_, PeakFlops(profile_, Name(plan_.format)));
  CollectOps();
  if (results_.empty()) {
    return absl::InvalidArgumentError(
        "no workload was timed, so no profile can be made");
  }
  SetMemoryFigures();
  AddProvenance();
  AddKernels();
  AddStages();
  AddMemory();
  if (of_part()) AddPartitionSlowdown();
  RETURN_IF_ERROR(FitMemoryFigures());
  RETURN_IF_ERROR(FitAttentionFigures());
  RETURN_IF_ERROR(FitGemmFigures());
  FitGap();
  FitSlowdowns();
  RETURN_IF_ERROR(FitSelfSends());
  return std::move(profile_);
}

absl::StatusOr<DeviceProfile> AssembleProfile(const MeasuringPlan& plan,
                                              const Calibration& journal,
                                              const DeviceProfile& start) {
  return Assembler(plan, journal, start).Assemble();
}

}  // namespace weir::calibrate
