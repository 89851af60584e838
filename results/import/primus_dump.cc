// SPDX-License-Identifier: Apache-2.0
#include "results/import/primus_dump.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace weir::results {
namespace {

constexpr double kSecondsPerMillisecond = 1e-3;

constexpr RecordedKind kKinds[kNumPrimusKinds] = {
    RecordedKind::kForward, RecordedKind::kBackward,
    RecordedKind::kBackwardWeight};

// Returns N of ".../pp_rank_N.json", or -1.
int32_t RankOfName(absl::string_view label) {
  constexpr absl::string_view kName = "pp_rank_";
  const size_t at = label.rfind(kName);
  if (at == absl::string_view::npos) return -1;
  label.remove_prefix(at + kName.size());
  label = label.substr(0, label.find('.'));
  int32_t rank = -1;
  const bool valid =
      absl::SimpleAtoi(label, &rank) && rank >= 0 && rank < kMaxRecordedWorkers;
  return valid ? rank : -1;
}

absl::Status CheckSizes(absl::string_view label, int32_t number,
                        const PrimusStep& step) {
  for (int kind = 0; kind < kNumPrimusKinds; ++kind) {
    const PrimusPasses& passes = step[kind];
    const size_t count = passes.start_milliseconds.size();
    const auto check = [&](const char* name, size_t size, bool may_be_empty) {
      if (size == count || (may_be_empty && size == 0)) return absl::OkStatus();
      return absl::InvalidArgumentError(
          absl::StrCat(label, ": step ", number, ": ", kPrimusPrefixes[kind],
                       name, " has ", size, " values, expected ", count,
                       ", as many as ", kPrimusPrefixes[kind], "start"));
    };
    RETURN_IF_ERROR(check("end", passes.end_milliseconds.size(), false));
    RETURN_IF_ERROR(check("minibatch", passes.microbatches.size(), true));
    RETURN_IF_ERROR(check("chunk", passes.chunks.size(), true));
    for (size_t i = 0; i < count; ++i) {
      if (passes.end_milliseconds[i] >= passes.start_milliseconds[i]) continue;
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: step %d: %send[%d] is %g, expected at least %sstart[%d], %g",
          label, number, kPrimusPrefixes[kind], i, passes.end_milliseconds[i],
          kPrimusPrefixes[kind], i, passes.start_milliseconds[i]));
    }
  }
  return absl::OkStatus();
}

// Returns InvalidArgument if a forward and a backward have the same interval:
// Primus does so if it interleaves their kernels.
absl::Status CheckSeparate(absl::string_view label, int32_t number,
                           const PrimusStep& step) {
  std::set<std::pair<double, double>> forwards;
  const PrimusPasses& forward = step[0];
  for (size_t i = 0; i < forward.start_milliseconds.size(); ++i) {
    if (forward.end_milliseconds[i] > forward.start_milliseconds[i]) {
      forwards.emplace(forward.start_milliseconds[i],
                       forward.end_milliseconds[i]);
    }
  }
  const PrimusPasses& backward = step[1];
  for (size_t i = 0; i < backward.start_milliseconds.size(); ++i) {
    if (!forwards.contains(
            {backward.start_milliseconds[i], backward.end_milliseconds[i]})) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: step %d: a forward and a backward both run from %g to %g ms, "
        "expected a run without overlap_moe_expert_parallel_comm: Primus does "
        "not record the parts of passes that run together",
        label, number, backward.start_milliseconds[i],
        backward.end_milliseconds[i]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PrimusDump::Read(TraceSource* source) {
  ASSIGN_OR_RETURN(PrimusFile file, ReadPrimusFile(source));
  if (file.cut_off) {
    notes_.push_back(absl::StrCat(source->label(), ": ends after ",
                                  file.steps.size(),
                                  " complete steps, which were read"));
  }
  if (file.numbers.contains("pp_size")) {
    if (has_config_) {
      return absl::InvalidArgumentError(absl::StrCat(
          source->label(), ": is a second config.json, expected one dump"));
    }
    has_config_ = true;
    config_ = std::move(file.numbers);
    return absl::OkStatus();
  }
  if (file.steps.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source->label(), ": has no complete step"));
  }
  return AddRank(source->label(), std::move(file.steps));
}

absl::Status PrimusDump::AddRank(const std::string& label,
                                 std::map<int32_t, PrimusStep> steps) {
  for (const auto& [number, step] : steps) {
    RETURN_IF_ERROR(CheckSizes(label, number, step));
    RETURN_IF_ERROR(CheckSeparate(label, number, step));
  }
  int32_t rank = RankOfName(label);
  if (rank < 0) rank = num_unnamed_++;
  const auto [first, is_new] = ranks_.try_emplace(rank);
  if (!is_new) {
    return absl::InvalidArgumentError(absl::StrCat(
        label, ": is pipeline rank ", rank, " as ", first->second.label,
        " is, expected files pp_rank_0.json, pp_rank_1.json, ... of one dump"));
  }
  first->second = {label, std::move(steps)};
  return absl::OkStatus();
}

struct PrimusDump::Layout {
  int num_ranks = 1, num_chunks = 1;
  bool is_numbered = false;  // passes have chunks and microbatches
  bool is_folded = false;

  int StageOf(int rank, int chunk) const {
    const bool backwards = is_folded && chunk % 2 == 1;
    return chunk * num_ranks + (backwards ? num_ranks - 1 - rank : rank);
  }
  // Passes of a rank after which the interleaved schedule repeats.
  size_t round() const {
    return static_cast<size_t>(num_ranks) * static_cast<size_t>(num_chunks);
  }
  // Returns chunk and microbatch of pass i of a rank.
  std::pair<size_t, size_t> NumbersOf(const PrimusPasses& passes, int kind,
                                      size_t i) const {
    if (is_numbered) {
      return {static_cast<size_t>(passes.chunks[i]),
              static_cast<size_t>(passes.microbatches[i])};
    }
    if (num_chunks <= 1) return {0, i};
    // Megatron-LM runs as many microbatches as ranks through a chunk, then
    // through the next; backwards begin with the last chunk.
    const auto group = static_cast<size_t>(num_ranks);
    size_t chunk = i % round() / group;
    if (kind > 0) chunk = static_cast<size_t>(num_chunks) - 1 - chunk;
    return {chunk, i / round() * group + i % group};
  }
};

bool PrimusDump::IsFolded() const {
  // Chunk 1 of microbatch 0 starts on the rank with its first stage.
  const auto start = [](const PrimusStep& step) {
    const PrimusPasses& forward = step[0];
    for (size_t i = 0; i < forward.start_milliseconds.size(); ++i) {
      if (forward.chunks[i] == 1 && forward.microbatches[i] == 0) {
        return forward.start_milliseconds[i];
      }
    }
    return std::numeric_limits<double>::infinity();
  };
  int votes = 0;
  const auto& [first_rank, first] = *ranks_.begin();
  const auto& [last_rank, last] = *ranks_.rbegin();
  if (first_rank == last_rank) return false;
  for (const auto& [number, step] : first.steps) {
    const auto found = last.steps.find(number);
    if (found == last.steps.end()) continue;
    votes += start(found->second) < start(step) ? 1 : -1;
  }
  return votes > 0;
}

absl::StatusOr<PrimusDump::Layout> PrimusDump::FindLayout(
    absl::string_view label) const {
  const auto config = [&](const char* name, const char* old_name) {
    auto found = config_.find(name);
    if (found == config_.end()) found = config_.find(old_name);
    return found == config_.end() ? 0 : found->second;
  };
  Layout layout;
  layout.num_ranks = ranks_.rbegin()->first + 1;
  bool any_numbered = false, all_numbered = true;
  double most_chunk = 0;
  for (const auto& [rank, file] : ranks_) {
    for (const auto& [number, step] : file.steps) {
      for (const PrimusPasses& passes : step) {
        if (passes.start_milliseconds.empty()) continue;
        const bool numbered =
            !passes.chunks.empty() && !passes.microbatches.empty();
        any_numbered |= numbered;
        all_numbered &= numbered;
        for (const double chunk : passes.chunks) {
          most_chunk = std::max(most_chunk, chunk);
        }
      }
    }
  }
  const double pp_size = config("pp_size", "pp_size");
  if (has_config_ && pp_size != layout.num_ranks) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: config.json has pp_size %g, but there are files of %d pipeline "
        "ranks, expected one for each",
        label, pp_size, layout.num_ranks));
  }
  const double vp_size = config("vp_size", "vpp_size");
  layout.is_numbered = any_numbered && all_numbered;
  if (!layout.is_numbered && !has_config_) {
    return absl::InvalidArgumentError(absl::StrCat(
        label,
        ": its passes have no fwd_minibatch and fwd_chunk, expected also "
        "config.json of the dump, which has the number of chunks"));
  }
  layout.num_chunks =
      static_cast<int>(std::clamp(layout.is_numbered ? most_chunk + 1 : vp_size,
                                  1.0, 1.0 * kMaxRecordedChunks));
  if (most_chunk >= kMaxRecordedChunks) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": has a pass of chunk ", most_chunk,
                     ", expected below ", kMaxRecordedChunks));
  }
  layout.is_folded = layout.is_numbered && layout.num_chunks == 2 && IsFolded();
  return layout;
}

absl::Status PrimusDump::AddPasses(const Layout& layout,
                                   const std::string& label, int32_t rank,
                                   int32_t number, const PrimusStep& step,
                                   RecordedRun* run) {
  // Stage and microbatch of the weight gradients.
  std::set<std::pair<int32_t, int32_t>> weights;
  for (int kind = kNumPrimusKinds - 1; kind >= 0; --kind) {
    const PrimusPasses& passes = step[kind];
    const size_t count = passes.start_milliseconds.size();
    if (!layout.is_numbered && layout.num_chunks > 1 &&
        count % layout.round() != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          label, ": step ", number, " has ", count, " passes ",
          kPrimusPrefixes[kind],
          "start without numbers, expected a multiple of ", layout.round(),
          ", ranks x chunks, of the interleaved schedule"));
    }
    for (size_t i = 0; i < count; ++i) {
      const auto [chunk, microbatch] = layout.NumbersOf(passes, kind, i);
      RecordedOperation o;
      o.step = number;
      o.rank = rank;
      o.stage = layout.StageOf(rank, static_cast<int>(chunk));
      o.microbatch = static_cast<int32_t>(microbatch);
      o.kind = kKinds[kind];
      if (o.kind == RecordedKind::kBackwardWeight) {
        weights.emplace(o.stage, o.microbatch);
      } else if (o.kind == RecordedKind::kBackward &&
                 weights.contains({o.stage, o.microbatch})) {
        o.kind = RecordedKind::kBackwardInput;
      }
      o.start_seconds = passes.start_milliseconds[i] * kSecondsPerMillisecond;
      o.end_seconds = passes.end_milliseconds[i] * kSecondsPerMillisecond;
      run->operations.push_back(o);
    }
  }
  return absl::OkStatus();
}

void PrimusDump::NoteCopies(RecordedRun* run) const {
  const auto less = [](const Rank* a, const Rank* b) {
    return a->steps < b->steps;
  };
  std::set<const Rank*, decltype(less)> seen(less);
  for (const auto& [rank, file] : ranks_) {
    const auto [first, is_new] = seen.insert(&file);
    if (is_new) continue;
    run->notes.push_back(
        absl::StrCat(file.label, ": has the same times as ", (*first)->label,
                     ", expected those of another rank; pipeline rank ", rank,
                     " is taken to run at these times"));
    run->has_early_passes = true;
  }
}

void PrimusDump::AddNotes(const Layout& layout, RecordedRun* run) {
  if (layout.is_folded) {
    run->notes.push_back(
        "chunk 1 is taken to run from the last rank to the first, as in "
        "V-shaped schedules: its first microbatch starts on the last rank");
  } else if (layout.num_chunks > 1) {
    run->notes.push_back("chunk c of rank r is taken as stage c x ranks + r");
  }
  run->notes.push_back(
      "each rank counts from its own start of a step; all are taken to start "
      "at once if the order of passes permits it");
}

absl::StatusOr<RecordedRun> PrimusDump::Finish(absl::string_view label) {
  RecordedRun run;
  run.label = std::string(label);
  run.format = "dump of Primus";
  run.has_clock_of_step = true;
  run.notes = std::move(notes_);
  if (ranks_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        label,
        ": is the configuration of a dump of Primus, expected also the files "
        "pp_rank_0.json, pp_rank_1.json, ..."));
  }
  if (num_unnamed_ > 0) {
    run.notes.push_back(
        "files whose names are not pp_rank_N.json are taken as pipeline ranks "
        "in the order in which they are given");
  }
  ASSIGN_OR_RETURN(const Layout layout, FindLayout(label));
  if (!has_config_) {
    run.notes.push_back(absl::StrCat(
        "without config.json, the pipeline is taken to have ", layout.num_ranks,
        layout.num_ranks == 1 ? " rank" : " ranks",
        ", the largest number of a file plus 1"));
  }
  run.num_replicas = 1;
  run.num_ranks = layout.num_ranks;
  run.num_stages = layout.num_ranks * layout.num_chunks;
  for (const auto& [rank, file] : ranks_) {
    for (const auto& [number, step] : file.steps) {
      RETURN_IF_ERROR(AddPasses(layout, file.label, rank, number, step, &run));
    }
  }
  NoteCopies(&run);
  AddNotes(layout, &run);
  return run;
}

}  // namespace weir::results
