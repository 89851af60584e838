// SPDX-License-Identifier: Apache-2.0
#include "results/import/range_trace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace weir::results {
namespace {

// Orders process numbers as numbers.
std::pair<int64_t, std::string> ProcessOrder(const std::string& process) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(process, &number)) {
    number = std::numeric_limits<int64_t>::max();
  }
  return {number, process};
}

constexpr int32_t kByTime = -1;

bool PrecedesPass(RecordedKind kind) {
  return kind == RecordedKind::kWeightGather ||
         kind == RecordedKind::kReceiveForward ||
         kind == RecordedKind::kReceiveBackward;
}

// Sets the steps of a worker's operations that have none: that of the next pass
// for gathers and receives, which precede it, and that of the previous pass for
// others. Requires: the operations are sorted by start.
void AssignSteps(std::vector<RecordedOperation>* operations) {
  const auto assign = [](auto begin, auto end, bool before) {
    int32_t step = kByTime;
    for (auto o = begin; o != end; ++o) {
      if (IsPass(o->kind)) step = o->step;
      const bool precedes = PrecedesPass(o->kind);
      if (o->step == kByTime && precedes == before) o->step = step;
    }
  };
  assign(operations->rbegin(), operations->rend(), true);
  assign(operations->begin(), operations->end(), false);
  // Without such a pass: the first step, or the last.
  int32_t last = 0;
  for (const RecordedOperation& o : *operations) last = std::max(last, o.step);
  for (RecordedOperation& o : *operations) {
    if (o.step != kByTime) continue;
    o.step = PrecedesPass(o.kind) ? last : 0;
  }
}

}  // namespace

void RangeTrace::BeginFile() { files_.emplace_back(); }

void RangeTrace::Take(const ChromeEvent& event) {
  if (event.phase != 'X') return;
  const bool on_gpu = event.category == "gpu_user_annotation";
  if (absl::StartsWith(event.name, "ProfilerStep#")) {
    Worker& worker = files_.back().processes[event.process];
    auto& steps = on_gpu ? worker.gpu_steps : worker.host_steps;
    // Keeps the earliest start if several streams record the step.
    const auto [step, is_new] =
        steps.try_emplace(event.name, event.start_microseconds);
    step->second = std::min(step->second, event.start_microseconds);
    return;
  }
  const auto operation = ParseOperationName(event.name);
  if (!operation.has_value() ||
      std::max({operation->stage, operation->microbatch, operation->chunk}) >=
          kMaxRecordedWorkers) {
    return;
  }
  Worker& worker = files_.back().processes[event.process];
  auto& ranges = on_gpu ? worker.on_gpu : worker.on_host;
  ranges.push_back({*operation, event.start_microseconds, event.microseconds});
  ++num_ranges_;
}

absl::Status RangeTrace::EndFile(absl::string_view label,
                                 const ChromeTrace& trace) {
  File& file = files_.back();
  const auto number = [&](const char* name, double otherwise) {
    const auto found = trace.properties.find(name);
    return found != trace.properties.end() && found->second.is_number
               ? found->second.number
               : otherwise;
  };
  file.label = std::string(label);
  file.base_nanoseconds = number("baseTimeNanoseconds", 0);
  constexpr double kMaxNanoseconds = 1e9 * kMaxRecordedSeconds;
  if (!(std::abs(file.base_nanoseconds) <= kMaxNanoseconds)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: baseTimeNanoseconds is %g, expected nanoseconds from %g to %g",
        label, file.base_nanoseconds, -kMaxNanoseconds, kMaxNanoseconds));
  }
  const double world_size = number("distributedInfo.world_size", 0);
  if (world_size > 0 && world_size < kMaxRecordedNumber) {
    world_size_ = std::max(world_size_, static_cast<int64_t>(world_size));
  }
  const double rank = number("distributedInfo.rank", -1);
  if (rank >= 0 && rank < kMaxRecordedNumber) {
    file.rank = static_cast<int64_t>(rank);
    if (!ranks_.insert(file.rank).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          label, ": distributedInfo.rank is ", file.rank,
          " as in an earlier file, expected one file for each rank"));
    }
  }
  return absl::OkStatus();
}

absl::Status RangeTrace::CheckDistinct(
    const std::vector<WorkerRanges>& workers) const {
  const auto key = [](const NamedRange& range) {
    return std::make_tuple(KeyOf(range.operation), range.start_microseconds,
                           range.microseconds);
  };
  const auto less = [&](const WorkerRanges* a, const WorkerRanges* b) {
    return std::lexicographical_compare(
        a->ranges.begin(), a->ranges.end(), b->ranges.begin(), b->ranges.end(),
        [&](const NamedRange& x, const NamedRange& y) {
          return key(x) < key(y);
        });
  };
  std::set<const WorkerRanges*, decltype(less)> seen(less);
  for (const WorkerRanges& worker : workers) {
    const auto [first, is_new] = seen.insert(&worker);
    if (is_new || (*first)->file == worker.file) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        files_[worker.file].label,
        ": has the same ranges at the same times as ",
        files_[(*first)->file].label, ", expected one file for each rank"));
  }
  return absl::OkStatus();
}

struct RangeTrace::Workers {
  std::vector<WorkerRanges> ranges;  // by rank
  bool any_on_host = false;
  size_t num_copies = 0, num_merged = 0;
  double first_microseconds = std::numeric_limits<double>::infinity();
};

RangeTrace::Workers RangeTrace::TakeWorkers() {
  std::stable_sort(
      files_.begin(), files_.end(),
      [](const auto& a, const auto& b) { return a.rank < b.rank; });
  Workers workers;
  for (File& file : files_) {
    std::vector<std::string> order;
    bool on_gpu = false;
    const double base = 1e-3 * file.base_nanoseconds;
    std::set<double> host_steps;
    for (const auto& [process, worker] : file.processes) {
      order.push_back(process);
      on_gpu |= !worker.on_gpu.empty();
      for (const auto& step : worker.host_steps) {
        host_steps.insert(step.second + base);
      }
    }
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return ProcessOrder(a) < ProcessOrder(b);
    });
    for (const std::string& process : order) {
      Worker& worker = file.processes[process];
      std::vector<NamedRange>& ranges = on_gpu ? worker.on_gpu : worker.on_host;
      if (ranges.empty()) continue;
      workers.any_on_host |= !on_gpu;
      for (NamedRange& range : ranges) {
        range.start_microseconds += base;
        workers.first_microseconds =
            std::min(workers.first_microseconds, range.start_microseconds);
      }
      std::stable_sort(ranges.begin(), ranges.end(),
                       [](const NamedRange& a, const NamedRange& b) {
                         return a.start_microseconds < b.start_microseconds;
                       });
      workers.num_copies += DropCopies(&ranges);
      if (on_gpu) workers.num_merged += MergeStreams(&ranges);
      std::set<double> gpu_steps;
      for (const auto& step : worker.gpu_steps) {
        gpu_steps.insert(step.second + base);
      }
      workers.ranges.push_back({std::move(ranges),
                                static_cast<size_t>(&file - files_.data()),
                                on_gpu, std::move(gpu_steps), host_steps});
    }
  }
  return workers;
}

struct RangeTrace::Pipeline {
  // Indices of workers. Those with the same stages are replicas; the ranks are
  // in the order of their first stage.
  std::map<std::set<int>, std::vector<int>> by_stages;
  bool has_stages = false, has_weight = false;
  int num_chunks = 1;
};

RangeTrace::Pipeline RangeTrace::FindPipeline(
    const std::vector<WorkerRanges>& workers) {
  Pipeline pipeline;
  for (size_t w = 0; w < workers.size(); ++w) {
    std::set<int> stages;
    for (const NamedRange& range : workers[w].ranges) {
      const NamedOperation& o = range.operation;
      if (o.stage >= 0 && IsPass(o.kind)) stages.insert(o.stage);
      pipeline.num_chunks = std::max(pipeline.num_chunks, o.chunk + 1);
      pipeline.has_weight |= o.kind == RecordedKind::kBackwardWeight;
    }
    pipeline.has_stages |= !stages.empty();
    // Without names of stages each worker is a pipeline rank.
    if (stages.empty()) stages.insert(static_cast<int>(w));
    pipeline.by_stages[stages].push_back(static_cast<int>(w));
  }
  return pipeline;
}

absl::Status RangeTrace::CheckReplicas(const Workers& workers,
                                       const Pipeline& pipeline) const {
  // (stage, microbatch) of forwards
  using Forwards = std::set<std::pair<int, int>>;
  const auto forwards_of = [&](int worker) {
    Forwards forwards;
    for (const NamedRange& range : workers.ranges[worker].ranges) {
      const NamedOperation& o = range.operation;
      const bool is_named = o.stage >= 0 && o.microbatch >= 0;
      if (is_named && o.kind == RecordedKind::kForward) {
        forwards.emplace(o.stage, o.microbatch);
      }
    }
    return forwards;
  };
  for (const auto& [stages, members] : pipeline.by_stages) {
    if (members.size() < 2) continue;
    const Forwards first = forwards_of(members[0]);
    for (size_t i = 1; i < members.size(); ++i) {
      const Forwards other = forwards_of(members[i]);
      if (first.empty() || other.empty()) continue;
      const bool shares =
          std::any_of(other.begin(), other.end(),
                      [&](const auto& pass) { return first.contains(pass); });
      if (shares) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          files_[workers.ranges[members[i]].file].label,
          ": runs the same stages (", absl::StrJoin(stages, ", "), ") as ",
          files_[workers.ranges[members[0]].file].label,
          " with other microbatches (from ", other.begin()->second, " and ",
          first.begin()->second,
          "), expected the same microbatches of replicas: pipelines in two "
          "directions, as of Chimera and DualPipe, cannot be imported"));
    }
  }
  return absl::OkStatus();
}

void RangeTrace::AddOperations(const WorkerRanges& worker, int replica,
                               int rank, double first_microseconds,
                               bool has_weight, RecordedRun* run) {
  const RangeSteps steps = FindSteps(worker);
  const std::vector<double>& starts = steps.start_microseconds;
  std::map<std::tuple<RecordedKind, int, int>, int> times;
  // (step, kind, stage)
  std::map<std::tuple<int, RecordedKind, int>, int> microbatches;
  std::vector<RecordedOperation> operations;
  for (const NamedRange& range : worker.ranges) {
    const NamedOperation& named = range.operation;
    RecordedOperation o;
    o.kind = named.kind;
    if (named.input_only && has_weight) {
      o.kind = RecordedKind::kBackwardInput;
    }
    o.replica = replica;
    o.rank = rank;
    o.microbatch = named.microbatch;
    const int chunk = std::max(named.chunk, 0);
    o.stage = named.stage >= 0 ? named.stage : chunk * run->num_ranks + rank;
    o.step = kByTime;
    if (!starts.empty() && (steps.of_all || IsPass(o.kind))) {
      const auto after = std::upper_bound(starts.begin(), starts.end(),
                                          range.start_microseconds);
      o.step = std::max(static_cast<int32_t>(after - starts.begin()) - 1, 0);
    }
    if (IsPass(o.kind)) {
      // Passes without a number are counted in their step.
      if (o.microbatch < 0) {
        o.microbatch = microbatches[{o.step, o.kind, o.stage}]++;
      }
      run->num_stages = std::max(run->num_stages, o.stage + 1);
    }
    if (starts.empty() && o.microbatch >= 0) {
      o.step = times[{o.kind, o.stage, o.microbatch}]++;
    }
    const double start = range.start_microseconds - first_microseconds;
    o.start_seconds = start * kSecondsPerMicrosecond;
    o.end_seconds = (start + range.microseconds) * kSecondsPerMicrosecond;
    operations.push_back(o);
  }
  AssignSteps(&operations);
  run->operations.insert(run->operations.end(), operations.begin(),
                         operations.end());
}

void RangeTrace::AddNotes(const Workers& workers, const Pipeline& pipeline,
                          RecordedRun* run) const {
  const auto num_workers = static_cast<int64_t>(workers.ranges.size());
  // Without the numbers of all ranks, they cannot be told.
  if (num_workers < world_size_ && ranks_.size() == files_.size()) {
    run->notes.push_back(absl::StrCat(
        "distributedInfo.world_size is ", world_size_,
        ", but the files lack distributedInfo.rank ",
        MissingNumbers(ranks_, world_size_), " (",
        world_size_ - static_cast<int64_t>(ranks_.size()), " of ", world_size_,
        "): the result is of the others. One rank of each tensor-parallel "
        "group is enough"));
  }
  if (workers.any_on_host) {
    run->notes.push_back(
        "the times of passes are those of ranges on the host, because the "
        "trace has none on the GPU: a pass seems as long as its launches");
  }
  const bool counts_all =
      std::any_of(workers.ranges.begin(), workers.ranges.end(),
                  [](const WorkerRanges& worker) {
                    return HasUnnumbered(worker.ranges) &&
                           FindSteps(worker).start_microseconds.empty();
                  });
  if (counts_all) {
    run->notes.push_back(
        "passes have no numbers and are taken as one step, because the trace "
        "has no ranges \"optimizer\" or \"ProfilerStep#N\" that end one");
  }
  if (workers.num_copies > 0) {
    run->notes.push_back(absl::StrCat(
        "ranges recorded twice with the same times: ", workers.num_copies,
        "; one of each is kept"));
  }
  if (workers.num_merged > 0) {
    run->notes.push_back(absl::StrCat(
        "ranges of the GPU that overlap another one of the same operation: ",
        workers.num_merged,
        "; each is taken as the same pass on another stream"));
  }
  if (!pipeline.has_stages && pipeline.num_chunks > 1) {
    run->notes.push_back(
        "chunk c of rank r is taken as stage c x ranks + r: the trace has no "
        "stages");
  }
}

absl::StatusOr<RecordedRun> RangeTrace::Finish(absl::string_view label) {
  RecordedRun run;
  run.label = std::string(label);
  run.format = "ranges of a profiler";
  const Workers workers = TakeWorkers();
  if (workers.ranges.size() > kMaxRecordedWorkers) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": has ", workers.ranges.size(),
                     " processes, expected at most ", kMaxRecordedWorkers));
  }
  RETURN_IF_ERROR(CheckDistinct(workers.ranges));
  const Pipeline pipeline = FindPipeline(workers.ranges);
  RETURN_IF_ERROR(CheckReplicas(workers, pipeline));
  if (pipeline.num_chunks > kMaxRecordedChunks) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": has a range of chunk ", pipeline.num_chunks - 1,
                     ", expected below ", kMaxRecordedChunks));
  }
  run.num_ranks = static_cast<int>(pipeline.by_stages.size());
  run.num_stages =
      pipeline.has_stages ? 0 : pipeline.num_chunks * run.num_ranks;
  AddNotes(workers, pipeline, &run);
  run.has_early_passes = workers.any_on_host;
  int rank = 0;
  for (const auto& [stages, members] : pipeline.by_stages) {
    for (size_t replica = 0; replica < members.size(); ++replica) {
      AddOperations(workers.ranges[members[replica]], static_cast<int>(replica),
                    rank, workers.first_microseconds, pipeline.has_weight,
                    &run);
      run.num_replicas =
          std::max(run.num_replicas, static_cast<int>(replica) + 1);
    }
    ++rank;
  }
  return run;
}

}  // namespace weir::results
