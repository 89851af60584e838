// SPDX-License-Identifier: Apache-2.0
// A pass on one GPU partition while others work on the same stage.
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/gpu/background_load.h"
#include "calibrate/gpu/stage_workload.h"
#include "calibrate/gpu/workloads.h"

namespace weir::calibrate {
namespace {

// The passes of a microbatch, repeated on one partition. The optimizer update
// is excluded, as it runs once per many microbatches.
constexpr ProgramPass kPasses[] = {ProgramPass::kForward,
                                   ProgramPass::kBackwardInput,
                                   ProgramPass::kBackwardWeight};

class BusyPart {
 public:
  absl::Status TakeMemory(const BenchDevice& device, const Workload& workload,
                          int part) {
    ASSIGN_OR_RETURN(stream_, device.partitions->part(part).MakeStream());
    ASSIGN_OR_RETURN(workspace_,
                     Allocate(device.options.workspace_bytes,
                              "the workspace of another partition"));
    // One set suffices if a microbatch exceeds the cache, which holds for those
    // that are worth a partition.
    ASSIGN_OR_RETURN(
        sets_, BufferSets::Create(device, *workload.program,
                                  AllBuffers(*workload.program),
                                  std::numeric_limits<int64_t>::max(), true));
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<BackgroundLoad>> MakeLoad(
      const BenchDevice& device, const Workload& workload, int part) {
    executor_ = std::make_unique<StageExecutor>(
        workload.program, device.executor_options(), device.gemms.get());
    const Lane lane = {stream_.get(),
                       {workspace_.get(), device.options.workspace_bytes}};
    int num_ops = 0;
    for (const ProgramPass pass : kPasses) {
      RETURN_IF_ERROR(executor_->PlanPass(pass, {}, lane));
      num_ops += static_cast<int>(workload.program->ops(pass).size());
    }
    return BackgroundLoad::Create(
        absl::StrCat(workload.key, ": partition ", part + 1,
                     " of the background load"),
        stream_.get(), device.options.timeout_seconds, num_ops,
        [this, lane]() -> absl::Status {
          for (const ProgramPass pass : kPasses) {
            RETURN_IF_ERROR(executor_->RunPass(pass, sets_.tables()[0], lane));
          }
          return absl::OkStatus();
        });
  }

 private:
  Stream stream_;
  DeviceMemory workspace_;
  BufferSets sets_;
  std::unique_ptr<StageExecutor> executor_;
};

class LoadedWorkload : public PreparedWorkload {
 public:
  absl::Status Prepare(const BenchDevice* device, const Workload& workload) {
    key_ = workload.key;
    const int num_others = workload.active_partitions - 1;
    // First, as the rotating sets take the remaining memory.
    for (int i = 0; i < num_others; ++i) {
      parts_.push_back(std::make_unique<BusyPart>());
      RETURN_IF_ERROR(parts_.back()->TakeMemory(*device, workload, i + 1));
    }
    ASSIGN_OR_RETURN(pass_, StageWorkload::Create(device, workload));
    // Afterwards, to use the algorithms chosen for the pass.
    for (int i = 0; i < num_others; ++i) {
      ASSIGN_OR_RETURN(auto load,
                       parts_[i]->MakeLoad(*device, workload, i + 1));
      loads_.push_back(std::move(load));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<double> Verify() override { return pass_->Verify(); }
  std::string algorithm() const override { return pass_->algorithm(); }
  absl::StatusOr<LaunchBatch> Run(int num_launches) override {
    return RunOverlapped(loads_, key_, pass_->timer(), num_launches);
  }

 private:
  std::string key_;
  std::vector<std::unique_ptr<BusyPart>> parts_;
  std::vector<std::unique_ptr<BackgroundLoad>> loads_;
  std::unique_ptr<StageWorkload> pass_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PreparedWorkload>> PrepareLoadedWorkload(
    const BenchDevice* device, const Workload& workload) {
  const int num_parts =
      device->partitions != nullptr ? device->partitions->size() : 1;
  if (workload.kind != Workload::Kind::kPass) {
    return absl::InvalidArgumentError(absl::StrCat(
        workload.key, ": is another kind of workload, expected a pass"));
  }
  if (workload.active_partitions > num_parts) {
    return absl::InvalidArgumentError(
        absl::StrCat(workload.key, ": needs ", workload.active_partitions,
                     " GPU partitions, found ", num_parts));
  }
  auto prepared = std::make_unique<LoadedWorkload>();
  RETURN_IF_ERROR(prepared->Prepare(device, workload));
  return prepared;
}

}  // namespace weir::calibrate
