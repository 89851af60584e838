// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/gpu/partitioned_execution.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "calibrate/execute/gpu/partitioned_rank.h"
#include "calibrate/execute/pool_sizes.h"
#include "calibrate/gpu/errors.h"
#include "calibrate/gpu/host/partition_size.h"

namespace weir::calibrate {
namespace {

// Leaves room for the overhead of a pool and of the driver.
constexpr double kPoolShare = 0.98;
constexpr double kPrimedShare = 0.99;  // of a pool

std::vector<int> SendsTo(const ExecutionPlan& plan, int rank) {
  std::vector<int> to;
  for (const auto& [sender, receiver] : PairsThatSend(plan)) {
    if (sender == rank) to.push_back(receiver);
  }
  return to;
}

// Returns ResourceExhausted if pools of the free memory are certainly too
// small.
absl::Status CheckPools(const ExecutionPlan& plan, double available_bytes) {
  const double needed = NeededPoolBytes(plan.predicted_peak_bytes);
  if (needed <= available_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the %d ranks need %.0f bytes (%s, predicted peaks and %.0f %%), but "
      "%.0f bytes (%s) of this GPU are available to them",
      plan.schedule.num_ranks, needed, FormatBytes(needed), 100 * kPoolMargin,
      available_bytes, FormatBytes(available_bytes)));
}

}  // namespace

std::vector<std::pair<int, int>> PairsThatSend(const ExecutionPlan& plan) {
  const schedules::Schedule& schedule = plan.schedule;
  std::set<std::pair<int, int>> pairs;
  const auto both = [&pairs](int a, int b) {
    if (a == b) return;
    pairs.insert({a, b});
    pairs.insert({b, a});
  };
  for (const std::vector<int>& route : schedule.routes) {
    for (size_t stage = 1; stage < route.size(); ++stage) {
      both(route[stage - 1], route[stage]);
    }
    if (plan.tied.num_elements > 0) both(route.front(), route.back());
    for (const std::vector<int>& other : schedule.routes) {
      for (size_t stage = 0; stage < route.size(); ++stage) {
        both(route[stage], other[stage]);
      }
    }
  }
  return {pairs.begin(), pairs.end()};
}

PartitionedExecution::~PartitionedExecution() {
  // Work in flight still uses the members.
  for (const auto& rank : ranks_) {
    if (!DeviceIsHung()) rank->Finish().IgnoreError();
  }
}

absl::StatusOr<std::unique_ptr<PartitionedExecution>>
PartitionedExecution::Open(const ExecutionPlan& plan,
                           std::unique_ptr<BenchDevice> bench,
                           const CudaExecutionOptions& options) {
  if (plan.schedule.num_ranks > options.num_partitions) {
    return absl::InvalidArgumentError(
        absl::StrCat("the schedule has ", plan.schedule.num_ranks,
                     " ranks, but the GPU is divided into ",
                     options.num_partitions, " partitions"));
  }
  std::unique_ptr<PartitionedExecution> replay(new PartitionedExecution);
  replay->bench_ = std::move(bench);
  const DeviceFacts& facts = replay->bench_->facts;
  replay->provenance_ = ProvenanceOf(facts, replay->bench_->nvml.get());
  ASSIGN_OR_RETURN(
      replay->parts_,
      GpuPartitions::Create(facts.device, options.num_partitions,
                            MinCopyMultiprocessors(options.num_partitions)));
  // Events of a step: begin and end of actions and their messages.
  size_t num_actions = 0;
  for (const auto& actions : plan.schedule.rank_actions) {
    num_actions += actions.size();
  }
  constexpr size_t kMomentsOfAnAction = 8, kMost = 1 << 16;
  ASSIGN_OR_RETURN(replay->events_,
                   EventPool::Create(static_cast<int>(std::min(
                       256 + kMomentsOfAnAction * num_actions, kMost))));
  RETURN_IF_ERROR(replay->OpenRanks(plan, options));
  replay->CheckCopies(plan);
  return replay;
}

absl::Status PartitionedExecution::OpenRanks(
    const ExecutionPlan& plan, const CudaExecutionOptions& options) {
  for (int rank = 0; rank < plan.schedule.num_ranks; ++rank) {
    const GpuPartition& part = parts_->part(rank);
    PartitionedRank::Own own;
    ASSIGN_OR_RETURN(own.stream, part.MakeStream());
    // A library per rank, as a Gemm must not be used by two threads at a
    // time.
    ASSIGN_OR_RETURN(own.gemms, GemmLibrary::Create(options.num_candidates,
                                                    plan.timeout_seconds));
    ASSIGN_OR_RETURN(own.workspace,
                     Allocate(options.workspace_bytes,
                              absl::StrCat("the workspace of rank ", rank)));
    RankTools tools;
    tools.plan = &plan;
    tools.rank = rank;
    tools.device = options.device;
    tools.lane = {own.stream.get(),
                  {own.workspace.get(), options.workspace_bytes}};
    tools.options = {bench_->facts.half_format, part.num_multiprocessors(),
                     true};
    tools.events = events_;
    ASSIGN_OR_RETURN(
        StageExecutors executors,
        StageExecutors::Create(*bench_, plan, plan.schedule.StagesOf(rank),
                               tools.options, own.gemms.get(), tools.lane,
                               options.num_candidates > 1));
    own.executors = std::make_unique<StageExecutors>(std::move(executors));
    tools.executors = own.executors.get();
    ranks_.push_back(std::make_unique<PartitionedRank>(this, std::move(own),
                                                       std::move(tools)));
  }
  ASSIGN_OR_RETURN(const int64_t free_bytes, FreeMemory());
  const double available = kPoolShare * static_cast<double>(free_bytes);
  if (options.pool_bytes == 0) RETURN_IF_ERROR(CheckPools(plan, available));
  const std::vector<int64_t> shares = DividePoolBytes(
      plan.predicted_peak_bytes, plan.schedule.num_ranks, available);
  for (int rank = 0; rank < plan.schedule.num_ranks; ++rank) {
    const int64_t pool_bytes =
        options.pool_bytes > 0 ? options.pool_bytes : shares[rank];
    const auto primed_bytes = std::min(
        pool_bytes,
        static_cast<int64_t>(kPrimedShare * static_cast<double>(shares[rank])));
    RETURN_IF_ERROR(
        ranks_[rank]->Open(pool_bytes, primed_bytes, SendsTo(plan, rank)));
  }
  return absl::OkStatus();
}

void PartitionedExecution::CheckCopies(const ExecutionPlan& plan) {
  int num_blocks = 0;
  double bytes_per_second = 0;
  for (const auto& [from, to] : PairsThatSend(plan)) {
    const LinkSpec& link = plan.link(from, to);
    if (link.latency_seconds == 0 && link.bytes_per_second == 0) continue;
    num_blocks += NumPacedCopyBlocks(link.bytes_per_second);
    bytes_per_second += link.bytes_per_second;
  }
  const int num_copy_multiprocessors = parts_->copies().num_multiprocessors();
  const int room = MaxPacedCopyBlocks(num_copy_multiprocessors);
  const double fastest = num_copy_multiprocessors * kCopyBytesPerSecond;
  if (num_blocks > room || bytes_per_second > fastest) {
    warning_ = absl::StrFormat(
        "; all links at the same time would need %d copy blocks and %.0f GB/s, "
        "but the multiprocessors for messages run %d blocks and copy about "
        "%.0f GB/s (--cluster gpu-partitions has slower links)",
        num_blocks, 1e-9 * bytes_per_second, room, 1e-9 * fastest);
  }
}

RankDevice* PartitionedExecution::rank(int rank) { return ranks_[rank].get(); }

absl::Status PartitionedExecution::Start() {
  RETURN_IF_ERROR(
      CudaStatus(cudaSetDevice(bench_->facts.device), "selecting the GPU"));
  ASSIGN_OR_RETURN(started_,
                   RecordedEvent::Record(events_, bench_->stream.get()));
  return bench_->Wait("the start of a replay");
}

std::string PartitionedExecution::description() const {
  return absl::StrCat(
      ranks_.size(), " ranks on partitions of ",
      parts_->part(0).num_multiprocessors(), " of ",
      parts_->num_multiprocessors(), " multiprocessors of ", bench_->facts.name,
      ", ", parts_->copies().num_multiprocessors(), " for messages", warning_);
}

}  // namespace weir::calibrate
