// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "results/pipeline_events.h"
#include "results/trace/trace.h"

namespace weir::results {
namespace {

// Appends a result's events, with rank r in row 2 r + offset.
class Appender {
 public:
  Appender(const Result& result, const PipelineEvents& timeline, int offset,
           Timeline* out)
      : in_(result.timeline()), rows_(result.ranks_size(), -1), out_(out) {
    for (int rank = 0; rank < timeline.num_ranks(); ++rank) {
      rows_[timeline.gpus[rank]] = 2 * rank + offset;
    }
  }

  void AppendAll() {
    AppendActions();
    AppendTransfers();
    AppendCollectives();
    AppendMemory();
  }

 private:
  template <typename Columns>
  static void CopyTimes(const Columns& from, int i, Columns* to) {
    to->add_start_seconds(from.start_seconds(i));
    to->add_end_seconds(from.end_seconds(i));
  }

  template <typename Columns>
  static void CopyPlace(const Columns& from, int i, Columns* to) {
    to->add_stage(from.stage(i));
    to->add_microbatch(from.microbatch(i));
  }

  void AppendActions() {
    const auto& from = in_.actions();
    auto* to = out_->mutable_actions();
    for (int i = 0; i < from.gpu_size(); ++i) {
      if (rows_[from.gpu(i)] < 0) continue;
      to->add_gpu(rows_[from.gpu(i)]);
      to->add_op(from.op(i));
      to->add_num_microbatches(
          from.num_microbatches().empty() ? 1 : from.num_microbatches(i));
      CopyPlace(from, i, to);
      CopyTimes(from, i, to);
    }
  }

  void AppendTransfers() {
    const auto& from = in_.transfers();
    auto* to = out_->mutable_transfers();
    for (int i = 0; i < from.kind_size(); ++i) {
      if (rows_[from.from_gpu(i)] < 0 || rows_[from.to_gpu(i)] < 0) continue;
      to->add_from_gpu(rows_[from.from_gpu(i)]);
      to->add_to_gpu(rows_[from.to_gpu(i)]);
      to->add_kind(from.kind(i));
      to->add_bytes(from.bytes(i));
      CopyPlace(from, i, to);
      CopyTimes(from, i, to);
    }
  }

  void AppendCollectives() {
    const auto& from = in_.collectives();
    auto* to = out_->mutable_collectives();
    for (int i = 0; i < from.gpu_size(); ++i) {
      if (rows_[from.gpu(i)] < 0) continue;
      to->add_gpu(rows_[from.gpu(i)]);
      to->add_kind(from.kind(i));
      to->add_bytes(from.bytes(i));
      CopyPlace(from, i, to);
      CopyTimes(from, i, to);
    }
  }

  void AppendMemory() {
    const auto& from = in_.memory();
    auto* to = out_->mutable_memory();
    for (int i = 0; i < from.gpu_size(); ++i) {
      if (rows_[from.gpu(i)] < 0) continue;
      to->add_gpu(rows_[from.gpu(i)]);
      to->add_seconds(from.seconds(i));
      to->add_bytes(from.bytes(i));
    }
  }

  const Timeline& in_;
  std::vector<int> rows_;  // [gpu]; -1: not shown
  Timeline* out_;
};

}  // namespace

absl::StatusOr<TwoRows> PutUnderEachOther(absl::string_view predicted_label,
                                          const Result& predicted,
                                          absl::string_view measured_label,
                                          const Result& measured) {
  ASSIGN_OR_RETURN(const PipelineEvents above,
                   PipelineEventsOf(predicted_label, predicted));
  ASSIGN_OR_RETURN(const PipelineEvents below,
                   PipelineEventsOf(measured_label, measured));
  if (above.num_ranks() != below.num_ranks()) {
    return absl::InvalidArgumentError(absl::StrCat(
        predicted_label, ": has ", above.num_ranks(), " ranks, expected ",
        below.num_ranks(), " as in ", measured_label));
  }
  TwoRows rows;
  rows.result.set_schedule(measured.schedule());
  for (int rank = 0; rank < above.num_ranks(); ++rank) {
    for (const char* side : {"predicted", "measured"}) {
      RankResult* row = rows.result.add_ranks();
      row->set_rank(rank);
      row->set_gpu(rank);
      rows.names.push_back(absl::StrCat("rank ", rank, " ", side));
    }
  }
  Timeline* timeline = rows.result.mutable_timeline();
  Appender(predicted, above, 0, timeline).AppendAll();
  Appender(measured, below, 1, timeline).AppendAll();
  return rows;
}

}  // namespace weir::results
