// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/rank_passes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/execute/training.h"

namespace weir::calibrate {
namespace {

using Prediction = schedules::WeightPolicy::Prediction;

bool ReadsWeights(schedules::Op op) {
  return op == schedules::Op::kForward || schedules::MakesInputGradient(op);
}

std::vector<ProgramPass> PassesOf(schedules::Op op) {
  switch (op) {
    case schedules::Op::kForward:
      return {ProgramPass::kForward};
    case schedules::Op::kBackward:
      return {ProgramPass::kBackwardInput, ProgramPass::kBackwardWeight};
    case schedules::Op::kBackwardInput:
      return {ProgramPass::kBackwardInput};
    case schedules::Op::kBackwardWeight:
      return {ProgramPass::kBackwardWeight};
    case schedules::Op::kOffload:
    case schedules::Op::kReload:
    case WEIR_UNSCHEDULED_OPS:
      break;
  }
  return {};
}

bool Predicts(Prediction prediction, bool forward) {
  switch (prediction) {
    case Prediction::kNone:
      return false;
    case Prediction::kForward:
      return forward;
    case Prediction::kBackward:
      return !forward;
    case Prediction::kForwardAndBackward:
    case Prediction::kFirstForwardOfUpdate:
      return true;
  }
  return false;
}

}  // namespace

absl::Status RankPasses::Run(const ExecutionItem& item) {
  const auto end_position = item.position + item.num_actions;
  for (int i = item.position; i < end_position; ++i) {
    RETURN_IF_ERROR(messages_.Await(state_.actions()[i]));
    RETURN_IF_ERROR(offloads_.Await(i));
  }
  RETURN_IF_ERROR(messages_.FreeArrived(item.arrived));
  ASSIGN_OR_RETURN(const RankEventPtr start, state_.device->Now());
  std::vector<std::vector<int>> versions(item.num_actions);
  std::vector<PassBytes> bytes(item.num_actions);
  // Both actions of an overlapped pair read versions before either updates.
  for (int i = 0; i < item.num_actions; ++i) {
    ReadVersions(state_.actions()[item.position + i], &versions[i]);
  }
  for (int i = 0; i < item.num_actions; ++i) {
    RETURN_IF_ERROR(RunAction(state_.actions()[item.position + i], versions[i],
                              start, &bytes[i]));
  }
  RETURN_IF_ERROR(messages_.AllocateReceives(item.receives));
  ASSIGN_OR_RETURN(const RankEventPtr end, state_.device->Now());
  for (int i = 0; i < item.num_actions; ++i) {
    const int position = item.position + i;
    state_.events[position] = {start, end};
    RETURN_IF_ERROR(
        EndAction(state_.actions()[position], bytes[i], start, end));
  }
  return absl::OkStatus();
}

void RankPasses::ReadVersions(const schedules::Action& action,
                              std::vector<int>* versions) {
  if (!ReadsWeights(action.op)) return;
  RankStage& stage = state_.StageOf(action.stage);
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    schedules::VersionUse& use = state_.record->uses[action.stage][k];
    if (action.op == schedules::Op::kForward) {
      use.forward_version = stage.versions->ReadForward(
          k, stage.admitted[k], stage.last_of_version[k]);
      if (action.stage == 0) stage.admitted[k] = use.forward_version;
      versions->push_back(use.forward_version);
      continue;
    }
    use.backward_version = stage.versions->ReadBackward(k);
    versions->push_back(use.backward_version);
  }
}

absl::Status RankPasses::RunAction(const schedules::Action& action,
                                   const std::vector<int>& versions,
                                   const RankEventPtr& start,
                                   PassBytes* bytes) {
  RankStage& stage = state_.StageOf(action.stage);
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    void* weights = nullptr;  // a backward-weight pass reads none
    if (ReadsWeights(action.op)) {
      ASSIGN_OR_RETURN(weights,
                       WeightsFor(&stage, action, k,
                                  versions[k - action.microbatch], start));
    }
    stage.tables[k][stage.layout.weights] = weights;
    bytes->before += stage.alive_bytes[k];
  }
  bytes->peak = bytes->before;
  for (ProgramPass pass : PassesOf(action.op)) {
    if (pass == ProgramPass::kBackwardWeight) {
      for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
        stage.tables[k][stage.layout.weights] = nullptr;
      }
    }
    RETURN_IF_ERROR(RunPass(&stage, pass, action, bytes));
  }
  if (state_.schedule().forward_only) {
    for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
      for (size_t i = 0; i < stage.tables[k].size(); ++i) {
        const auto index = static_cast<int>(i);
        void*& memory = stage.tables[k][i];
        if (memory == nullptr || !stage.layout.OfMicrobatch(index) ||
            stage.layout.IsData(index) || stage.layout.IsOutput(index)) {
          continue;
        }
        RETURN_IF_ERROR(state_.memory.Free(std::exchange(memory, nullptr)));
      }
      stage.alive_bytes[k] = 0;
    }
  }
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    bytes->after += stage.alive_bytes[k];
    if (action.op == schedules::Op::kForward)
      stage.kept_bytes[k] = stage.alive_bytes[k];
  }
  return absl::OkStatus();
}

// Runs one operation after the other, each for all microbatches of a span,
// which have their scratch at the same time as in one large microbatch.
absl::Status RankPasses::RunPass(RankStage* stage, ProgramPass pass,
                                 const schedules::Action& action,
                                 PassBytes* bytes) {
  const StageLayout& layout = stage->layout;
  const int num_ops = layout.NumOps(pass);
  const int64_t first = static_cast<int64_t>(state_.step) *
                        state_.schedule().total_microbatches();
  std::vector<uint64_t> seeds;
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    seeds.push_back(DropoutSeed(state_.plan(), first + k));
  }
  double now = 0;
  const auto each = [&](auto&& visit) -> absl::Status {
    for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
      RETURN_IF_ERROR(visit(k));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(each([&](int k) {
    now += stage->alive_bytes[k];
    return absl::OkStatus();
  }));
  for (int op = 0; op < std::max(num_ops, 1); ++op) {
    RETURN_IF_ERROR(each([&](int k) -> absl::Status {
      for (int i : layout.Entering(pass, op)) {
        stage->alive_bytes[k] += static_cast<double>(layout.buffer(i).bytes());
        now += static_cast<double>(layout.buffer(i).bytes());
        if (layout.IsInput(i)) continue;
        ASSIGN_OR_RETURN(stage->tables[k][i],
                         state_.memory.AllocateBuffer(*stage, i));
      }
      return absl::OkStatus();
    }));
    bytes->peak = std::max(bytes->peak, now);
    RETURN_IF_ERROR(each([&](int k) -> absl::Status {
      if (op >= num_ops) return absl::OkStatus();
      return state_.device->Run(stage->stage, pass, op,
                                seeds[k - action.microbatch], stage->tables[k]);
    }));
    RETURN_IF_ERROR(each([&](int k) -> absl::Status {
      for (int i : layout.Leaving(pass, op)) {
        stage->alive_bytes[k] -= static_cast<double>(layout.buffer(i).bytes());
        now -= static_cast<double>(layout.buffer(i).bytes());
        if (layout.IsOutput(i) || layout.IsData(i)) continue;
        RETURN_IF_ERROR(
            state_.memory.Free(std::exchange(stage->tables[k][i], nullptr)));
      }
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

absl::StatusOr<void*> RankPasses::WeightsFor(RankStage* stage,
                                             const schedules::Action& action,
                                             int microbatch, int version,
                                             const RankEventPtr& start) {
  const schedules::WeightPolicy& policy = state_.schedule().weights;
  const bool forward = action.op == schedules::Op::kForward;
  const auto& distances =
      forward ? policy.forward_distance : policy.backward_distance;
  const double distance = distances.empty() ? 0 : distances[stage->stage];
  const bool predicts = Predicts(policy.prediction, forward) && distance != 0;
  const bool once =
      predicts && policy.prediction == Prediction::kFirstForwardOfUpdate;
  const int update =
      microbatch / state_.schedule().microbatches_per_update(stage->stage);
  if (once) {
    const auto kept = stage->estimates.find(update);
    if (kept != stage->estimates.end()) return kept->second.memory;
  }
  void* const weights = stage->versions->memory(version);
  if (weights == nullptr) {
    return absl::InternalError(absl::StrCat("version ", version, " of stage ",
                                            stage->stage,
                                            " is no longer available"));
  }
  if (!predicts) return weights;

  const StageBuffer& buffer = stage->layout.buffer(stage->layout.weights);
  void* estimate = stage->predicted;
  bool is_spare = false;
  if (estimate == nullptr || (once && stage->predicted_in_use)) {
    ASSIGN_OR_RETURN(estimate,
                     state_.memory.Allocate(
                         buffer.num_elements, buffer.format,
                         absl::StrCat("estimate of stage ", stage->stage)));
    is_spare = true;
    state_.log.Add(
        start,
        once ? MemoryClass::WEIGHT_STASH : MemoryClass::PREDICTED_WEIGHTS,
        static_cast<double>(buffer.bytes()));
    if (!once) transient_.push_back(estimate);
  }
  RETURN_IF_ERROR(state_.device->Estimate(
      stage->stage, state_.plan().optimizers[stage->stage], stage->steps_done,
      distance, weights, stage->averages.empty() ? nullptr : stage->averages[0],
      stage->StaticTable(weights), estimate));
  if (once) {
    stage->predicted_in_use |= !is_spare;
    int uses = 0;
    for (int k : stage->forwards) {
      uses +=
          k / state_.schedule().microbatches_per_update(stage->stage) == update;
    }
    stage->estimates[update] = {estimate, 2 * uses, is_spare};
  }
  return estimate;
}

absl::Status RankPasses::EndEstimates(RankStage* stage,
                                      const schedules::Action& action,
                                      const RankEventPtr& end) {
  const auto bytes =
      static_cast<double>(stage->layout.buffer(stage->layout.weights).bytes());
  for (void* memory : std::exchange(transient_, {})) {
    RETURN_IF_ERROR(state_.memory.Free(memory));
    state_.log.Add(end, MemoryClass::PREDICTED_WEIGHTS, -bytes);
  }
  if (stage->estimates.empty()) return absl::OkStatus();
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    const auto kept = stage->estimates.find(
        k / state_.schedule().microbatches_per_update(stage->stage));
    if (kept == stage->estimates.end() || --kept->second.uses_left > 0) {
      continue;
    }
    if (kept->second.is_spare) {
      RETURN_IF_ERROR(state_.memory.Free(kept->second.memory));
      state_.log.Add(end, MemoryClass::WEIGHT_STASH, -bytes);
    } else {
      stage->predicted_in_use = false;
    }
    stage->estimates.erase(kept);
  }
  return absl::OkStatus();
}

absl::Status RankPasses::EndAction(const schedules::Action& action,
                                   const PassBytes& bytes,
                                   const RankEventPtr& start,
                                   const RankEventPtr& end) {
  RankStage& stage = state_.StageOf(action.stage);
  const bool forward = action.op == schedules::Op::kForward;
  const StageProgram& program = stage.layout.program();
  double received = 0;
  if (schedules::MakesInputGradient(action.op) &&
      program.output_gradient >= 0) {
    received =
        static_cast<double>(program.buffers[program.output_gradient].bytes()) *
        action.num_microbatches;
  }
  if (forward) {
    state_.log.Add(start, MemoryClass::ACTIVATIONS, bytes.after);
    state_.log.AddFor(start, end, MemoryClass::PASS_SCRATCH,
                      bytes.peak - bytes.after);
  } else {
    const bool split = action.op == schedules::Op::kBackwardWeight;
    state_.log.AddFor(start, end, MemoryClass::PASS_SCRATCH,
                      bytes.peak - bytes.before - received);
    state_.log.Add(
        end,
        split ? MemoryClass::WEIGHT_GRADIENT_STASH : MemoryClass::ACTIVATIONS,
        -bytes.before);
    state_.log.Add(end, MemoryClass::WEIGHT_GRADIENT_STASH, bytes.after);
  }
  RETURN_IF_ERROR(messages_.Send(action, start, end));
  if (ReadsWeights(action.op)) {
    RETURN_IF_ERROR(EndEstimates(&stage, action, end));
  }
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    if (schedules::MakesInputGradient(action.op))
      stage.versions->EndBackward(k);
    if (schedules::CompletesGradient(action.op)) {
      state_.record->uses[action.stage][k].update = stage.updates_done;
    }
  }
  return state_.FreeDeadVersions(&stage, end);
}

}  // namespace weir::calibrate
