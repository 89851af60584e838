// SPDX-License-Identifier: Apache-2.0
// One rank of a replay: its memory, its weights, and its items in order. The
// caller queries what an item waits for; running an item never waits for
// another rank.
#ifndef WEIR_CALIBRATE_EXECUTE_RANK_RUNNER_H_
#define WEIR_CALIBRATE_EXECUTE_RANK_RUNNER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "calibrate/execute/board.h"
#include "calibrate/execute/execution_order.h"
#include "calibrate/execute/execution_record.h"
#include "calibrate/execute/memory_log.h"
#include "calibrate/execute/rank_device.h"
#include "calibrate/execute/stage_layout.h"
#include "calibrate/execute/weight_versions.h"
#include "schedules/dependencies.h"

namespace weir::calibrate {

// State shared by all ranks of a replay.
struct ExecutionShared {
  const ExecutionPlan& plan;
  const schedules::Dependencies& dependencies;
  const ExecutionOrder& order;
  Board* board;             // board of the step
  ExecutionDevice* device;  // whose moments are valid on all ranks
};

class RankRunner {
 public:
  RankRunner(const ExecutionShared& shared, int rank);

  // Allocates weights, gradients, states and the memory for predictions.
  absl::Status Prepare();
  // Prepares data and the first receive buffers of a step. The caller then
  // starts the clock.
  absl::Status BeginStep(int step, StepRecord* record);

  int num_items() const { return static_cast<int>(items_.size()); }
  // Returns what the item waits for; empty if it can run. Requires: the board's
  // mutex is held.
  std::string Missing(int item) const;
  // Queues the item. Errors name rank and action.
  absl::Status Do(int item);

  // Returns how many items have ended on the device; never waits.
  int NumEnded();
  std::string TextOf(int item) const {
    return ItemText(shared_.plan, shared_.order, rank_, items_[item]);
  }
  // "rank 2 waits in 2F3 (position 7) for the activations of 1F3 from rank 1"
  std::string WaitText(int item, const std::string& missing) const;
  int num_done() const { return static_cast<int>(ends_.size()); }

  // Records times, memory and losses. Requires: all queued work has ended.
  absl::Status EndStep(StepRecord* record);
  absl::Status FreeAll();
  absl::StatusOr<std::vector<double>> NewestWeights(int stage);

 private:
  // An estimate that all passes of an update compute with.
  struct KeptEstimate {
    void* memory = nullptr;
    int uses_left = 0;
    bool is_spare = false;  // in addition to the predicted copy
  };
  struct Stage {
    Stage(std::shared_ptr<const StageProgram> program, int stage)
        : stage(stage), layout(std::move(program)) {}
    int stage;
    StageLayout layout;
    std::unique_ptr<WeightVersions> versions;
    int steps_done = 0;
    int updates_done = 0;  // in this step
    void* gradients = nullptr;
    void* state = nullptr;
    void* predicted = nullptr;
    bool predicted_in_use = false;
    std::vector<void*> averages;
    std::map<int, KeptEstimate> estimates;    // by update
    std::vector<int> forwards;                // microbatches, in program order
    std::vector<Buffers> tables;              // [microbatch]
    std::vector<double> alive_bytes;          // [microbatch]
    std::vector<double> kept_bytes;           // [microbatch], after its forward
    std::vector<int> admitted;                // [microbatch], vertical sync
    std::vector<bool> last_of_version;        // [microbatch]
    std::map<int, std::vector<int>> on_host;  // buffers, by microbatch
    std::vector<double> swapped;              // for an injected fault
  };
  // Activation bytes before, at the peak of, and after a pass.
  struct PassBytes {
    double before = 0, peak = 0, after = 0;
  };
  struct Offloaded {
    int position = -1;
    RankEventPtr end;
    std::vector<void*> memory;
  };
  struct PendingTransfer {
    TransferRecord record;
    RankEventPtr ready;
    CopyEvents copy;
  };

  const ExecutionPlan& plan() const { return shared_.plan; }
  const schedules::Schedule& schedule() const { return shared_.plan.schedule; }
  const std::vector<schedules::Action>& actions() const {
    return schedule().rank_actions[rank_];
  }
  bool IsMine(int stage, int microbatch) const {
    return schedule().rank_of(stage, microbatch) == rank_;
  }
  Stage& StageOf(int stage) { return *stages_.at(stage); }
  absl::Status Annotate(const absl::Status& status, int item) const;

  absl::StatusOr<void*> AllocateMemory(int64_t num_elements,
                                       ElementFormat format,
                                       const std::string& what);
  absl::StatusOr<void*> AllocateBuffer(const Stage& stage, int buffer);
  absl::Status FreeMemory(void* memory);

  // rank_stages.cc
  absl::Status PrepareStage(Stage* stage);
  absl::Status BeginStage(Stage* stage, int step);
  absl::Status AllocateReceives(const std::vector<MessageKey>& keys);
  void MarkLastOfVersions();

  // rank_messages.cc
  std::string MissingMessage(const schedules::Action& action) const;
  absl::Status AwaitInputs(int position);
  absl::Status Send(const schedules::Action& action, const RankEventPtr& start,
                    const RankEventPtr& end);
  absl::Status SendTo(int to_rank, const schedules::Action& action,
                      const std::vector<int>& microbatches,
                      const RankEventPtr& end);
  absl::Status FreeArrived(const std::vector<MessageKey>& keys);
  absl::Status Offload(const ExecutionItem& item);
  absl::Status Reload(const ExecutionItem& item);
  absl::Status ReleaseOffloaded(int position);

  // rank_passes.cc
  absl::Status DoPasses(const ExecutionItem& item);
  void ReadVersions(const schedules::Action& action,
                    std::vector<int>* versions);
  absl::Status RunAction(const schedules::Action& action,
                         const std::vector<int>& versions,
                         const RankEventPtr& start, PassBytes* bytes);
  absl::StatusOr<void*> WeightsFor(Stage* stage,
                                   const schedules::Action& action,
                                   int microbatch, int version,
                                   const RankEventPtr& start);
  absl::Status EndEstimates(Stage* stage, const schedules::Action& action,
                            const RankEventPtr& end);
  absl::Status RunPass(Stage* stage, StagePass pass,
                       const schedules::Action& action, PassBytes* bytes);
  absl::Status EndAction(const schedules::Action& action,
                         const PassBytes& bytes, const RankEventPtr& start,
                         const RankEventPtr& end);
  absl::Status FreeDead(Stage* stage, const RankEventPtr& at);
  Buffers StaticTable(Stage* stage, void* weights) const;

  // rank_updates.cc
  absl::Status DoExchange(const ExecutionItem& item);
  absl::Status LendRoom(const ExecutionItem& item,
                        const Exchange::Member& member);
  absl::Status GivePart(const ExecutionItem& item,
                        const Exchange::Member& member);
  absl::Status AddPart(const ExecutionItem& item,
                       const Exchange::Member& member);
  absl::Status ReturnSum(const ExecutionItem& item);
  absl::StatusOr<CopyEvents> SendPart(const Exchange::Member& member,
                                      int to_rank, const CopyPiece& piece,
                                      const RankEventPtr& ready);
  Board::Part ReadPart(int exchange, int member) const;
  template <typename Change>
  void PostPart(int exchange, int member, const Change& change);
  void* PartOf(const Exchange::Member& member);
  absl::Status Update(const ExecutionItem& item);
  std::string MissingPart(const ExecutionItem& item) const;

  const ExecutionShared shared_;
  const int rank_;
  RankDevice* const device_;
  const std::vector<ExecutionItem>& items_;
  std::map<int, std::unique_ptr<Stage>> stages_;
  int step_ = 0;
  StepRecord* record_ = nullptr;

  std::map<void*, double> taken_;  // bytes
  double taken_bytes_ = 0, taken_peak_ = 0;
  MemoryLog memory_;
  struct ActionEvents {
    RankEventPtr start, end;
  };
  std::vector<ActionEvents> events_;  // [position]
  std::vector<std::pair<UpdateRecord, ActionEvents>> updates_;
  std::vector<PendingTransfer> transfers_;
  std::vector<RankEventPtr> ends_;  // [item]
  int num_ended_ = 0;
  std::map<std::pair<bool, std::pair<int, int>>, void*> sent_;  // by message
  std::vector<Offloaded> offloaded_;
  std::vector<void*> transient_;  // freed after the pass
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_RANK_RUNNER_H_
