// SPDX-License-Identifier: Apache-2.0
#include "schedules/semantics.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weir {
namespace {

constexpr int32_t kNever = -1;

// W multiplies stashed activations and gradients: it reads no weights.
bool ReadsWeights(Op op) {
  return op == Op::kForward || MakesInputGradient(op);
}

// One stage while its rank's actions are walked through.
struct StageState {
  int32_t newest = 0;
  int32_t live = 1;
  std::vector<int32_t> gradients_left;  // [update], of the whole groups only
  std::vector<int32_t> last_reader;     // [version], position or kNever
};

class Interpreter {
 public:
  explicit Interpreter(const Schedule& schedule);

  absl::StatusOr<Semantics> Run() &&;

 private:
  void StartRank(int rank);
  absl::Status WalkRank(int rank);
  void CountLiveVersions(int rank);
  absl::Status ReadForward(int rank, int32_t position, const Action& action);
  void ReadBackward(const Action& action);
  absl::Status FinishGradient(int rank, int32_t position, const Action& action);
  int32_t VersionRead(const Action& action) const;

  const Schedule& schedule_;
  std::vector<StageState> stages_;
  Semantics semantics_;
};

Interpreter::Interpreter(const Schedule& schedule)
    : schedule_(schedule), stages_(schedule.num_stages) {
  const int total = schedule.total_microbatches();
  semantics_.uses.resize(schedule.num_stages);
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    const int per_update = schedule.microbatches_per_update(stage);
    std::vector<VersionUse>& uses = semantics_.uses[stage];
    uses.resize(total);
    for (int k = 0; k < total; ++k) uses[k].update = k / per_update;
  }
  semantics_.live_versions.resize(schedule.num_ranks);
  semantics_.update_positions.resize(schedule.num_ranks);
  semantics_.max_live_versions.assign(schedule.num_stages, 1);
  semantics_.max_staleness.assign(schedule.num_stages, 0);
}

// The stages of a rank as training finds them. A replica waits for the
// gradients of its own microbatches; the others' arrive in the all-reduce.
void Interpreter::StartRank(int rank) {
  const int total = schedule_.total_microbatches();
  for (int s : schedule_.StagesOf(rank)) {
    const int per_update = schedule_.microbatches_per_update(s);
    const int num_updates = total / per_update;
    StageState& stage = stages_[s];
    stage = {};
    stage.gradients_left.assign(num_updates, 0);
    stage.last_reader.assign(num_updates + 1, kNever);
    for (int k = 0; k < num_updates * per_update; ++k) {
      if (schedule_.rank_of(s, k) == rank)
        ++stage.gradients_left[k / per_update];
    }
  }
}

absl::StatusOr<Semantics> Interpreter::Run() && {
  for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
    StartRank(rank);
    RETURN_IF_ERROR(WalkRank(rank));
    CountLiveVersions(rank);
  }
  for (int stage = 0; stage < schedule_.num_stages; ++stage) {
    for (const VersionUse& use : semantics_.uses[stage]) {
      semantics_.max_staleness[stage] =
          std::max(semantics_.max_staleness[stage], use.staleness());
    }
  }
  return std::move(semantics_);
}

absl::Status Interpreter::WalkRank(int rank) {
  const std::vector<Action>& actions = schedule_.rank_actions[rank];
  for (int32_t position = 0; position < std::ssize(actions); ++position) {
    const Action& action = actions[position];
    if (action.op == Op::kForward) {
      RETURN_IF_ERROR(ReadForward(rank, position, action));
    } else if (ReadsWeights(action.op)) {
      ReadBackward(action);
    }
    if (ReadsWeights(action.op)) {
      stages_[action.stage].last_reader[VersionRead(action)] = position;
    }
    if (CompletesGradient(action.op)) {
      RETURN_IF_ERROR(FinishGradient(rank, position, action));
    }
  }
  return absl::OkStatus();
}

absl::Status Interpreter::ReadForward(int rank, int32_t position,
                                      const Action& action) {
  const WeightPolicy& weights = schedule_.weights;
  const int32_t newest = stages_[action.stage].newest;
  VersionUse& use = semantics_.uses[action.stage][action.microbatch];
  use.forward_version = newest;
  if (weights.forward == WeightPolicy::ForwardRead::kDelayed) {
    use.forward_version = std::max(use.update - weights.delay_updates, 0);
  }
  if (use.forward_version <= newest) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      schedule_.name, ": rank ", rank, " position ", position, ": ",
      ToString(action), " reads weight version ", use.forward_version,
      " of stage ", action.stage, ", but update ", newest,
      ", which makes version ", newest + 1, ", has not happened yet"));
}

void Interpreter::ReadBackward(const Action& action) {
  VersionUse& use = semantics_.uses[action.stage][action.microbatch];
  use.backward_version =
      schedule_.weights.backward == WeightPolicy::BackwardRead::kLatest
          ? stages_[action.stage].newest
          : use.forward_version;
}

int32_t Interpreter::VersionRead(const Action& action) const {
  const VersionUse& use = semantics_.uses[action.stage][action.microbatch];
  return action.op == Op::kForward ? use.forward_version : use.backward_version;
}

absl::Status Interpreter::FinishGradient(int rank, int32_t position,
                                         const Action& action) {
  StageState& stage = stages_[action.stage];
  const int32_t update =
      semantics_.uses[action.stage][action.microbatch].update;
  if (update >= std::ssize(stage.gradients_left)) return absl::OkStatus();
  if (--stage.gradients_left[update] > 0) return absl::OkStatus();
  if (update != stage.newest) {
    return absl::FailedPreconditionError(absl::StrCat(
        schedule_.name, ": rank ", rank, " position ", position, ": ",
        ToString(action), " completes update ", update, " of stage ",
        action.stage, " before update ", stage.newest));
  }
  ++stage.newest;
  semantics_.update_positions[rank].push_back(position);
  return absl::OkStatus();
}

// A second walk: only now is every version's last reader known.
void Interpreter::CountLiveVersions(int rank) {
  const std::vector<Action>& actions = schedule_.rank_actions[rank];
  const std::vector<int32_t>& updates = semantics_.update_positions[rank];
  std::vector<int32_t>& live = semantics_.live_versions[rank];
  live.resize(actions.size());
  for (const Action& action : actions) stages_[action.stage].newest = 0;
  auto next_update = updates.begin();
  for (int32_t position = 0; position < std::ssize(actions); ++position) {
    const Action& action = actions[position];
    StageState& stage = stages_[action.stage];
    live[position] = stage.live;
    int& max_live = semantics_.max_live_versions[action.stage];
    max_live = std::max(max_live, stage.live);
    const bool is_last_read =
        ReadsWeights(action.op) &&
        stage.last_reader[VersionRead(action)] == position;
    if (is_last_read && VersionRead(action) < stage.newest) --stage.live;
    if (next_update == updates.end() || *next_update != position) continue;
    ++next_update;
    const int32_t superseded = stage.newest++;
    if (stage.last_reader[superseded] > position) ++stage.live;
  }
}

}  // namespace

absl::StatusOr<Semantics> InterpretSchedule(const Schedule& schedule) {
  return Interpreter(schedule).Run();
}

}  // namespace weir
