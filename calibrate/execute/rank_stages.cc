// SPDX-License-Identifier: Apache-2.0
// State of a rank before its first action.
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/execute/rank_runner.h"
#include "calibrate/execute/training.h"

namespace weir::calibrate {
namespace {

double BytesOfBuffer(const StageLayout& layout, int index) {
  return index < 0 ? 0 : static_cast<double>(layout.buffer(index).bytes());
}

}  // namespace

absl::Status RankRunner::Prepare() {
  for (int stage : schedule().StagesOf(rank_)) {
    auto made = std::make_unique<Stage>(plan().programs[stage], stage);
    RETURN_IF_ERROR(PrepareStage(made.get()));
    stages_[stage] = std::move(made);
  }
  MarkLastOfVersions();
  return absl::OkStatus();
}

absl::Status RankRunner::PrepareStage(Stage* stage) {
  const StageLayout& layout = stage->layout;
  const schedules::WeightPolicy& policy = schedule().weights;
  for (const schedules::Action& action : actions()) {
    if (action.stage != stage->stage || action.op != schedules::Op::kForward)
      continue;
    for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
      stage->forwards.push_back(k);
    }
  }
  const bool keeps_estimates =
      policy.prediction ==
          schedules::WeightPolicy::Prediction::kFirstForwardOfUpdate &&
      !policy.forward_distance.empty() &&
      policy.forward_distance[stage->stage] != 0;
  stage->versions = std::make_unique<WeightVersions>(
      schedule(), stage->stage, stage->forwards, !keeps_estimates);
  const int total = schedule().total_microbatches();
  stage->admitted.assign(total, 0);
  stage->last_of_version.assign(total, false);

  const int first = plan().first_layer[stage->stage];
  const std::vector<double> initial =
      InitialWeights(plan(), first, plan().first_layer[stage->stage + 1]);
  const StageBuffer& weights = layout.buffer(layout.weights);
  ASSIGN_OR_RETURN(void* memory, AllocateBuffer(*stage, layout.weights));
  RETURN_IF_ERROR(device_->Upload(initial, weights.format, memory));
  stage->versions->Begin(memory);
  memory_.AddForGood(ExecutionMemory::kWeights,
                     BytesOfBuffer(layout, layout.weights));
  if (schedule().forward_only) return absl::OkStatus();

  ASSIGN_OR_RETURN(stage->gradients, AllocateBuffer(*stage, layout.gradients));
  const StageBuffer& gradients = layout.buffer(layout.gradients);
  RETURN_IF_ERROR(device_->Clear(gradients.num_elements, gradients.format,
                                 stage->gradients));
  memory_.AddForGood(ExecutionMemory::kGradients,
                     BytesOfBuffer(layout, layout.gradients));
  ASSIGN_OR_RETURN(stage->state, AllocateBuffer(*stage, layout.state));
  const StageBuffer& state = layout.buffer(layout.state);
  RETURN_IF_ERROR(
      device_->Clear(state.num_elements, state.format, stage->state));
  RETURN_IF_ERROR(device_->Upload(initial, state.format, stage->state));
  memory_.AddForGood(ExecutionMemory::kOptimizerState,
                     BytesOfBuffer(layout, layout.state));
  if (policy.predicted_copies > 0) {
    ASSIGN_OR_RETURN(stage->predicted, AllocateBuffer(*stage, layout.weights));
    memory_.AddForGood(ExecutionMemory::kPredictedWeights,
                       BytesOfBuffer(layout, layout.weights));
  }
  for (int i = 0; i < policy.estimate_buffers; ++i) {
    ASSIGN_OR_RETURN(
        void* average,
        AllocateMemory(weights.num_elements, ElementFormat::kFp32,
                       absl::StrCat("average of stage ", stage->stage)));
    RETURN_IF_ERROR(
        device_->Clear(weights.num_elements, ElementFormat::kFp32, average));
    stage->averages.push_back(average);
    memory_.AddForGood(ExecutionMemory::kEstimateBuffers,
                       4.0 * static_cast<double>(weights.num_elements));
  }
  return absl::OkStatus();
}

// For vertical sync: the rank's own order determines between which forwards of
// the first stage an update occurs. Replicas do not know each other's order.
void RankRunner::MarkLastOfVersions() {
  if (schedule().weights.forward !=
          schedules::WeightPolicy::ForwardRead::kFirstStage ||
      stages_.count(0) == 0 || schedule().RanksOf(0).size() > 1) {
    return;
  }
  Stage& first = StageOf(0);
  int last = -1;
  for (const ExecutionItem& item : items_) {
    if (item.kind == ExecutionItem::Kind::kUpdate && item.stage == 0 &&
        last >= 0) {
      first.last_of_version[last] = true;
    }
    for (int i = 0; item.position >= 0 && i < item.num_actions; ++i) {
      const schedules::Action& action = actions()[item.position + i];
      if (action.stage == 0 && action.op == schedules::Op::kForward) {
        last = action.last_microbatch();
      }
    }
  }
  if (last >= 0) first.last_of_version[last] = true;
}

absl::Status RankRunner::BeginStep(int step, StepRecord* record) {
  step_ = step;
  record_ = record;
  memory_.Clear();
  events_.assign(actions().size(), {});
  updates_.clear();
  transfers_.clear();
  ends_.clear();
  num_ended_ = 0;
  for (const auto& [index, stage] : stages_) {
    RETURN_IF_ERROR(BeginStage(stage.get(), step));
  }
  taken_peak_ = taken_bytes_;
  RETURN_IF_ERROR(device_->ResetPeak());
  return AllocateReceives(shared_.order.first_receives[rank_]);
}

absl::Status RankRunner::BeginStage(Stage* stage, int step) {
  const StageProgram& program = stage->layout.program();
  const int total = schedule().total_microbatches();
  stage->updates_done = 0;
  stage->versions->Begin(stage->versions->memory(stage->versions->newest()));
  stage->tables.assign(total, Buffers());
  stage->alive_bytes.assign(total, 0);
  stage->kept_bytes.assign(total, 0);
  for (int k : stage->forwards) {
    Buffers& table = stage->tables[k];
    table.assign(program.buffers.size(), nullptr);
    table[stage->layout.gradients] = stage->gradients;
    table[stage->layout.state] = stage->state;
    if (program.tokens < 0 && program.targets < 0) continue;
    const MicrobatchData data =
        DataOf(plan(), static_cast<int64_t>(step) * total + k);
    for (const int i : {program.tokens, program.targets}) {
      if (i < 0) continue;
      ASSIGN_OR_RETURN(table[i], AllocateBuffer(*stage, i));
      RETURN_IF_ERROR(
          device_->Upload(i == program.tokens ? data.tokens : data.targets,
                          program.buffers[i].format, table[i]));
    }
  }
  return absl::OkStatus();
}

absl::Status RankRunner::AllocateReceives(const std::vector<MessageKey>& keys) {
  for (const MessageKey& key : keys) {
    const int to = key.stage + (key.gradient ? -1 : 1);
    Stage& stage = StageOf(to);
    const StageProgram& program = stage.layout.program();
    const int buffer = key.gradient ? program.output_gradient : program.input;
    ASSIGN_OR_RETURN(void* memory, AllocateBuffer(stage, buffer));
    stage.tables[key.microbatch][buffer] = memory;
    const std::lock_guard lock(shared_.board->mutex);
    shared_.board->message(key).into = memory;
  }
  return absl::OkStatus();
}

}  // namespace weir::calibrate
