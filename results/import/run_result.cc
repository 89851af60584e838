// SPDX-License-Identifier: Apache-2.0
#include "results/import/run_result.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/intervals.h"
#include "results/import/messages.h"
#include "results/metrics.h"

namespace weir::results {
namespace {

using Actions = Timeline::Actions;
using Collectives = Timeline::Collectives;
using Transfers = Timeline::Transfers;

bool IsAction(RecordedKind kind) {
  return IsPass(kind) || kind == RecordedKind::kOptimizerStep;
}

Actions::Op OpOf(RecordedKind kind) {
  switch (kind) {
    case RecordedKind::kForward:
      return Actions::FORWARD;
    case RecordedKind::kBackward:
      return Actions::BACKWARD;
    case RecordedKind::kBackwardInput:
      return Actions::BACKWARD_INPUT;
    case RecordedKind::kBackwardWeight:
      return Actions::BACKWARD_WEIGHT;
    default:
      return Actions::OPTIMIZER_STEP;
  }
}

Collectives::Kind CollectiveOf(RecordedKind kind) {
  switch (kind) {
    case RecordedKind::kWeightGather:
      return Collectives::WEIGHT_GATHER;
    case RecordedKind::kTiedReduction:
      return Collectives::TIED_REDUCTION;
    case RecordedKind::kDispatch:
    case RecordedKind::kCombine:
      return Collectives::EXPERT_EXCHANGE;
    default:
      return Collectives::GRADIENT_REDUCTION;
  }
}

class Builder {
 public:
  Builder(const RecordedRun& run, const RecordedStep& step)
      : run_(run),
        step_(step),
        groups_(GroupsOf(step)),
        seconds_(TransferSeconds(step, groups_)),
        busy_(static_cast<size_t>(run.num_replicas) * run.num_ranks),
        waited_for_(busy_.size()),
        begin_(busy_.size(), -1),
        end_(busy_.size(), 0) {}

  Result Build(const std::vector<double>& step_seconds) {
    FillShape();
    FillSteps(step_seconds);
    FillTimeline();
    FillRanks();
    return std::move(result_);
  }

 private:
  uint32_t GpuOf(const RecordedOperation& o) const {
    return static_cast<uint32_t>(o.replica * run_.num_ranks + o.rank);
  }

  void FillShape() {
    result_.set_name(NameOfRun(run_));
    result_.set_schedule("measured");
    result_.set_method("imported");
    result_.set_tensor_parallel(1);
    result_.set_pipeline_parallel(run_.num_ranks);
    result_.set_data_parallel(run_.num_replicas);
    // Stages of passes in parts are layers.
    const int num_chunks = run_.in_parts ? 1 : run_.num_stages / run_.num_ranks;
    result_.set_chunks(std::max(num_chunks, 1));
    result_.set_num_batches(1);
    std::set<int32_t> microbatches;
    for (const auto* o = step_.begin; o != step_.end; ++o) {
      if (o->kind == RecordedKind::kForward && o->replica == 0) {
        microbatches.insert(o->microbatch);
      }
    }
    result_.set_num_microbatches(microbatches.size());
    result_.set_fits_memory(true);  // it ran
    result_.set_steady_state(true);
    result_.set_limit(
        absl::StrCat("recorded: ", run_.format, ", step ", step_.step));
    for (const std::string& note : run_.notes) result_.add_warnings(note);
  }

  void FillSteps(const std::vector<double>& step_seconds) {
    Replay* replay = result_.mutable_replay();
    replay->set_device("GPUs of the trace");
    replay->set_num_steps(step_seconds.size());
    for (const double seconds : step_seconds) {
      replay->add_step_seconds(seconds);
    }
    for (const MovedClock& shift : run_.moved_clocks) {
      auto* entry = replay->add_clock_shifts();
      entry->set_gpu(shift.replica * run_.num_ranks + shift.rank);
      entry->set_replica(shift.replica);
      entry->set_pipeline_rank(shift.rank);
      entry->set_least_seconds(shift.least_seconds);
      entry->set_most_seconds(shift.most_seconds);
    }
    result_.set_makespan_seconds(step_.seconds());
    result_.set_batch_seconds(step_.seconds());
  }

  void FillTimeline() {
    std::map<std::tuple<uint32_t, RecordedKind>, int> numbers;
    for (size_t i = 0; i < step_.size(); ++i) {
      const RecordedOperation& o = step_.begin[i];
      const uint32_t gpu = GpuOf(o);
      if (begin_[gpu] < 0) begin_[gpu] = o.start_seconds;
      end_[gpu] = std::max(end_[gpu], o.end_seconds);
      if (IsPass(o.kind)) {
        passes_[{o.replica, o.kind == RecordedKind::kForward, o.stage,
                 o.microbatch}] = &o;
      }
      if (IsAction(o.kind)) {
        AddAction(o);
        busy_[gpu].push_back({o.start_seconds, o.end_seconds});
      } else if (!IsMessage(o.kind) &&
                 o.kind != RecordedKind::kGarbageCollection) {
        AddCollective(o, seconds_[i], numbers[{gpu, o.kind}]++);
      }
    }
    for (const std::vector<int32_t>& members : groups_.members) {
      if (IsMessage(step_.begin[members[0]].kind)) AddTransfer(members);
    }
  }

  void AddAction(const RecordedOperation& o) {
    Actions* actions = result_.mutable_timeline()->mutable_actions();
    actions->add_gpu(GpuOf(o));
    actions->add_op(OpOf(o.kind));
    actions->add_stage(o.stage < 0 ? o.rank : o.stage);
    actions->add_microbatch(std::max(o.microbatch, 0));
    actions->add_num_microbatches(1);
    actions->add_start_seconds(o.start_seconds);
    actions->add_end_seconds(o.end_seconds);
  }

  void AddCollective(const RecordedOperation& o, double seconds, int number) {
    Collectives* collectives =
        result_.mutable_timeline()->mutable_collectives();
    const double start =
        std::clamp(o.end_seconds - seconds, o.start_seconds, o.end_seconds);
    collectives->add_gpu(GpuOf(o));
    collectives->add_kind(CollectiveOf(o.kind));
    collectives->add_stage(o.stage < 0 ? o.rank : o.stage);
    collectives->add_microbatch(o.microbatch >= 0 ? o.microbatch : number);
    collectives->add_bytes(0);
    collectives->add_start_seconds(start);
    collectives->add_end_seconds(o.end_seconds);
    waited_for_[GpuOf(o)].push_back({start, o.end_seconds});
  }

  // The receiver's end is when the data is there.
  void AddTransfer(const std::vector<int32_t>& members) {
    const RecordedOperation* send = nullptr;
    const RecordedOperation* receive = nullptr;
    for (const int32_t i : members) {
      const RecordedOperation& o = step_.begin[i];
      const bool sends = o.kind == RecordedKind::kSendForward ||
                         o.kind == RecordedKind::kSendBackward;
      (sends ? send : receive) = &o;
    }
    if (send == nullptr || receive == nullptr) return;
    const bool gradient = send->kind == RecordedKind::kSendBackward;
    const double end = receive->end_seconds;
    const double start =
        std::min(std::max(send->start_seconds, receive->start_seconds), end);
    const auto pass =
        passes_.find({send->replica, !gradient, send->stage, send->microbatch});
    const double ready =
        pass == passes_.end() ? start : pass->second->end_seconds;
    Transfers* transfers = result_.mutable_timeline()->mutable_transfers();
    transfers->add_from_gpu(GpuOf(*send));
    transfers->add_to_gpu(GpuOf(*receive));
    transfers->add_kind(gradient ? Transfers::GRADIENT : Transfers::ACTIVATION);
    transfers->add_stage(send->stage);
    transfers->add_microbatch(send->microbatch);
    transfers->add_bytes(0);
    transfers->add_start_seconds(start);
    transfers->add_end_seconds(end);
    transfers->add_ready_seconds(std::min(ready, start));
    waited_for_[GpuOf(*receive)].push_back({start, end});
  }

  void FillRanks() {
    const double window = step_.seconds();
    std::vector<double> idle, exposed;
    for (size_t gpu = 0; gpu < busy_.size(); ++gpu) {
      std::vector<Interval> gaps = {{0, window}};
      const double busy = TakeOut(std::move(busy_[gpu]), &gaps);
      idle.push_back(LengthOf(gaps));
      exposed.push_back(TakeOut(std::move(waited_for_[gpu]), &gaps));
      RankResult* rank = result_.add_ranks();
      rank->set_rank(static_cast<uint32_t>(gpu % run_.num_ranks));
      rank->set_replica(static_cast<uint32_t>(gpu / run_.num_ranks));
      rank->set_gpu(static_cast<uint32_t>(gpu));
      rank->set_busy_seconds(busy);
      rank->set_idle_seconds(idle.back());
      rank->set_span_seconds(
          std::max(end_[gpu] - std::max(begin_[gpu], 0.0), 0.0));
      rank->set_exposed_communication_seconds(exposed.back());
    }
    result_.set_idle_ratio(IdleRatio(idle, window));
    result_.set_exposed_communication_ratio(
        ExposedCommunicationRatio(exposed, window));
    result_.set_busiest_gpu(static_cast<uint32_t>(
        std::min_element(idle.begin(), idle.end()) - idle.begin()));
  }

  const RecordedRun& run_;
  const RecordedStep& step_;
  const OperationGroups groups_;
  const std::vector<double> seconds_;
  Result result_;
  std::map<std::tuple<int, bool, int, int>, const RecordedOperation*> passes_;
  std::vector<std::vector<Interval>> busy_, waited_for_;  // [gpu]
  std::vector<double> begin_, end_;                       // [gpu]
};

}  // namespace

std::string NameOfRun(const RecordedRun& run) {
  const std::string name = run.label.substr(run.label.rfind('/') + 1);
  return name.substr(0, name.find('.'));
}

Result ResultOfStep(const RecordedRun& run, int index) {
  const std::vector<RecordedStep> steps = StepsOf(run);
  std::vector<double> seconds;
  for (const RecordedStep& step : steps) seconds.push_back(step.seconds());
  return Builder(run, steps[index]).Build(seconds);
}

}  // namespace weir::results
