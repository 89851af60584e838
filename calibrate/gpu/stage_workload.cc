// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/stage_workload.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/execute/stage/op_shapes.h"
#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/workloads.h"

namespace weir::calibrate {

std::vector<Piece> AllBuffers(const StageProgram& program) {
  std::vector<Piece> pieces;
  for (int i = 0; i < static_cast<int>(program.buffers.size()); ++i) {
    pieces.push_back({i, 0, program.buffers[i].num_elements});
  }
  return pieces;
}

StageWorkload::StageWorkload(const BenchDevice* device,
                             const Workload& workload)
    : device_(device),
      workload_(workload),
      executor_(std::make_unique<StageExecutor>(
          workload.program, device->executor_options(), device->gemms.get())) {}

absl::StatusOr<std::unique_ptr<StageWorkload>> StageWorkload::Create(
    const BenchDevice* device, const Workload& workload) {
  const int num_ops =
      static_cast<int>(workload.program->ops(workload.pass).size());
  if (workload.kind == Workload::Kind::kPass
          ? num_ops == 0
          : workload.op < 0 || workload.op >= num_ops) {
    return absl::InvalidArgumentError(
        num_ops == 0
            ? absl::StrCat(workload.key, ": the pass has no operations")
            : absl::StrCat(workload.key, ": op is ", workload.op,
                           ", expected 0 to ", num_ops - 1));
  }
  std::unique_ptr<StageWorkload> prepared(new StageWorkload(device, workload));
  RETURN_IF_ERROR(prepared->TakeBuffers());
  RETURN_IF_ERROR(prepared->ChooseAlgorithms());
  RETURN_IF_ERROR(prepared->StartTimer());
  return prepared;
}

absl::Status StageWorkload::TakeBuffers() {
  std::vector<Piece> pieces;
  int64_t touched_bytes = 0;
  if (is_pass()) {
    // All buffers, since earlier passes run too.
    pieces = AllBuffers(program());
    for (const OpIndex& op : OpsOf(program(), workload_.pass)) {
      touched_bytes += TouchedBytes(program(), op);
    }
  } else {
    std::vector<OpIndex> ops = ProducersOf(program(), index());
    ops.push_back(index());
    pieces = PiecesOf(program(), ops);
    touched_bytes = TouchedBytes(program(), index());
  }
  ASSIGN_OR_RETURN(sets_, BufferSets::Create(*device_, program(), pieces,
                                             touched_bytes, is_pass()));
  return absl::OkStatus();
}

std::vector<OpIndex> StageWorkload::Producers() const {
  if (!is_pass()) return ProducersOf(program(), index());
  // The passes before this one compute its inputs.
  std::vector<OpIndex> producers;
  for (int pass = 0; pass < static_cast<int>(workload_.pass); ++pass) {
    for (const OpIndex& op : OpsOf(program(), static_cast<ProgramPass>(pass))) {
      producers.push_back(op);
    }
  }
  return producers;
}

absl::Status StageWorkload::RunProducers(int set) {
  for (const OpIndex& op : Producers()) {
    RETURN_IF_ERROR(
        executor_->RunOp(op.pass, op.op, sets_.tables()[set], device_->lane()));
  }
  return device_->Wait(absl::StrCat(workload_.key, ": its inputs"));
}

absl::Status StageWorkload::ChooseAlgorithms() {
  const Lane lane = device_->lane();
  // The search for the fastest algorithm is only worthwhile for the measured
  // operations.
  for (const OpIndex& op : Producers()) {
    RETURN_IF_ERROR(executor_->PlanOp(op.pass, op.op, {}, lane));
  }
  for (int set = 0; set < sets_.size(); ++set) {
    RETURN_IF_ERROR(RunProducers(set));
  }
  RETURN_IF_ERROR(
      is_pass() ? executor_->PlanPass(workload_.pass, sets_.tables(), lane)
                : executor_->PlanOp(workload_.pass, workload_.op,
                                    sets_.tables(), lane));
  return device_->Wait(absl::StrCat(workload_.key, ": choosing algorithms"));
}

absl::Status StageWorkload::StartTimer() {
  Launchable launchable;
  launchable.what = workload_.key;
  launchable.num_sets = sets_.size();
  launchable.by_stream = workload_.by_stream;
  if (is_pass()) {
    launchable.ops_per_launch =
        static_cast<int>(program().ops(workload_.pass).size());
  }
  launchable.launch = [this](int set) {
    const BufferTable& table = sets_.tables()[set];
    return is_pass()
               ? executor_->RunPass(workload_.pass, table, device_->lane())
               : executor_->RunOp(workload_.pass, workload_.op, table,
                                  device_->lane());
  };
  ASSIGN_OR_RETURN(timer_, GraphTimer::Create(device_, std::move(launchable)));
  return absl::OkStatus();
}

absl::StatusOr<HostTensor> StageWorkload::CopyBack(
    const TensorView& view, const TensorShape& shape) const {
  HostTensor tensor;
  if (!view.present()) return tensor;
  tensor.format = program().buffers[view.buffer].format;
  tensor.stride = StrideOf(view, shape);
  tensor.bytes.resize(SpanOf(view, shape) * BytesOf(tensor.format));
  const char* from = static_cast<const char*>(sets_.tables()[0][view.buffer]) +
                     view.offset * BytesOf(tensor.format);
  RETURN_IF_ERROR(
      CudaStatus(cudaMemcpyAsync(tensor.bytes.data(), from, tensor.bytes.size(),
                                 cudaMemcpyDeviceToHost, device_->stream.get()),
                 "copying results back"));
  RETURN_IF_ERROR(device_->Wait("copying results back"));
  return tensor;
}

absl::Status StageWorkload::Poison(const TensorView& view,
                                   const TensorShape& shape) const {
  const int bytes = BytesOf(program().buffers[view.buffer].format);
  char* at =
      static_cast<char*>(sets_.tables()[0][view.buffer]) + view.offset * bytes;
  const int64_t pitch = StrideOf(view, shape) * bytes;
  const int64_t width = shape.columns * bytes;
  cudaStream_t stream = device_->stream.get();
  // All bits set is a NaN in every format; the gaps between rows may belong to
  // others.
  return CudaStatus(
      pitch == width || shape.rows == 1
          ? cudaMemsetAsync(at, 0xFF, width * shape.rows, stream)
          : cudaMemset2DAsync(at, pitch, 0xFF, width, shape.rows, stream),
      "filling outputs with NaN");
}

absl::StatusOr<double> StageWorkload::Verify() {
  return is_pass() ? VerifyPass() : VerifyOp();
}

absl::StatusOr<OpCopies> StageWorkload::CopyBefore(const StageOp& op) const {
  OpCopies copies;
  for (int i = 0; i < static_cast<int>(op.inputs.size()); ++i) {
    ASSIGN_OR_RETURN(HostTensor input,
                     CopyBack(op.inputs[i], InputShape(op, i)));
    copies.inputs.push_back(std::move(input));
  }
  for (int i = 0; i < static_cast<int>(op.outputs.size()); ++i) {
    HostTensor before;
    if (ReadsOutput(op, i) && SameInput(op, i) < 0) {
      ASSIGN_OR_RETURN(before, CopyBack(op.outputs[i], OutputShape(op, i)));
    }
    copies.outputs_before.push_back(std::move(before));
  }
  return copies;
}

absl::Status StageWorkload::CopyAfter(const StageOp& op,
                                      OpCopies* copies) const {
  for (int i = 0; i < static_cast<int>(op.outputs.size()); ++i) {
    ASSIGN_OR_RETURN(HostTensor output,
                     CopyBack(op.outputs[i], OutputShape(op, i)));
    copies->outputs.push_back(std::move(output));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> StageWorkload::VerifyOp() {
  const StageOp& op = program().ops(workload_.pass)[workload_.op];
  RETURN_IF_ERROR(sets_.Refill(*device_, program(), 0));
  RETURN_IF_ERROR(RunProducers(0));
  const std::vector<StageOp> parts = CopiedParts(op);
  std::vector<OpCopies> copies;
  for (const StageOp& part : parts) {
    ASSIGN_OR_RETURN(copies.emplace_back(), CopyBefore(part));
  }
  for (int i = 0; i < static_cast<int>(op.outputs.size()); ++i) {
    if (op.outputs[i].present() && !ReadsOutput(op, i)) {
      RETURN_IF_ERROR(Poison(op.outputs[i], OutputShape(op, i)));
    }
  }
  RETURN_IF_ERROR(executor_->RunOp(workload_.pass, workload_.op,
                                   sets_.tables()[0], device_->lane()));
  RETURN_IF_ERROR(device_->Wait(workload_.key));
  double worst = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    RETURN_IF_ERROR(CopyAfter(parts[i], &copies[i]));
    const double error = RelativeError(parts[i], copies[i]);
    if (!(error <= worst)) worst = error;  // also NaN
  }
  return worst;
}

absl::StatusOr<double> StageWorkload::VerifyPass() {
  RETURN_IF_ERROR(
      executor_->RunPass(workload_.pass, sets_.tables()[0], device_->lane()));
  RETURN_IF_ERROR(device_->Wait(workload_.key));
  for (const StageOp& last :
       CopiedParts(program().ops(workload_.pass).back())) {
    for (int i = 0; i < static_cast<int>(last.outputs.size()); ++i) {
      if (!last.outputs[i].present()) continue;
      const TensorShape shape = OutputShape(last, i);
      for (const int64_t row : PickSome(shape.rows, 64)) {
        ASSIGN_OR_RETURN(const bool is_number, IsNumber(last, i, row));
        if (!is_number) return std::numeric_limits<double>::infinity();
      }
    }
  }
  return 0.0;
}

// Returns false if a row of an output contains a NaN.
absl::StatusOr<bool> StageWorkload::IsNumber(const StageOp& op, int output,
                                             int64_t row) const {
  const TensorShape shape = OutputShape(op, output);
  TensorView view = op.outputs[output];
  view.offset += row * StrideOf(view, shape);
  // Only this row: outputs have up to gigabytes, and copying takes longer than
  // everything else.
  ASSIGN_OR_RETURN(const HostTensor copy, CopyBack(view, {1, shape.columns}));
  for (int64_t column = 0; column < shape.columns; ++column) {
    if (std::isnan(copy.At(0, column))) return false;
  }
  return true;
}

std::string StageWorkload::algorithm() const {
  return is_pass() ? "" : executor_->algorithm(workload_.pass, workload_.op);
}

absl::StatusOr<std::unique_ptr<PreparedWorkload>> PrepareStageWorkload(
    const BenchDevice* device, const Workload& workload) {
  return StageWorkload::Create(device, workload);
}

}  // namespace weir::calibrate
