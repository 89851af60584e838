// SPDX-License-Identifier: Apache-2.0
#include "schedules/semantics.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weir::schedules {
namespace {

constexpr int32_t kNever = -1;

// Returns true if the op reads weights. W only multiplies stashed activations
// and gradients.
bool ReadsWeights(Op op) {
  return op == Op::kForward || MakesInputGradient(op);
}

// The actions of a stage on one of its ranks. The weights there depend only on
// these actions.
struct Thread {
  int rank;
  int stage;
  std::vector<int32_t> positions;
};

// Returns the threads in ascending order of stages, because other stages need
// the versions that stage 0 read.
std::vector<Thread> ThreadsOf(const Schedule& schedule) {
  std::vector<Thread> threads;
  std::vector<int> thread_of(schedule.num_stages, -1);  // on the current rank
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const size_t first = threads.size();
    const std::vector<Action>& actions = schedule.rank_actions[rank];
    for (int32_t position = 0; position < std::ssize(actions); ++position) {
      if (!IsCompute(actions[position].op)) continue;
      int& thread = thread_of[actions[position].stage];
      if (thread < 0) {
        thread = static_cast<int>(threads.size());
        threads.push_back({rank, actions[position].stage, {}});
      }
      threads[thread].positions.push_back(position);
    }
    for (size_t i = first; i < threads.size(); ++i) {
      thread_of[threads[i].stage] = -1;
    }
  }
  std::stable_sort(
      threads.begin(), threads.end(),
      [](const Thread& a, const Thread& b) { return a.stage < b.stage; });
  return threads;
}

// Interprets one thread.
class ThreadInterpreter {
 public:
  ThreadInterpreter(const Schedule& schedule, const Thread& thread,
                    Semantics* semantics);

  absl::Status Walk();
  void CountLiveVersions();

 private:
  const Action& ActionAt(size_t i) const {
    return actions_[thread_.positions[i]];
  }
  // Returns the index after the actions that run together with the i-th.
  size_t EndOfPair(size_t i) const;
  absl::Status CheckGradients() const;
  absl::Status ReadForward(int32_t position, int microbatch);
  void ReadBackward(int microbatch);
  absl::Status FinishGradient(int32_t position);
  int32_t VersionRead(Op op, int microbatch) const {
    return op == Op::kForward ? uses_[microbatch].forward_version
                              : uses_[microbatch].backward_version;
  }
  // Returns the number of superseded versions that no later action reads. Must
  // be called only once per position.
  int TakeLastReads(int32_t position);
  absl::Status Error(int32_t position, absl::string_view what) const;

  const Schedule& schedule_;
  const WeightPolicy& weights_;
  const Thread& thread_;
  const std::vector<Action>& actions_;
  Semantics* semantics_;
  std::vector<VersionUse>& uses_;

  int32_t newest_ = 0;
  std::vector<int32_t> gradients_left_;  // [update], of complete groups only
  // [update], version read by its first forward here.
  std::vector<int32_t> first_read_;
  std::vector<int32_t> last_reader_;  // [version], position or kNever
  std::vector<int32_t> updates_;      // positions
};

ThreadInterpreter::ThreadInterpreter(const Schedule& schedule,
                                     const Thread& thread, Semantics* semantics)
    : schedule_(schedule),
      weights_(schedule.weights),
      thread_(thread),
      actions_(schedule.rank_actions[thread.rank]),
      semantics_(semantics),
      uses_(semantics->uses[thread.stage]) {
  const int num_updates =
      schedule.forward_only
          ? 0
          : schedule.total_microbatches() /
                schedule.microbatches_per_update(thread.stage);
  gradients_left_.assign(num_updates, 0);
  last_reader_.assign(num_updates + 1, kNever);
  if (weights_.forward == WeightPolicy::ForwardRead::kFirstOfUpdate) {
    first_read_.assign(num_updates + 1, kNever);
  }
  // A replica waits for the gradients of its own microbatches; those of other
  // replicas arrive in the all-reduce.
  for (int32_t position : thread.positions) {
    const Action& action = actions_[position];
    if (!CompletesGradient(action.op)) continue;
    for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
      if (uses_[k].update < num_updates) ++gradients_left_[uses_[k].update];
    }
  }
}

absl::Status ThreadInterpreter::Error(int32_t position,
                                      absl::string_view what) const {
  return absl::FailedPreconditionError(
      absl::StrCat(schedule_.name, ": rank ", thread_.rank, " position ",
                   position, ": ", ToString(actions_[position]), " ", what));
}

absl::Status ThreadInterpreter::CheckGradients() const {
  const auto none =
      std::find(gradients_left_.begin(), gradients_left_.end(), 0);
  if (none == gradients_left_.end()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      schedule_.name, ": rank ", thread_.rank, " has no gradient of stage ",
      thread_.stage, " for update ", none - gradients_left_.begin(),
      ", expected at least one from every replica of a stage"));
}

size_t ThreadInterpreter::EndOfPair(size_t i) const {
  const int32_t position = thread_.positions[i];
  const bool pair = actions_[position].overlaps_next &&
                    i + 1 < thread_.positions.size() &&
                    thread_.positions[i + 1] == position + 1;
  return i + (pair ? 2 : 1);
}

absl::Status ThreadInterpreter::Walk() {
  RETURN_IF_ERROR(CheckGradients());
  for (size_t i = 0; i < thread_.positions.size();) {
    const size_t end = EndOfPair(i);
    for (size_t j = i; j < end; ++j) {
      const int32_t position = thread_.positions[j];
      const Action& action = actions_[position];
      if (!ReadsWeights(action.op)) continue;
      for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
        if (action.op == Op::kForward) {
          RETURN_IF_ERROR(ReadForward(position, k));
        } else {
          ReadBackward(k);
        }
        last_reader_[VersionRead(action.op, k)] = position;
      }
    }
    for (; i < end; ++i) {
      if (!CompletesGradient(ActionAt(i).op)) continue;
      RETURN_IF_ERROR(FinishGradient(thread_.positions[i]));
    }
  }
  return absl::OkStatus();
}

absl::Status ThreadInterpreter::ReadForward(int32_t position, int microbatch) {
  VersionUse& use = uses_[microbatch];
  switch (weights_.forward) {
    case WeightPolicy::ForwardRead::kLatest:
      use.forward_version = newest_;
      break;
    case WeightPolicy::ForwardRead::kDelayed:
      use.forward_version = std::max(use.update - weights_.delay_updates, 0);
      break;
    case WeightPolicy::ForwardRead::kFirstStage:
      use.forward_version =
          thread_.stage == 0 ? newest_
                             : semantics_->uses[0][microbatch].forward_version;
      break;
    case WeightPolicy::ForwardRead::kFirstOfUpdate: {
      int32_t& first = first_read_[use.update];
      if (first == kNever) first = newest_;
      use.forward_version = first;
      break;
    }
  }
  if (use.forward_version <= newest_) return absl::OkStatus();
  return Error(position,
               absl::StrCat("reads weight version ", use.forward_version,
                            " of stage ", thread_.stage, ", but update ",
                            newest_, ", which makes version ", newest_ + 1,
                            ", has not happened yet"));
}

void ThreadInterpreter::ReadBackward(int microbatch) {
  VersionUse& use = uses_[microbatch];
  use.backward_version =
      weights_.backward == WeightPolicy::BackwardRead::kLatest
          ? newest_
          : use.forward_version;
}

absl::Status ThreadInterpreter::FinishGradient(int32_t position) {
  const Action& action = actions_[position];
  const int32_t update = uses_[action.microbatch].update;
  const int32_t last_update = uses_[action.last_microbatch()].update;
  if (update != last_update) {
    return Error(position,
                 absl::StrCat("computes gradients for the updates ", update,
                              " to ", last_update, " of stage ", thread_.stage,
                              " together, expected only one update"));
  }
  if (update >= std::ssize(gradients_left_)) return absl::OkStatus();
  gradients_left_[update] -= action.num_microbatches;
  if (gradients_left_[update] > 0) return absl::OkStatus();
  if (update != newest_) {
    return Error(position,
                 absl::StrCat("completes update ", update, " of stage ",
                              thread_.stage, " before update ", newest_));
  }
  ++newest_;
  updates_.push_back(position);
  semantics_->update_positions[thread_.rank].push_back(position);
  return absl::OkStatus();
}

int ThreadInterpreter::TakeLastReads(int32_t position) {
  const Action& action = actions_[position];
  if (!ReadsWeights(action.op)) return 0;
  int count = 0;
  for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
    const int32_t version = VersionRead(action.op, k);
    if (version == newest_ || last_reader_[version] != position) continue;
    last_reader_[version] = kNever;
    ++count;
  }
  return count;
}

// Counts in a second walk, because it requires every version's last reader.
void ThreadInterpreter::CountLiveVersions() {
  std::vector<int32_t>& live_versions = semantics_->live_versions[thread_.rank];
  int& max_live = semantics_->max_live_versions[thread_.stage];
  int32_t live = 1;
  newest_ = 0;
  auto next_update = updates_.begin();
  for (size_t i = 0; i < thread_.positions.size();) {
    const size_t end = EndOfPair(i);
    const int32_t last = thread_.positions[end - 1];
    max_live = std::max(max_live, live);
    const int32_t held = live;
    for (; i < end; ++i) {
      live_versions[thread_.positions[i]] = held;
      live -= TakeLastReads(thread_.positions[i]);
    }
    while (next_update != updates_.end() && *next_update <= last) {
      ++next_update;
      const int32_t superseded = newest_++;
      if (last_reader_[superseded] > last) ++live;
    }
  }
}

Semantics EmptySemantics(const Schedule& schedule) {
  Semantics semantics;
  const int total = schedule.total_microbatches();
  semantics.uses.resize(schedule.num_stages);
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    std::vector<VersionUse>& uses = semantics.uses[stage];
    uses.resize(total);
    if (schedule.forward_only) continue;
    const int per_update = schedule.microbatches_per_update(stage);
    for (int k = 0; k < total; ++k) uses[k].update = k / per_update;
  }
  for (const std::vector<Action>& actions : schedule.rank_actions) {
    semantics.live_versions.emplace_back(actions.size());
  }
  semantics.update_positions.resize(schedule.num_ranks);
  semantics.max_live_versions.assign(schedule.num_stages, 1);
  semantics.max_staleness.assign(schedule.num_stages, 0);
  return semantics;
}

// Checks that all stages update at the same time: versions of two stages
// correspond only if they come from the same microbatches.
absl::Status CheckVerticalSync(const Schedule& schedule) {
  if (schedule.weights.forward != WeightPolicy::ForwardRead::kFirstStage) {
    return absl::OkStatus();
  }
  const int first = schedule.microbatches_per_update(0);
  for (int stage = 1; stage < schedule.num_stages; ++stage) {
    const int here = schedule.microbatches_per_update(stage);
    if (here == first) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        schedule.name, ": vertical sync: stage ", stage, " updates after ",
        here, " microbatches, expected ", first, " as in stage 0"));
  }
  return absl::OkStatus();
}

// Sets the live versions of offloads and reloads. They read no weights, so the
// number does not change.
void FillTransfers(const Schedule& schedule, Semantics* semantics) {
  std::vector<int32_t> held(schedule.num_stages);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const std::vector<Action>& actions = schedule.rank_actions[rank];
    std::vector<int32_t>& live = semantics->live_versions[rank];
    for (size_t position = 0; position < actions.size(); ++position) {
      int32_t& last = held[actions[position].stage];
      if (IsCompute(actions[position].op)) {
        last = live[position];
      } else {
        live[position] = last;
      }
    }
    for (const Action& action : actions) held[action.stage] = 0;
  }
}

}  // namespace

absl::StatusOr<Semantics> InterpretSchedule(const Schedule& schedule) {
  RETURN_IF_ERROR(CheckVerticalSync(schedule));
  Semantics semantics = EmptySemantics(schedule);
  for (const Thread& thread : ThreadsOf(schedule)) {
    ThreadInterpreter interpreter(schedule, thread, &semantics);
    RETURN_IF_ERROR(interpreter.Walk());
    interpreter.CountLiveVersions();
  }
  FillTransfers(schedule, &semantics);
  for (std::vector<int32_t>& positions : semantics.update_positions) {
    std::sort(positions.begin(), positions.end());
  }
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    for (const VersionUse& use : semantics.uses[stage]) {
      semantics.max_staleness[stage] =
          std::max(semantics.max_staleness[stage], use.staleness());
    }
  }
  return semantics;
}

}  // namespace weir::schedules
