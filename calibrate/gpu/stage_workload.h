// SPDX-License-Identifier: Apache-2.0
// An operation or a pass of a stage on rotating buffers.
#ifndef WEIR_CALIBRATE_GPU_STAGE_WORKLOAD_H_
#define WEIR_CALIBRATE_GPU_STAGE_WORKLOAD_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "calibrate/gpu/buffer_sets.h"
#include "calibrate/gpu/graph_timer.h"
#include "calibrate/gpu/host/op_error.h"
#include "calibrate/measure/bench.h"

namespace weir::calibrate {

// Returns all buffers of all passes as whole pieces.
std::vector<Piece> AllBuffers(const StageProgram& program);

class StageWorkload : public PreparedWorkload {
 public:
  // Returns InvalidArgument if the workload names no operation of its program,
  // ResourceExhausted if its buffers do not fit, and the errors of
  // StageExecutor::PlanOp.
  static absl::StatusOr<std::unique_ptr<StageWorkload>> Create(
      const BenchDevice* device, const Workload& workload);

  absl::StatusOr<double> Verify() override;
  absl::StatusOr<LaunchBatch> Run(int num_launches) override {
    return timer_->Run(num_launches);
  }
  std::string algorithm() const override;

  GraphTimer* timer() { return timer_.get(); }

 private:
  StageWorkload(const BenchDevice* device, const Workload& workload);
  const StageProgram& program() const { return *workload_.program; }
  bool is_pass() const { return workload_.kind == Workload::Kind::kPass; }
  OpIndex index() const { return {workload_.pass, workload_.op}; }

  absl::Status TakeBuffers();
  std::vector<OpIndex> Producers() const;
  absl::Status RunProducers(int set);
  absl::Status ChooseAlgorithms();
  absl::Status StartTimer();
  // Copies what an operation reads, and what it wrote.
  absl::StatusOr<OpCopies> CopyBefore(const StageOp& op) const;
  absl::Status CopyAfter(const StageOp& op, OpCopies* copies) const;
  absl::StatusOr<double> VerifyOp();
  // Checks only that a pass yields no NaN, as its operations are verified
  // separately.
  absl::StatusOr<double> VerifyPass();
  absl::StatusOr<bool> IsNumber(const StageOp& op, int output,
                                int64_t row) const;
  absl::StatusOr<HostTensor> CopyBack(const TensorView& view,
                                      const TensorShape& shape) const;
  absl::Status Poison(const TensorView& view, const TensorShape& shape) const;

  const BenchDevice* device_;
  const Workload workload_;
  std::unique_ptr<StageExecutor> executor_;
  BufferSets sets_;
  std::unique_ptr<GraphTimer> timer_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_GPU_STAGE_WORKLOAD_H_
