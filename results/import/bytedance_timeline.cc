// SPDX-License-Identifier: Apache-2.0
#include "results/import/bytedance_timeline.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "results/import/operation_names.h"

namespace weir::results {
namespace {

bool InRange(int64_t value, int64_t size) { return value >= 0 && value < size; }

}  // namespace

absl::Status ByteDanceTimeline::Take(absl::string_view label,
                                     const ChromeEvent& event) {
  const Thread thread = {event.process, event.thread};
  if (event.phase == 'M') {
    const TraceValue* name = event.Argument("name");
    absl::string_view text;
    if (name != nullptr) text = name->text;
    int rank = -1;
    if (event.name == "thread_name" && absl::ConsumePrefix(&text, "PP rank ") &&
        absl::SimpleAtoi(text.substr(0, text.find(',')), &rank) &&
        InRange(rank, kMaxRecordedWorkers)) {
      ranks_[thread] = rank;
    }
    return absl::OkStatus();
  }
  const auto kind = ParseTimerName(event.name);
  if (!kind.has_value() || event.Argument("step") == nullptr ||
      event.Argument("seq_id") == nullptr) {
    return absl::OkStatus();
  }
  const int64_t step = event.Integer("step", -1);
  int replica = -1;
  if (!InRange(step, kMaxRecordedNumber) ||
      !absl::SimpleAtoi(event.process, &replica) ||
      !InRange(replica, kMaxRecordedWorkers)) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": ", event.name, " at ", event.start_microseconds,
                     " us: pid is ", event.process, " and args.step ", step,
                     ", expected the replica and the step, from 0"));
  }
  Operation operation;
  operation.recorded.step = static_cast<int32_t>(step);
  operation.recorded.replica = replica;
  operation.recorded.kind = *kind;
  operation.recorded.start_seconds =
      event.start_microseconds * kSecondsPerMicrosecond;
  operation.recorded.end_seconds =
      (event.start_microseconds + event.microseconds) * kSecondsPerMicrosecond;
  if (IsPass(*kind)) {
    const int64_t microbatch = event.Integer("mb_id", -1);
    const int64_t chunk = event.Integer("model_chunk", 0);
    if (!InRange(microbatch, kMaxRecordedNumber) ||
        !InRange(chunk, kMaxRecordedChunks)) {
      return absl::InvalidArgumentError(absl::StrCat(
          label, ": ", event.name, " of step ", step, ": mb_id is ", microbatch,
          " and model_chunk ", chunk, ", expected numbers from 0"));
    }
    operation.recorded.microbatch = static_cast<int32_t>(microbatch);
    operation.chunk = static_cast<int32_t>(chunk);
  }
  const auto number = static_cast<int32_t>(thread_numbers_.size());
  operation.thread = thread_numbers_.emplace(thread, number).first->second;
  operations_.push_back(operation);
  return absl::OkStatus();
}

absl::StatusOr<RecordedRun> ByteDanceTimeline::Finish(absl::string_view label,
                                                      bool cut_off) {
  std::vector<int32_t> ranks(thread_numbers_.size(), -1);
  RecordedRun run;
  run.label = std::string(label);
  run.format = "ByteDance timeline";
  for (const auto& [thread, number] : thread_numbers_) {
    const auto found = ranks_.find(thread);
    if (found == ranks_.end() && cut_off) {
      return absl::InvalidArgumentError(absl::StrCat(
          label,
          ": is cut off before the names of its threads, which have the "
          "pipeline ranks and are at the end of such timelines, expected the "
          "complete file"));
    }
    if (found == ranks_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          label, ": thread ", thread.second, " of process ", thread.first,
          " has no name, expected a thread_name such as \"PP rank 0, TP rank "
          "0, compute\""));
    }
    ranks[number] = found->second;
    run.num_ranks = std::max(run.num_ranks, found->second + 1);
  }
  int num_chunks = 1;
  for (Operation& operation : operations_) {
    RecordedOperation& o = operation.recorded;
    o.rank = ranks[operation.thread];
    if (operation.chunk >= 0) {
      o.stage = operation.chunk * run.num_ranks + o.rank;
      num_chunks = std::max(num_chunks, operation.chunk + 1);
    }
    run.num_replicas = std::max(run.num_replicas, o.replica + 1);
    run.operations.push_back(o);
  }
  run.num_stages = num_chunks * run.num_ranks;
  return run;
}

}  // namespace weir::results
