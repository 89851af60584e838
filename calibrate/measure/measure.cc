// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure/measure.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "calibrate/measure/journal.h"

namespace weir::calibrate {
namespace {

constexpr int kMostBrokenInARow = 3;

// Returns true if the GPU or its context is lost; nothing else will work then.
bool IsFatal(const absl::Status& status) {
  return absl::IsCancelled(status) || absl::IsUnavailable(status) ||
         absl::IsAborted(status) || absl::IsDeadlineExceeded(status);
}

bool CannotDo(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnimplemented(status);
}

class Measurer {
 public:
  Measurer(const MeasuringPlan& plan, const CalibrationOptions& options,
           const CalibrationHooks& hooks, Bench* bench, Calibration* journal)
      : plan_(plan),
        options_(options),
        hooks_(hooks),
        bench_(bench),
        journal_(journal) {
    for (const PlannedPass& pass : plan.passes) {
      passes_[pass.key] = passes_[pass.stream_key] = &pass;
    }
    passes_.erase("");  // no stream_key
    for (const PlannedLoad& load : plan.loads) {
      passes_[load.key] = &plan.passes[load.pass];
    }
    std::map<std::string, const Workload*> planned;
    for (const Workload& workload : plan.workloads) {
      planned[workload.key] = &workload;
    }
    for (int i = 0; i < journal->workloads_size(); ++i) {
      const WorkloadResult& result = journal->workloads(i);
      index_[result.key()] = i;
      // An earlier run ended before it timed the reference again.
      if (result.state() == WorkloadResult::TIMED &&
          result.reference_ratio() == 0 && planned.count(result.key()) > 0) {
        recent_.push_back(planned[result.key()]);
      }
    }
  }

  absl::Status Run();

 private:
  absl::Status MeasureMemorySteps();
  absl::Status MeasureSustained();
  absl::Status MeasureStages();
  absl::Status MeasureNew(const Workload& workload);
  // Measures into `result`; a returned error is fatal.
  // `before`: an earlier result of the workload, or null.
  absl::Status MeasureOne(const Workload& workload,
                          const WorkloadResult* before, WorkloadResult* result);
  absl::Status VerifyAndTime(const Workload& workload,
                             const WorkloadResult* before,
                             WorkloadResult* result);
  // Returns why the pass cannot be timed, or an empty string.
  std::string Hindrance(const Workload& workload) const;

  struct ReferenceTime {
    double seconds = 0;
    bool power_capped = false;  // most of its samples
  };
  absl::StatusOr<ReferenceTime> TimeReference();
  absl::Status CheckReference();
  absl::Status RepeatRecent();
  void NoteReference(double ratio, bool drifted);
  absl::Status Save() {
    return hooks_.save ? hooks_.save(*journal_) : absl::OkStatus();
  }
  absl::Status CheckStop() const {
    return hooks_.stop && hooks_.stop() ? absl::CancelledError("interrupted")
                                        : absl::OkStatus();
  }

  const MeasuringPlan& plan_;
  const CalibrationOptions& options_;
  const CalibrationHooks& hooks_;
  Bench* bench_;
  Calibration* journal_;
  std::map<std::string, const PlannedPass*> passes_;
  std::map<std::string, int> index_;  // into the journal's workloads, by key
  int broken_in_a_row_ = 0;
  std::unique_ptr<PreparedWorkload> reference_;
  double busy_seconds_ = 0;              // since the reference was timed
  ReferenceTime steady_reference_;       // the last time of the reference
  std::vector<const Workload*> recent_;  // measured since then
};

absl::Status Measurer::MeasureMemorySteps() {
  if (journal_->has_memory_steps()) return absl::OkStatus();
  if (hooks_.begin) hooks_.begin("memory of context, libraries and NCCL");
  const auto steps = bench_->MeasureMemorySteps();
  if (IsFatal(steps.status())) return steps.status();
  if (!steps.ok()) {
    journal_->mutable_provenance()->add_remarks(
        absl::StrCat("memory of context, libraries and NCCL is not measured: ",
                     steps.status().message()));
    return absl::OkStatus();
  }
  MemoryStepResult* result = journal_->mutable_memory_steps();
  result->set_context_bytes(steps->context_bytes);
  result->set_library_bytes(steps->library_bytes);
  result->set_workspace_bytes(steps->workspace_bytes);
  result->set_communicator_bytes(steps->communicator_bytes);
  result->set_communication_bytes(steps->communication_bytes);
  return Save();
}

// Adds a remark if the measurement fails; the profile then keeps the sustained
// rate that it started with.
absl::Status Measurer::MeasureSustained() {
  const Workload& workload = plan_.sustained;
  if (journal_->has_sustained() || workload.key.empty() ||
      !(options_.sustained_seconds > 0)) {
    return absl::OkStatus();
  }
  if (hooks_.begin) hooks_.begin(workload.key);
  const auto measure = [&]() -> absl::StatusOr<SustainedResult> {
    ASSIGN_OR_RETURN(const std::unique_ptr<PreparedWorkload> prepared,
                     bench_->Prepare(workload));
    return SampleSustained(prepared.get(), options_.sustained_seconds,
                           hooks_.stop);
  };
  absl::StatusOr<SustainedResult> result = measure();
  if (IsFatal(result.status())) return result.status();
  if (!result.ok()) {
    journal_->mutable_provenance()->add_remarks(
        absl::StrCat("clocks under sustained load are not measured: ",
                     result.status().message()));
    return absl::OkStatus();
  }
  result->set_key(workload.key);
  *journal_->mutable_sustained() = *std::move(result);
  return Save();
}

std::string Measurer::Hindrance(const Workload& workload) const {
  const auto pass = passes_.find(workload.key);
  if (pass == passes_.end()) return "";
  for (const std::string& key : pass->second->op_keys) {
    const auto op = index_.find(key);
    if (op == index_.end()) continue;
    const WorkloadResult& result = journal_->workloads(op->second);
    if (result.state() == WorkloadResult::REFUSED ||
        result.state() == WorkloadResult::SKIPPED) {
      return absl::StrCat("its operation \"", key, "\" was not measured");
    }
  }
  return "";
}

absl::Status Measurer::VerifyAndTime(const Workload& workload,
                                     const WorkloadResult* before,
                                     WorkloadResult* result) {
  ASSIGN_OR_RETURN(const std::unique_ptr<PreparedWorkload> prepared,
                   bench_->Prepare(workload));
  double error = 0;
  if (before != nullptr && workload.kind == Workload::Kind::kOp &&
      before->algorithm() == prepared->algorithm()) {
    // Inputs and kernels are the same, and the host's reference takes longer
    // than timing.
    error = before->relative_error();
  } else {
    ASSIGN_OR_RETURN(error, prepared->Verify());
  }
  result->set_relative_error(error);
  result->set_algorithm(prepared->algorithm());
  // NaN is refused too.
  if (!(error <= options_.max_relative_error)) {
    result->set_state(WorkloadResult::REFUSED);
    result->set_reason(absl::StrFormat(
        "relative error %.2g against double precision, expected at most %.2g",
        error, options_.max_relative_error));
    return absl::OkStatus();
  }
  if (options_.only_verify) {
    result->set_state(WorkloadResult::VERIFIED);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(
      const double seconds,
      SampleWorkload(prepared.get(), options_.sampling, hooks_.stop, result));
  busy_seconds_ += seconds;
  result->set_state(WorkloadResult::TIMED);
  return absl::OkStatus();
}

absl::Status Measurer::MeasureOne(const Workload& workload,
                                  const WorkloadResult* before,
                                  WorkloadResult* result) {
  RETURN_IF_ERROR(CheckStop());
  if (hooks_.begin) hooks_.begin(workload.key);
  result->set_key(workload.key);
  const std::string hindrance = Hindrance(workload);
  if (!hindrance.empty()) {
    result->set_state(WorkloadResult::SKIPPED);
    result->set_reason(hindrance);
    return absl::OkStatus();
  }
  absl::Status status = VerifyAndTime(workload, before, result);
  if (status.ok()) {
    broken_in_a_row_ = 0;
    return status;
  }
  if (IsFatal(status)) return status;
  result->set_state(CannotDo(status) ? WorkloadResult::SKIPPED
                                     : WorkloadResult::REFUSED);
  result->set_reason(std::string(status.message()));
  if (CannotDo(status)) return absl::OkStatus();
  if (++broken_in_a_row_ < kMostBrokenInARow) return absl::OkStatus();
  // Times the reference to tell failing workloads from a failing GPU.
  broken_in_a_row_ = 0;
  const absl::Status reference =
      options_.only_verify ? status : TimeReference().status();
  if (reference.ok()) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat(kMostBrokenInARow, " workloads in a row failed, the last \"",
                   workload.key, "\": ", status.message()));
}

absl::Status Measurer::MeasureNew(const Workload& workload) {
  WorkloadResult result;
  RETURN_IF_ERROR(MeasureOne(workload, nullptr, &result));
  index_[workload.key] = journal_->workloads_size();
  *journal_->add_workloads() = result;
  if (result.state() == WorkloadResult::TIMED) recent_.push_back(&workload);
  RETURN_IF_ERROR(Save());
  if (hooks_.end) hooks_.end(result);
  if (busy_seconds_ < options_.reference_every_seconds) return absl::OkStatus();
  return CheckReference();
}

absl::StatusOr<Measurer::ReferenceTime> Measurer::TimeReference() {
  // Kept, since another choice of algorithm would look like drift.
  if (reference_ == nullptr) {
    ASSIGN_OR_RETURN(reference_, bench_->Prepare(plan_.reference));
  }
  WorkloadResult result;
  RETURN_IF_ERROR(
      SampleWorkload(reference_.get(), options_.sampling, hooks_.stop, &result)
          .status());
  busy_seconds_ = 0;
  return ReferenceTime{
      result.seconds().p50(),
      2 * result.num_power_capped() > result.seconds().num_samples()};
}

void Measurer::NoteReference(double ratio, bool drifted) {
  for (const Workload* workload : recent_) {
    WorkloadResult* result = journal_->mutable_workloads(index_[workload->key]);
    result->set_reference_ratio(ratio);
    result->set_drifted(drifted);
  }
}

absl::Status Measurer::RepeatRecent() {
  for (const Workload* workload : recent_) {
    WorkloadResult* result = journal_->mutable_workloads(index_[workload->key]);
    WorkloadResult again;
    RETURN_IF_ERROR(MeasureOne(*workload, result, &again));
    // If the repeat fails, the earlier result stays.
    if (again.state() != WorkloadResult::TIMED) continue;
    again.set_num_repeats(result->num_repeats() + 1);
    *result = again;
  }
  return Save();
}

// The reference is compared with its previous time, so that a permanent change
// of the device is detected only once, and with its first time, so that all
// results of a profile are consistent.
absl::Status Measurer::CheckReference() {
  const auto moved = [&](double ratio) {
    return std::abs(ratio - 1) > options_.max_drift;
  };
  // At the power limit, clocks vary with the GPU's temperature. They do so
  // during a repetition, too.
  const auto is_episode = [&](const ReferenceTime& now) {
    return moved(now.seconds / steady_reference_.seconds) &&
           !(now.power_capped && steady_reference_.power_capped);
  };
  ASSIGN_OR_RETURN(ReferenceTime now, TimeReference());
  for (int i = 0;
       i < options_.max_repeats && is_episode(now) && !recent_.empty(); ++i) {
    steady_reference_ = now;
    RETURN_IF_ERROR(RepeatRecent());
    ASSIGN_OR_RETURN(now, TimeReference());
  }
  const double ratio = now.seconds / journal_->reference_seconds();
  NoteReference(ratio,
                moved(ratio) || moved(now.seconds / steady_reference_.seconds));
  steady_reference_ = now;
  recent_.clear();
  return Save();
}

absl::Status Measurer::MeasureStages() {
  for (const PlannedMemory& planned : plan_.memory) {
    if (FindMemory(*journal_, planned.key) != nullptr) continue;
    RETURN_IF_ERROR(CheckStop());
    if (hooks_.begin) hooks_.begin(planned.key);
    const StageProgram& program = *plan_.stages[planned.stage].program;
    auto memory = bench_->MeasureStageMemory(program, planned.num_microbatches);
    if (IsFatal(memory.status())) return memory.status();
    StageMemoryResult* result = journal_->add_stage_memory();
    result->set_key(planned.key);
    if (memory.ok()) {
      *result->mutable_memory() = *std::move(memory);
    } else {
      result->set_reason(std::string(memory.status().message()));
    }
    RETURN_IF_ERROR(Save());
    if (hooks_.end) hooks_.end(WorkloadResult());
  }
  return absl::OkStatus();
}

absl::Status Measurer::Run() {
  if (!options_.only_verify) {
    RETURN_IF_ERROR(MeasureMemorySteps());
    if (hooks_.begin) hooks_.begin("reference GEMM");
    RETURN_IF_ERROR(MeasureSustained());
    ASSIGN_OR_RETURN(steady_reference_, TimeReference());
    if (journal_->reference_seconds() == 0) {
      journal_->set_reference_seconds(steady_reference_.seconds);
      RETURN_IF_ERROR(Save());
    }
  }
  for (const Workload& workload : plan_.workloads) {
    if (index_.count(workload.key) == 0) RETURN_IF_ERROR(MeasureNew(workload));
  }
  if (options_.only_verify) return absl::OkStatus();
  if (!recent_.empty()) RETURN_IF_ERROR(CheckReference());
  reference_.reset();
  return MeasureStages();
}

}  // namespace

absl::Status Measure(const MeasuringPlan& plan,
                     const CalibrationOptions& options,
                     const CalibrationHooks& hooks, Bench* bench,
                     Calibration* journal) {
  return Measurer(plan, options, hooks, bench, journal).Run();
}

int NumRefused(const Calibration& journal) {
  return static_cast<int>(
      std::count_if(journal.workloads().begin(), journal.workloads().end(),
                    [](const WorkloadResult& result) {
                      return result.state() == WorkloadResult::REFUSED;
                    }));
}

}  // namespace weir::calibrate
