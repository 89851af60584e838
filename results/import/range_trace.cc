// SPDX-License-Identifier: Apache-2.0
#include "results/import/range_trace.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
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

// Sets the steps of a worker's operations that have none: that of the next pass
// for gathers and receives, which precede it, and that of the previous pass for
// others. Requires: the operations are sorted by start.
void AssignSteps(std::vector<RecordedOperation>* operations) {
  const auto assign = [](auto begin, auto end, bool before) {
    int32_t step = kByTime;
    for (auto o = begin; o != end; ++o) {
      if (IsPass(o->kind)) step = o->step;
      const bool precedes = o->kind == RecordedKind::kWeightGather ||
                            o->kind == RecordedKind::kReceiveForward ||
                            o->kind == RecordedKind::kReceiveBackward;
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
    const bool is_last = o.kind == RecordedKind::kWeightGather;
    o.step = is_last ? last : 0;
  }
}

}  // namespace

void RangeTrace::BeginFile() { files_.emplace_back(); }

void RangeTrace::Take(const ChromeEvent& event) {
  if (event.phase != 'X') return;
  const auto operation = ParseOperationName(event.name);
  if (!operation.has_value() ||
      std::max({operation->stage, operation->microbatch, operation->chunk}) >=
          kMaxRecordedWorkers) {
    return;
  }
  Worker& worker = files_.back().processes[event.process];
  auto& ranges =
      event.category == "gpu_user_annotation" ? worker.on_gpu : worker.on_host;
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

void RangeTrace::MergeStreams(std::vector<Range>* ranges) {
  // (kind, stage, chunk, microbatch): index of its last range
  std::map<std::tuple<RecordedKind, int, int, int>, size_t> last;
  std::vector<Range> merged;
  for (const Range& range : *ranges) {
    const NamedOperation& o = range.operation;
    const auto [at, is_new] = last.try_emplace(
        {o.kind, o.stage, o.chunk, o.microbatch}, merged.size());
    if (!is_new) {
      Range& before = merged[at->second];
      const double end = before.start_microseconds + before.microseconds;
      if (range.start_microseconds < end) {
        before.microseconds =
            std::max(end, range.start_microseconds + range.microseconds) -
            before.start_microseconds;
        continue;
      }
      at->second = merged.size();
    }
    merged.push_back(range);
  }
  *ranges = std::move(merged);
}

absl::Status RangeTrace::CheckDistinct(
    const std::vector<Ranges>& workers) const {
  const auto key = [](const Range& range) {
    const NamedOperation& o = range.operation;
    return std::make_tuple(o.kind, o.stage, o.chunk, o.microbatch,
                           range.start_microseconds, range.microseconds);
  };
  const auto less = [&](const Ranges* a, const Ranges* b) {
    return std::lexicographical_compare(
        a->ranges.begin(), a->ranges.end(), b->ranges.begin(), b->ranges.end(),
        [&](const Range& x, const Range& y) { return key(x) < key(y); });
  };
  std::set<const Ranges*, decltype(less)> seen(less);
  for (const Ranges& worker : workers) {
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
  std::vector<Ranges> ranges;  // by rank
  bool any_on_host = false;
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
    for (const auto& [process, worker] : file.processes) {
      order.push_back(process);
      on_gpu |= !worker.on_gpu.empty();
    }
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return ProcessOrder(a) < ProcessOrder(b);
    });
    for (const std::string& process : order) {
      Worker& worker = file.processes[process];
      std::vector<Range>& ranges = on_gpu ? worker.on_gpu : worker.on_host;
      if (ranges.empty()) continue;
      workers.any_on_host |= !on_gpu;
      for (Range& range : ranges) {
        range.start_microseconds += 1e-3 * file.base_nanoseconds;
        workers.first_microseconds =
            std::min(workers.first_microseconds, range.start_microseconds);
      }
      std::stable_sort(ranges.begin(), ranges.end(),
                       [](const Range& a, const Range& b) {
                         return a.start_microseconds < b.start_microseconds;
                       });
      if (on_gpu) MergeStreams(&ranges);
      workers.ranges.push_back(
          {std::move(ranges), static_cast<size_t>(&file - files_.data())});
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
    const std::vector<Ranges>& workers) {
  Pipeline pipeline;
  for (size_t w = 0; w < workers.size(); ++w) {
    std::set<int> stages;
    for (const Range& range : workers[w].ranges) {
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

void RangeTrace::AddOperations(const Ranges& worker, int replica, int rank,
                               double first_microseconds, bool has_weight,
                               RecordedRun* run) {
  std::map<std::tuple<RecordedKind, int, int>, int> times;
  std::map<std::pair<RecordedKind, int>, int> microbatches;
  std::vector<RecordedOperation> operations;
  for (const Range& range : worker.ranges) {
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
    if (IsPass(o.kind)) {
      // Passes without a number are counted; they are all in one step.
      if (o.microbatch < 0) {
        o.microbatch = microbatches[{o.kind, o.stage}]++;
      }
      run->num_stages = std::max(run->num_stages, o.stage + 1);
    }
    const bool is_numbered = o.microbatch >= 0;
    o.step = is_numbered ? times[{o.kind, o.stage, o.microbatch}]++ : kByTime;
    const double start = range.start_microseconds - first_microseconds;
    o.start_seconds = start * kSecondsPerMicrosecond;
    o.end_seconds = (start + range.microseconds) * kSecondsPerMicrosecond;
    operations.push_back(o);
  }
  AssignSteps(&operations);
  run->operations.insert(run->operations.end(), operations.begin(),
                         operations.end());
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
  if (workers.any_on_host) {
    run.notes.push_back(
        "the times of passes are those of ranges on the host, because the "
        "trace has none on the GPU: a pass seems as long as its launches");
  }
  const Pipeline pipeline = FindPipeline(workers.ranges);
  if (pipeline.num_chunks > kMaxRecordedChunks) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": has a range of chunk ", pipeline.num_chunks - 1,
                     ", expected below ", kMaxRecordedChunks));
  }
  run.num_ranks = static_cast<int>(pipeline.by_stages.size());
  run.num_stages =
      pipeline.has_stages ? 0 : pipeline.num_chunks * run.num_ranks;
  if (!pipeline.has_stages && pipeline.num_chunks > 1) {
    run.notes.push_back(
        "chunk c of rank r is taken as stage c x ranks + r: the trace has no "
        "stages");
  }
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
