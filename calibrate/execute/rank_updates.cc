// SPDX-License-Identifier: Apache-2.0
// Optimizer steps of a rank, and the sums of gradients before them.
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibrate/execute/rank_runner.h"

namespace weir::calibrate {
namespace {

double BytesOf(const Exchange::Member& member) {  // fp32
  return 4.0 * static_cast<double>(member.num_elements);
}

}  // namespace

std::string RankRunner::MissingPart(const ExecutionItem& item) const {
  const Exchange& exchange = shared_.order.exchanges[item.exchange];
  const int root = exchange.members[0].rank;
  const auto part = [&](int member) -> const Board::Part& {
    return shared_.board->part(item.exchange, member);
  };
  switch (item.kind) {
    case ExecutionItem::Kind::kAdd: {
      const int rank = exchange.members[item.member].rank;
      if (rank == root || part(item.member).given) return "";
      return absl::StrCat("the gradients of rank ", rank);
    }
    case ExecutionItem::Kind::kGive:
      if (part(item.member).lent) return "";
      return absl::StrCat("room for its gradients on rank ", root);
    case ExecutionItem::Kind::kReturn:
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

Board::Part RankRunner::ReadPart(int exchange, int member) const {
  const std::lock_guard lock(shared_.board->mutex);
  return shared_.board->part(exchange, member);
}

template <typename Change>
void RankRunner::PostPart(int exchange, int member, const Change& change) {
  {
    const std::lock_guard lock(shared_.board->mutex);
    change(&shared_.board->part(exchange, member));
  }
  shared_.board->changed.notify_all();
}

absl::StatusOr<CopyEvents> RankRunner::SendPart(const Exchange::Member& member,
                                                int to_rank,
                                                const CopyPiece& piece,
                                                const RankEventPtr& ready) {
  return device_->Send(shared_.device->rank(to_rank), {&piece, 1},
                       member.num_elements, ElementFormat::kFp32,
                       plan().link(rank_, to_rank), 0, ready);
}

absl::Status RankRunner::DoExchange(const ExecutionItem& item) {
  const Exchange::Member& member =
      shared_.order.exchanges[item.exchange].members[item.member];
  switch (item.kind) {
    case ExecutionItem::Kind::kLend:
      return LendRoom(item, member);
    case ExecutionItem::Kind::kGive:
      return GivePart(item, member);
    case ExecutionItem::Kind::kAdd:
      return AddPart(item, member);
    case ExecutionItem::Kind::kOffer: {
      ASSIGN_OR_RETURN(const RankEventPtr now, device_->Now());
      PostPart(item.exchange, item.member, [&](Board::Part* part) {
        part->offered = true;
        part->offered_at = now;
        part->gradients = PartOf(member);
      });
      return absl::OkStatus();
    }
    case ExecutionItem::Kind::kReturn:
      return ReturnSum(item);
    default:
      return device_->WaitForEvent(
          ReadPart(item.exchange, item.member).returned_at);
  }
}

absl::Status RankRunner::LendRoom(const ExecutionItem& item,
                                  const Exchange::Member& member) {
  ASSIGN_OR_RETURN(
      void* room,
      AllocateMemory(member.num_elements, ElementFormat::kFp32,
                     absl::StrCat("gradients of stage ", member.stage,
                                  " of rank ", member.rank)));
  ASSIGN_OR_RETURN(const RankEventPtr now, device_->Now());
  memory_.Add(now, ExecutionMemory::kCommunicationBuffers, BytesOf(member));
  PostPart(item.exchange, item.member, [&](Board::Part* part) {
    part->lent = true;
    part->lent_at = now;
    part->room = room;
  });
  return absl::OkStatus();
}

absl::Status RankRunner::GivePart(const ExecutionItem& item,
                                  const Exchange::Member& member) {
  const int root = shared_.order.exchanges[item.exchange].members[0].rank;
  const Board::Part part = ReadPart(item.exchange, item.member);
  RETURN_IF_ERROR(device_->WaitForEvent(part.lent_at));
  ASSIGN_OR_RETURN(const RankEventPtr now, device_->Now());
  ASSIGN_OR_RETURN(const CopyEvents copy,
                   SendPart(member, root, {PartOf(member), part.room}, now));
  PostPart(item.exchange, item.member, [&](Board::Part* own) {
    own->given = true;
    own->given_at = copy.end;
    own->gradients = PartOf(member);
  });
  return absl::OkStatus();
}

absl::Status RankRunner::AddPart(const ExecutionItem& item,
                                 const Exchange::Member& member) {
  void* const sum = PartOf(shared_.order.exchanges[item.exchange].members[0]);
  if (member.rank == rank_) {
    return device_->Add(member.num_elements, PartOf(member), sum);
  }
  const Board::Part part = ReadPart(item.exchange, item.member);
  RETURN_IF_ERROR(device_->WaitForEvent(part.given_at));
  RETURN_IF_ERROR(device_->Add(member.num_elements, part.room, sum));
  RETURN_IF_ERROR(FreeMemory(part.room));
  ASSIGN_OR_RETURN(const RankEventPtr now, device_->Now());
  memory_.Add(now, ExecutionMemory::kCommunicationBuffers, -BytesOf(member));
  return absl::OkStatus();
}

absl::Status RankRunner::ReturnSum(const ExecutionItem& item) {
  const Exchange& exchange = shared_.order.exchanges[item.exchange];
  void* const sum = PartOf(exchange.members[0]);
  const auto num_members = static_cast<int>(exchange.members.size());
  for (int i = exchange.num_added; i < num_members; ++i) {
    if (exchange.members[i].rank == rank_) continue;
    RETURN_IF_ERROR(
        device_->WaitForEvent(ReadPart(item.exchange, i).offered_at));
  }
  ASSIGN_OR_RETURN(const RankEventPtr ready, device_->Now());
  std::vector<RankEventPtr> sent;
  for (int i = 1; i < num_members; ++i) {
    const Exchange::Member& to = exchange.members[i];
    if (to.rank == rank_) {
      RETURN_IF_ERROR(
          device_->Clear(to.num_elements, ElementFormat::kFp32, PartOf(to)));
      RETURN_IF_ERROR(device_->Add(to.num_elements, sum, PartOf(to)));
      continue;
    }
    void* const into = ReadPart(item.exchange, i).gradients;
    ASSIGN_OR_RETURN(const CopyEvents copy,
                     SendPart(to, to.rank, {sum, into}, ready));
    sent.push_back(copy.end);
    PostPart(item.exchange, i, [&](Board::Part* part) {
      part->returned = true;
      part->returned_at = copy.end;
    });
  }
  // The optimizer step clears the gradients, so it must follow the sends.
  for (const RankEventPtr& moment : sent) {
    RETURN_IF_ERROR(device_->WaitForEvent(moment));
  }
  return absl::OkStatus();
}

absl::Status RankRunner::Update(const ExecutionItem& item) {
  Stage& stage = StageOf(item.stage);
  const StageOptimizer& optimizer = plan().optimizers[item.stage];
  const StageBuffer& weights = stage.layout.buffer(stage.layout.weights);
  const auto bytes = static_cast<double>(weights.bytes());
  void* const old = stage.versions->memory(stage.versions->newest());
  void* fresh = old;
  ASSIGN_OR_RETURN(const RankEventPtr start, device_->Now());
  // Averages use differences, so old and new weights are needed at the same
  // time.
  if (stage.versions->MustKeepNewest() || !stage.averages.empty()) {
    ASSIGN_OR_RETURN(fresh, AllocateBuffer(stage, stage.layout.weights));
    memory_.Add(start, ExecutionMemory::kWeightStash, bytes);
  }
  RETURN_IF_ERROR(device_->Update(item.stage, optimizer, ++stage.steps_done,
                                  old, StaticTable(&stage, fresh)));
  ++stage.updates_done;
  for (void* average : stage.averages) {
    RETURN_IF_ERROR(device_->Average(item.stage, optimizer.average_decay, old,
                                     fresh, average));
  }
  ASSIGN_OR_RETURN(const RankEventPtr end, device_->Now());
  stage.versions->Push(fresh);
  UpdateRecord record;
  record.stage = item.stage;
  record.update = item.update;
  updates_.push_back({record, {start, end}});
  return FreeDead(&stage, end);
}

}  // namespace weir::calibrate
