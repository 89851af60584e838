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
  for (int stage : state_.schedule().StagesOf(state_.rank)) {
    auto made =
        std::make_unique<RankStage>(state_.plan().programs[stage], stage);
    RETURN_IF_ERROR(PrepareStage(made.get()));
    state_.stages[stage] = std::move(made);
  }
  MarkLastOfVersions();
  return absl::OkStatus();
}

absl::Status RankRunner::PrepareStage(RankStage* stage) {
  const StageLayout& layout = stage->layout;
  const schedules::WeightPolicy& policy = state_.schedule().weights;
  for (const schedules::Action& action : state_.actions()) {
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
      state_.schedule(), stage->stage, stage->forwards, !keeps_estimates);
  const int total = state_.schedule().total_microbatches();
  stage->admitted.assign(total, 0);
  stage->last_of_version.assign(total, false);

  const int first = state_.plan().first_layer[stage->stage];
  const std::vector<double> initial = InitialWeights(
      state_.plan(), first, state_.plan().first_layer[stage->stage + 1]);
  const StageBuffer& weights = layout.buffer(layout.weights);
  ASSIGN_OR_RETURN(void* memory,
                   state_.memory.AllocateBuffer(*stage, layout.weights));
  RETURN_IF_ERROR(state_.device->Upload(initial, weights.format, memory));
  stage->versions->Begin(memory);
  state_.log.AddForGood(MemoryClass::WEIGHTS,
                        BytesOfBuffer(layout, layout.weights));
  if (state_.schedule().forward_only) return absl::OkStatus();

  ASSIGN_OR_RETURN(stage->gradients,
                   state_.memory.AllocateBuffer(*stage, layout.gradients));
  const StageBuffer& gradients = layout.buffer(layout.gradients);
  RETURN_IF_ERROR(state_.device->Clear(gradients.num_elements, gradients.format,
                                       stage->gradients));
  state_.log.AddForGood(MemoryClass::GRADIENTS,
                        BytesOfBuffer(layout, layout.gradients));
  ASSIGN_OR_RETURN(stage->state,
                   state_.memory.AllocateBuffer(*stage, layout.state));
  const StageBuffer& state = layout.buffer(layout.state);
  RETURN_IF_ERROR(
      state_.device->Clear(state.num_elements, state.format, stage->state));
  RETURN_IF_ERROR(state_.device->Upload(initial, state.format, stage->state));
  state_.log.AddForGood(MemoryClass::OPTIMIZER_STATE,
                        BytesOfBuffer(layout, layout.state));
  if (policy.predicted_copies > 0) {
    ASSIGN_OR_RETURN(stage->predicted,
                     state_.memory.AllocateBuffer(*stage, layout.weights));
    state_.log.AddForGood(MemoryClass::PREDICTED_WEIGHTS,
                          BytesOfBuffer(layout, layout.weights));
  }
  for (int i = 0; i < policy.estimate_buffers; ++i) {
    ASSIGN_OR_RETURN(void* average,
                     state_.memory.Allocate(
                         weights.num_elements, ElementFormat::kFp32,
                         absl::StrCat("average of stage ", stage->stage)));
    RETURN_IF_ERROR(state_.device->Clear(weights.num_elements,
                                         ElementFormat::kFp32, average));
    stage->averages.push_back(average);
    state_.log.AddForGood(MemoryClass::ESTIMATE_BUFFERS,
                          4.0 * static_cast<double>(weights.num_elements));
  }
  return absl::OkStatus();
}

// For vertical sync: the rank's own order determines between which forwards of
// the first stage an update occurs. Replicas do not know each other's order.
void RankRunner::MarkLastOfVersions() {
  if (state_.schedule().weights.forward !=
          schedules::WeightPolicy::ForwardRead::kFirstStage ||
      state_.stages.count(0) == 0 || state_.schedule().RanksOf(0).size() > 1) {
    return;
  }
  RankStage& first = state_.StageOf(0);
  int last = -1;
  for (const ExecutionItem& item : items_) {
    if (item.kind == ExecutionItem::Kind::kUpdate && item.stage == 0 &&
        last >= 0) {
      first.last_of_version[last] = true;
    }
    for (int i = 0; item.position >= 0 && i < item.num_actions; ++i) {
      const schedules::Action& action = state_.actions()[item.position + i];
      if (action.stage == 0 && action.op == schedules::Op::kForward) {
        last = action.last_microbatch();
      }
    }
  }
  if (last >= 0) first.last_of_version[last] = true;
}

absl::Status RankRunner::BeginStep(int step, StepRecord* record) {
  state_.step = step;
  state_.record = record;
  state_.log.Clear();
  state_.events.assign(state_.actions().size(), {});
  updates_.BeginStep();
  messages_.BeginStep();
  ends_.clear();
  num_ended_ = 0;
  for (const auto& [index, stage] : state_.stages) {
    RETURN_IF_ERROR(BeginStage(stage.get(), step));
  }
  state_.memory.ResetPeak();
  RETURN_IF_ERROR(state_.device->ResetPeak());
  return messages_.AllocateReceives(
      state_.shared.order.first_receives[state_.rank]);
}

absl::Status RankRunner::BeginStage(RankStage* stage, int step) {
  const StageProgram& program = stage->layout.program();
  const int total = state_.schedule().total_microbatches();
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
        DataOf(state_.plan(), static_cast<int64_t>(step) * total + k);
    for (const int i : {program.tokens, program.targets}) {
      if (i < 0) continue;
      ASSIGN_OR_RETURN(table[i], state_.memory.AllocateBuffer(*stage, i));
      RETURN_IF_ERROR(state_.device->Upload(
          i == program.tokens ? data.tokens : data.targets,
          program.buffers[i].format, table[i]));
    }
  }
  return absl::OkStatus();
}

}  // namespace weir::calibrate
