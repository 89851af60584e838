// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/stage_history.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/execute/training.h"

namespace weir::calibrate {

StageHistory::StageHistory(const ExecutionPlan& plan, int stage,
                           RankDevice* device, bool trains)
    : plan_(plan),
      stage_(stage),
      device_(device),
      trains_(trains),
      layout_(plan.programs[stage]) {}

absl::StatusOr<void*> StageHistory::AllocateBuffer(int buffer) const {
  const StageBuffer& of = layout_.buffer(buffer);
  return device_->AllocateMemory(of.num_elements, of.format,
                                 absl::StrCat(of.name, " of stage ", stage_));
}

Buffers StageHistory::Table(void* weights) const {
  Buffers table(layout_.program().buffers.size(), nullptr);
  table[layout_.weights] = weights;
  table[layout_.gradients] = gradients_;
  table[layout_.state] = state_;
  return table;
}

absl::Status StageHistory::Begin(const UpdateFormula& formula,
                                 int num_microbatches) {
  for (int k = 0; k < num_microbatches; ++k) {
    for (const WeightsRead& read :
         {formula.forward(stage_, k), formula.backward(stage_, k)}) {
      kept_[{read.version, read.distance}].last = k;
    }
  }
  const std::vector<double> initial = InitialWeights(
      plan_, plan_.first_layer[stage_], plan_.first_layer[stage_ + 1]);
  ASSIGN_OR_RETURN(newest_, AllocateBuffer(layout_.weights));
  RETURN_IF_ERROR(device_->Upload(
      initial, layout_.buffer(layout_.weights).format, newest_));
  if (!trains_) return absl::OkStatus();
  RETURN_IF_ERROR(TakeWhatTrains(formula.by_average));
  RETURN_IF_ERROR(
      device_->Upload(initial, layout_.buffer(layout_.state).format, state_));
  return MakeEstimates();
}

absl::Status StageHistory::TakeWhatTrains(bool by_average) {
  const auto clear = [&](int buffer, void* memory) {
    const StageBuffer& of = layout_.buffer(buffer);
    return device_->Clear(of.num_elements, of.format, memory);
  };
  ASSIGN_OR_RETURN(gradients_, AllocateBuffer(layout_.gradients));
  RETURN_IF_ERROR(clear(layout_.gradients, gradients_));
  ASSIGN_OR_RETURN(state_, AllocateBuffer(layout_.state));
  RETURN_IF_ERROR(clear(layout_.state, state_));
  if (!by_average) return absl::OkStatus();
  ASSIGN_OR_RETURN(average_,
                   AllocateBuffer(layout_.gradients));  // fp32, same length
  return clear(layout_.gradients, average_);
}

absl::Status StageHistory::MakeEstimates() {
  for (auto& [read, kept] : kept_) {
    const auto [version, distance] = read;
    if (version != version_ || distance == 0) continue;
    ASSIGN_OR_RETURN(kept.memory, AllocateBuffer(layout_.weights));
    RETURN_IF_ERROR(device_->Estimate(stage_, plan_.optimizers[stage_],
                                      version_, distance, newest_, average_,
                                      Table(newest_), kept.memory));
  }
  return absl::OkStatus();
}

absl::StatusOr<void*> StageHistory::At(const WeightsRead& read) const {
  if (read.version == version_ && read.distance == 0) return newest_;
  const auto kept = kept_.find({read.version, read.distance});
  if (kept != kept_.end() && kept->second.memory != nullptr) {
    return kept->second.memory;
  }
  return absl::InternalError(absl::StrCat("version ", read.version,
                                          " of stage ", stage_, " is read at ",
                                          version_));
}

absl::Status StageHistory::Update() {
  void* const old = newest_;
  const auto plain = kept_.find({version_, 0.0});
  const bool stays = plain != kept_.end() && plain->second.last > released_;
  // An average is updated from the difference of old and new weights, so both
  // are needed at the same time.
  if (stays || average_ != nullptr) {
    ASSIGN_OR_RETURN(newest_, AllocateBuffer(layout_.weights));
  }
  if (stays) plain->second.memory = old;
  const StageOptimizer& optimizer = plan_.optimizers[stage_];
  RETURN_IF_ERROR(
      device_->Update(stage_, optimizer, ++version_, old, Table(newest_)));
  if (average_ != nullptr) {
    RETURN_IF_ERROR(device_->Average(stage_, optimizer.average_decay, old,
                                     newest_, average_));
    if (!stays) {
      RETURN_IF_ERROR(device_->FreeMemory(old));
    }
  }
  return MakeEstimates();
}

absl::Status StageHistory::Release(int k) {
  released_ = k;
  for (auto at = kept_.begin(); at != kept_.end();) {
    if (at->second.last > k) {
      ++at;
      continue;
    }
    if (at->second.memory != nullptr) {
      RETURN_IF_ERROR(device_->FreeMemory(at->second.memory));
    }
    at = kept_.erase(at);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> StageHistory::Download() const {
  const StageBuffer& weights = layout_.buffer(layout_.weights);
  // Master weights are at the start of the state.
  return trains_
             ? device_->Download(state_, weights.num_elements,
                                 layout_.buffer(layout_.state).format)
             : device_->Download(newest_, weights.num_elements, weights.format);
}

}  // namespace weir::calibrate
