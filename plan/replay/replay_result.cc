// SPDX-License-Identifier: Apache-2.0
#include "plan/replay/replay_result.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "base/version.h"
#include "plan/replay/replay_times.h"
#include "results/metrics.h"
#include "results/result_enums.h"
#include "schedules/semantics.h"

namespace weir::plan {
namespace {

double MeanOf(const std::vector<double>& values, size_t first, size_t count) {
  const auto begin = values.begin() + first;
  return std::accumulate(begin, begin + count, 0.0) / count;
}

void FillShape(const FinishedReplay& replay, Result* result) {
  const Scenario& scenario = replay.scenario.scenario;
  const schedules::Schedule& schedule = replay.plan.schedule;
  result->set_name(scenario.name());
  result->set_schedule(schedule.name);
  result->set_method("replay");
  ResultProvenance* provenance = result->mutable_provenance();
  provenance->set_weir_version(std::string(WeirVersion()));
  provenance->set_git_revision(std::string(GitRevision()));
  provenance->set_scenario(PrintTextProto(scenario));
  result->set_tensor_parallel(1);
  result->set_pipeline_parallel(schedule.num_ranks);
  result->set_data_parallel(1);
  result->set_chunks(std::max(schedule.num_stages / schedule.num_ranks, 1));
  result->set_microbatch_size(scenario.batch().microbatch_size());
  result->set_global_batch_size(scenario.batch().global_batch_size());
  result->set_sequence_length(scenario.batch().sequence_length());
  result->set_num_microbatches(schedule.num_microbatches);
  result->set_num_batches(schedule.num_batches);
  result->set_forward_only(schedule.forward_only);
}

void FillReplay(const FinishedReplay& replay,
                const calibrate::StepRecord& shown, Result* result) {
  Replay* entry = result->mutable_replay();
  entry->set_device(replay.record.device);
  entry->set_provenance(PrintTextProto(replay.provenance));
  entry->set_gpu_name(replay.provenance.gpu_name());
  entry->set_gpu_hash(replay.provenance.gpu_hash());
  entry->set_serial(replay.serial);
  entry->set_num_steps(static_cast<uint32_t>(replay.record.steps.size()));
  const size_t batch = replay.plan.schedule.num_microbatches;
  for (const calibrate::StepRecord& step : replay.record.steps) {
    entry->add_step_seconds(step.makespan_seconds);
    for (size_t m = 0; m + batch <= step.losses.size(); m += batch) {
      entry->add_losses(MeanOf(step.losses, m, batch));
    }
  }
  entry->set_formula(replay.check.formula);
  entry->set_weights_difference(replay.check.difference.weights);
  entry->set_change_difference(replay.check.difference.change);
  entry->set_losses_difference(replay.check.difference.losses);
  const bool counted =
      std::any_of(shown.ranks.begin(), shown.ranks.end(),
                  [](const auto& r) { return r.allocator_peak_bytes > 0; });
  if (!counted) return;
  for (const calibrate::RankRecord& rank : shown.ranks) {
    entry->add_allocator_peak_bytes(rank.allocator_peak_bytes);
    entry->add_taken_peak_bytes(rank.taken_peak_bytes);
  }
}

void FillRank(const schedules::Schedule& schedule,
              const calibrate::StepRecord& step, int rank, Result* result) {
  const calibrate::RankRecord& record = step.ranks[rank];
  const ReplayWindow all = {0, step.makespan_seconds};
  const RecordedTimes times = TimesOf(schedule, step, rank, all);
  const VersionsHeld held = VersionsOf(schedule, step, rank);
  RankResult* entry = result->add_ranks();
  entry->set_rank(rank);
  entry->set_gpu(rank);
  entry->set_busy_seconds(times.busy_seconds);
  entry->set_idle_seconds(times.idle_seconds);
  entry->set_span_seconds(SpanOf(schedule, step, rank).seconds);
  entry->set_exposed_communication_seconds(times.exposed_seconds);
  entry->set_peak_memory_bytes(record.peak_bytes);
  entry->set_peak_memory_at_seconds(record.peak_at_seconds);
  for (int kind = 0; kind < MemoryClass::Kind_ARRAYSIZE; ++kind) {
    if (record.peak_by_class[kind] == 0) continue;
    MemoryClass* memory = entry->add_peak_memory_classes();
    memory->set_name(results::NameOf(static_cast<MemoryClass::Kind>(kind)));
    memory->set_bytes(record.peak_by_class[kind]);
  }
  entry->set_peak_activation_microbatches(
      PeakActivationMicrobatches(schedule, step, rank));
  entry->set_weight_versions(held.versions);
  entry->set_staleness_updates(held.staleness);
  result->set_peak_memory_bytes(
      std::max(result->peak_memory_bytes(), record.peak_bytes));
  result->set_weight_versions(
      std::max<uint32_t>(result->weight_versions(), held.versions));
  result->set_staleness_updates(
      std::max<uint32_t>(result->staleness_updates(), held.staleness));
}

void FillSpan(const schedules::Schedule& schedule,
              const calibrate::StepRecord& step, Result* result) {
  double longest = 0;
  std::vector<ReplaySpan> spans;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    spans.push_back(SpanOf(schedule, step, rank));
    longest = std::max(longest, spans.back().seconds);
  }
  if (!(longest > 0)) return;
  std::vector<double> idle;
  for (const ReplaySpan& span : spans) {
    idle.push_back(longest - span.seconds + span.idle_seconds);
  }
  result->set_span_seconds(longest);
  result->set_span_idle_ratio(results::IdleRatio(idle, longest));
}

void FillBatch(const schedules::Schedule& schedule,
               const calibrate::StepRecord& step, Result* result) {
  const ReplayWindow window = WindowOf(schedule, step);
  const double batch_seconds = window.seconds() / window.num_batches;
  result->set_makespan_seconds(step.makespan_seconds);
  result->set_batch_seconds(batch_seconds);
  result->set_steady_state(schedule.flush);
  std::vector<double> busy, idle, exposed;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const RecordedTimes times = TimesOf(schedule, step, rank, window);
    busy.push_back(times.busy_seconds);
    idle.push_back(times.idle_seconds);
    exposed.push_back(times.exposed_seconds);
  }
  result->set_idle_ratio(results::IdleRatio(idle, window.seconds()));
  result->set_exposed_communication_ratio(
      results::ExposedCommunicationRatio(exposed, window.seconds()));
  result->set_busiest_gpu(static_cast<uint32_t>(
      std::max_element(busy.begin(), busy.end()) - busy.begin()));
  if (schedule.flush) FillSpan(schedule, step, result);
  if (!(batch_seconds > 0)) return;
  result->set_samples_per_second(
      results::SamplesPerSecond(result->global_batch_size(), batch_seconds));
  result->set_tokens_per_second(results::TokensPerSecond(
      result->global_batch_size(), result->sequence_length(), batch_seconds));
}

void FillTimeline(const schedules::Schedule& schedule,
                  const calibrate::StepRecord& step, Timeline* timeline) {
  Timeline::Actions* actions = timeline->mutable_actions();
  const auto add = [&](int rank, Timeline::Actions::Op op, int stage,
                       int number, int count, double start, double end) {
    actions->add_gpu(rank);
    actions->add_op(op);
    actions->add_stage(stage);
    actions->add_microbatch(number);
    actions->add_num_microbatches(count);
    actions->add_start_seconds(start);
    actions->add_end_seconds(end);
  };
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const calibrate::RankRecord& record = step.ranks[rank];
    for (size_t i = 0; i < record.actions.size(); ++i) {
      const schedules::Action& action = schedule.rank_actions[rank][i];
      add(rank, results::TimelineOpOf(action.op), action.stage,
          action.microbatch, action.num_microbatches,
          record.actions[i].start_seconds, record.actions[i].end_seconds);
    }
    for (const calibrate::UpdateRecord& update : record.updates) {
      add(rank, Timeline::Actions::OPTIMIZER_STEP, update.stage, update.update,
          1, update.start_seconds, update.end_seconds);
    }
    for (const calibrate::MemoryRecord& memory : record.memory) {
      timeline->mutable_memory()->add_gpu(rank);
      timeline->mutable_memory()->add_seconds(memory.seconds);
      timeline->mutable_memory()->add_bytes(memory.bytes);
    }
  }
  for (const calibrate::TransferRecord& transfer : step.transfers) {
    Timeline::Transfers* transfers = timeline->mutable_transfers();
    transfers->add_from_gpu(transfer.from_rank);
    transfers->add_to_gpu(transfer.to_rank);
    transfers->add_kind(transfer.gradient ? Timeline::Transfers::GRADIENT
                                          : Timeline::Transfers::ACTIVATION);
    transfers->add_stage(transfer.stage);
    transfers->add_microbatch(transfer.microbatch);
    transfers->add_bytes(transfer.bytes);
    transfers->add_start_seconds(transfer.start_seconds);
    transfers->add_end_seconds(transfer.end_seconds);
    transfers->add_ready_seconds(transfer.ready_seconds);
  }
}

}  // namespace

int MedianStep(const std::vector<calibrate::StepRecord>& steps) {
  std::vector<int> order(steps.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return steps[a].makespan_seconds < steps[b].makespan_seconds;
  });
  return order[(order.size() - 1) / 2];
}

absl::StatusOr<Result> ResultOfReplay(const FinishedReplay& replay) {
  const schedules::Schedule& schedule = replay.plan.schedule;
  if (replay.record.steps.empty()) {
    return absl::InvalidArgumentError("no step of the replay has finished");
  }
  ASSIGN_OR_RETURN(const schedules::Semantics semantics,
                   schedules::InterpretSchedule(schedule));
  const calibrate::StepRecord& step =
      replay.record.steps[MedianStep(replay.record.steps)];
  Result result;
  FillShape(replay, &result);
  FillReplay(replay, step, &result);
  result.set_semantics(schedules::Verdict(schedule, semantics));
  FillBatch(schedule, step, &result);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    FillRank(schedule, step, rank, &result);
  }
  result.set_fits_memory(true);  // it ran
  result.set_limit(absl::StrCat("executed on ", replay.record.device));
  if (!replay.check.why_not.empty()) {
    result.add_warnings(absl::StrCat("the training result was not checked: ",
                                     replay.check.why_not));
  }
  FillTimeline(schedule, step, result.mutable_timeline());
  return result;
}

}  // namespace weir::plan
