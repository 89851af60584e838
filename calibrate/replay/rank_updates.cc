// SPDX-License-Identifier: Apache-2.0
// Optimizer steps of a rank, and the sums of gradients before them.
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/replay/rank_runner.h"

namespace weir {

std::string RankRunner::MissingPart(const ReplayItem& item) const {
  const Exchange& exchange = shared_.order.exchanges[item.exchange];
  const int root = exchange.members[0].rank;
  const auto part = [&](int member) -> const Board::Part& {
    return shared_.board->part(item.exchange, member);
  };
  switch (item.kind) {
    case ReplayItem::Kind::kAdd: {
      const int rank = exchange.members[item.member].rank;
      if (rank == root || part(item.member).given) return "";
      return absl::StrCat("the gradients of rank ", rank);
    }
    case ReplayItem::Kind::kGive:
      if (part(item.member).lent) return "";
      return absl::StrCat("room for its gradients on rank ", root);
    case ReplayItem::Kind::kReturn:
      for (size_t i = exchange.num_added; i < exchange.members.size(); ++i) {
        const int rank = exchange.members[i].rank;
        if (rank == root || part(static_cast<int>(i)).offered) continue;
        return absl::StrCat("rank ", rank, " to be ready for their sum");
      }
      return "";
    default:
      if (part(item.member).returned) return "";
      return absl::StrCat("the sum of the gradients from rank ", root);
  }
}

void* RankRunner::PartOf(const Exchange::Member& member) {
  return device_->ElementAt(StageOf(member.stage).gradients, member.offset,
                            ElementFormat::kFp32);
}

absl::Status RankRunner::DoExchange(const ReplayItem& item) {
  using Kind = ReplayItem::Kind;
  constexpr ElementFormat kFormat = ElementFormat::kFp32;
  const Exchange& exchange = shared_.order.exchanges[item.exchange];
  const Exchange::Member& root = exchange.members[0];
  const Exchange::Member& member = exchange.members[item.member];
  const auto send = [&](int to_rank, const void* from, void* into,
                        const MomentPtr& ready) {
    const CopyPiece piece = {from, into};
    return device_->Send(shared_.device->rank(to_rank), {&piece, 1},
                         member.num_elements, kFormat,
                         plan().link(rank_, to_rank), 0, ready);
  };
  // Posts what `change` says of a member's part.
  const auto post = [&](int of, auto&& change) {
    {
      const std::lock_guard lock(shared_.board->mutex);
      change(&shared_.board->part(item.exchange, of));
    }
    shared_.board->changed.notify_all();
  };
  const auto read = [&](int of) {
    const std::lock_guard lock(shared_.board->mutex);
    return shared_.board->part(item.exchange, of);
  };
  switch (item.kind) {
    case Kind::kLend: {
      ASSIGN_OR_RETURN(void* room, Take(member.num_elements, kFormat,
                                        "gradients of another copy"));
      ASSIGN_OR_RETURN(const MomentPtr now, device_->Now());
      memory_.Add(now, ReplayMemory::kCommunicationBuffers,
                  4.0 * static_cast<double>(member.num_elements));
      post(item.member, [&](Board::Part* part) {
        part->lent = true;
        part->lent_at = now;
        part->room = room;
      });
      return absl::OkStatus();
    }
    case Kind::kGive: {
      const Board::Part part = read(item.member);
      RETURN_IF_ERROR(device_->After(part.lent_at));
      ASSIGN_OR_RETURN(const MomentPtr now, device_->Now());
      ASSIGN_OR_RETURN(const CopyMoments copy,
                       send(root.rank, PartOf(member), part.room, now));
      post(item.member, [&](Board::Part* own) {
        own->given = true;
        own->given_at = copy.end;
        own->gradients = PartOf(member);
      });
      return absl::OkStatus();
    }
    case Kind::kAdd: {
      if (member.rank == rank_) {
        return device_->Add(member.num_elements, PartOf(member), PartOf(root));
      }
      const Board::Part part = read(item.member);
      RETURN_IF_ERROR(device_->After(part.given_at));
      RETURN_IF_ERROR(
          device_->Add(member.num_elements, part.room, PartOf(root)));
      RETURN_IF_ERROR(GiveBack(part.room));
      ASSIGN_OR_RETURN(const MomentPtr now, device_->Now());
      memory_.Add(now, ReplayMemory::kCommunicationBuffers,
                  -4.0 * static_cast<double>(member.num_elements));
      return absl::OkStatus();
    }
    case Kind::kOffer: {
      ASSIGN_OR_RETURN(const MomentPtr now, device_->Now());
      post(item.member, [&](Board::Part* part) {
        part->offered = true;
        part->offered_at = now;
        part->gradients = PartOf(member);
      });
      return absl::OkStatus();
    }
    case Kind::kReturn:
      return ReturnSum(item);
    default:
      return device_->After(read(item.member).returned_at);
  }
}

absl::Status RankRunner::ReturnSum(const ReplayItem& item) {
  const Exchange& exchange = shared_.order.exchanges[item.exchange];
  const Exchange::Member& root = exchange.members[0];
  const auto num_members = static_cast<int>(exchange.members.size());
  const auto part = [&](int of) -> Board::Part& {
    return shared_.board->part(item.exchange, of);
  };
  for (int i = exchange.num_added; i < num_members; ++i) {
    if (exchange.members[i].rank == rank_) continue;
    MomentPtr offered;
    {
      const std::lock_guard lock(shared_.board->mutex);
      offered = part(i).offered_at;
    }
    RETURN_IF_ERROR(device_->After(offered));
  }
  MomentPtr ready;
  ASSIGN_OR_RETURN(ready, device_->Now());
  std::vector<MomentPtr> sent;
  for (int i = 1; i < num_members; ++i) {
    const Exchange::Member& to = exchange.members[i];
    if (to.rank == rank_) {
      RETURN_IF_ERROR(
          device_->Clear(to.num_elements, ElementFormat::kFp32, PartOf(to)));
      RETURN_IF_ERROR(device_->Add(to.num_elements, PartOf(root), PartOf(to)));
      continue;
    }
    CopyPiece piece = {PartOf(root), nullptr};
    {
      const std::lock_guard lock(shared_.board->mutex);
      piece.into = part(i).gradients;
    }
    ASSIGN_OR_RETURN(const CopyMoments copy,
                     device_->Send(shared_.device->rank(to.rank), {&piece, 1},
                                   to.num_elements, ElementFormat::kFp32,
                                   plan().link(rank_, to.rank), 0, ready));
    sent.push_back(copy.end);
    {
      const std::lock_guard lock(shared_.board->mutex);
      part(i).returned = true;
      part(i).returned_at = copy.end;
    }
    shared_.board->changed.notify_all();
  }
  // The step clears the gradients: not before they have been sent.
  for (const MomentPtr& moment : sent) {
    RETURN_IF_ERROR(device_->After(moment));
  }
  return absl::OkStatus();
}

absl::Status RankRunner::Update(const ReplayItem& item) {
  Stage& stage = StageOf(item.stage);
  const StageOptimizer& optimizer = plan().optimizers[item.stage];
  const StageBuffer& weights = stage.layout.buffer(stage.layout.weights);
  const auto bytes = static_cast<double>(weights.bytes());
  void* const old = stage.versions->memory(stage.versions->newest());
  void* fresh = old;
  ASSIGN_OR_RETURN(const MomentPtr start, device_->Now());
  // Averages are of differences: both are needed for a moment.
  if (stage.versions->MustKeepNewest() || !stage.averages.empty()) {
    ASSIGN_OR_RETURN(fresh, TakeBuffer(stage, stage.layout.weights));
    memory_.Add(start, ReplayMemory::kWeightStash, bytes);
  }
  RETURN_IF_ERROR(device_->Update(item.stage, optimizer, ++stage.steps_done,
                                  old, StaticTable(&stage, fresh)));
  ++stage.updates_done;
  for (void* average : stage.averages) {
    RETURN_IF_ERROR(device_->Average(item.stage, optimizer.average_decay, old,
                                     fresh, average));
  }
  ASSIGN_OR_RETURN(const MomentPtr end, device_->Now());
  stage.versions->Push(fresh);
  UpdateRecord record;
  record.stage = item.stage;
  record.update = item.update;
  updates_.push_back({record, {start, end}});
  return FreeDead(&stage, end);
}

}  // namespace weir
