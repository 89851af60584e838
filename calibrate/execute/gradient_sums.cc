// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/gradient_sums.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace weir::calibrate {
namespace {

double BytesOf(const Exchange::Member& member) {  // fp32
  return 4.0 * static_cast<double>(member.num_elements);
}

}  // namespace

std::string GradientSums::Missing(const ExecutionItem& item) const {
  const Exchange& exchange = state_.shared.order.exchanges[item.exchange];
  const int root = exchange.members[0].rank;
  const auto part = [&](int member) -> const Board::Part& {
    return state_.shared.board->part(item.exchange, member);
  };
  switch (item.kind) {
    case ExecutionItem::Kind::kAdd: {
      const int rank = exchange.members[item.member].rank;
      if (rank == root || part(item.member).given) return "";
      return absl::StrCat("the gradients of rank ", rank);
    }
    case ExecutionItem::Kind::kGive:
      if (part(item.member).lent) return "";
      return absl::StrCat("a receive buffer for its gradients on rank ", root);
    case ExecutionItem::Kind::kReturn:
      for (size_t i = exchange.num_added; i < exchange.members.size(); ++i) {
        const int rank = exchange.members[i].rank;
        if (rank == root || part(static_cast<int>(i)).offered) continue;
        return absl::StrCat("rank ", rank, " to be ready to sum the gradients");
      }
      return "";
    default:
      if (part(item.member).returned) return "";
      return absl::StrCat("the sum of the gradients from rank ", root);
  }
}

void* GradientSums::PartOf(const Exchange::Member& member) {
  return state_.device->ElementAt(state_.StageOf(member.stage).gradients,
                                  member.offset, ElementFormat::kFp32);
}

Board::Part GradientSums::ReadPart(int exchange, int member) const {
  const std::lock_guard lock(state_.shared.board->mutex);
  return state_.shared.board->part(exchange, member);
}

template <typename Change>
void GradientSums::PostPart(int exchange, int member, const Change& change) {
  {
    const std::lock_guard lock(state_.shared.board->mutex);
    change(&state_.shared.board->part(exchange, member));
  }
  state_.shared.board->changed.notify_all();
}

absl::StatusOr<CopyEvents> GradientSums::SendPart(
    const Exchange::Member& member, int to_rank, const CopyPiece& piece,
    const RankEventPtr& ready) {
  return state_.device->Send(
      state_.shared.device->rank(to_rank), {&piece, 1}, member.num_elements,
      ElementFormat::kFp32, state_.plan().link(state_.rank, to_rank), 0, ready);
}

absl::Status GradientSums::Run(const ExecutionItem& item) {
  const Exchange::Member& member =
      state_.shared.order.exchanges[item.exchange].members[item.member];
  switch (item.kind) {
    case ExecutionItem::Kind::kLend:
      return LendRoom(item, member);
    case ExecutionItem::Kind::kGive:
      return GivePart(item, member);
    case ExecutionItem::Kind::kAdd:
      return AddPart(item, member);
    case ExecutionItem::Kind::kOffer: {
      ASSIGN_OR_RETURN(const RankEventPtr now, state_.device->Now());
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
      return state_.device->WaitForEvent(
          ReadPart(item.exchange, item.member).returned_at);
  }
}

absl::Status GradientSums::LendRoom(const ExecutionItem& item,
                                    const Exchange::Member& member) {
  ASSIGN_OR_RETURN(
      void* room,
      state_.memory.Allocate(member.num_elements, ElementFormat::kFp32,
                             absl::StrCat("gradients of stage ", member.stage,
                                          " of rank ", member.rank)));
  ASSIGN_OR_RETURN(const RankEventPtr now, state_.device->Now());
  state_.log.Add(now, MemoryClass::COMMUNICATION_BUFFERS, BytesOf(member));
  PostPart(item.exchange, item.member, [&](Board::Part* part) {
    part->lent = true;
    part->lent_at = now;
    part->room = room;
  });
  return absl::OkStatus();
}

absl::Status GradientSums::GivePart(const ExecutionItem& item,
                                    const Exchange::Member& member) {
  const int root = state_.shared.order.exchanges[item.exchange].members[0].rank;
  const Board::Part part = ReadPart(item.exchange, item.member);
  RETURN_IF_ERROR(state_.device->WaitForEvent(part.lent_at));
  ASSIGN_OR_RETURN(const RankEventPtr now, state_.device->Now());
  ASSIGN_OR_RETURN(const CopyEvents copy,
                   SendPart(member, root, {PartOf(member), part.room}, now));
  PostPart(item.exchange, item.member, [&](Board::Part* own) {
    own->given = true;
    own->given_at = copy.end;
    own->gradients = PartOf(member);
  });
  return absl::OkStatus();
}

absl::Status GradientSums::AddPart(const ExecutionItem& item,
                                   const Exchange::Member& member) {
  void* const sum =
      PartOf(state_.shared.order.exchanges[item.exchange].members[0]);
  if (member.rank == state_.rank) {
    return state_.device->Add(member.num_elements, PartOf(member), sum);
  }
  const Board::Part part = ReadPart(item.exchange, item.member);
  RETURN_IF_ERROR(state_.device->WaitForEvent(part.given_at));
  RETURN_IF_ERROR(state_.device->Add(member.num_elements, part.room, sum));
  RETURN_IF_ERROR(state_.memory.Free(part.room));
  ASSIGN_OR_RETURN(const RankEventPtr now, state_.device->Now());
  state_.log.Add(now, MemoryClass::COMMUNICATION_BUFFERS, -BytesOf(member));
  return absl::OkStatus();
}

absl::Status GradientSums::ReturnSum(const ExecutionItem& item) {
  const Exchange& exchange = state_.shared.order.exchanges[item.exchange];
  void* const sum = PartOf(exchange.members[0]);
  const auto num_members = static_cast<int>(exchange.members.size());
  for (int i = exchange.num_added; i < num_members; ++i) {
    if (exchange.members[i].rank == state_.rank) continue;
    RETURN_IF_ERROR(
        state_.device->WaitForEvent(ReadPart(item.exchange, i).offered_at));
  }
  ASSIGN_OR_RETURN(const RankEventPtr ready, state_.device->Now());
  std::vector<RankEventPtr> sent;
  for (int i = 1; i < num_members; ++i) {
    const Exchange::Member& to = exchange.members[i];
    if (to.rank == state_.rank) {
      RETURN_IF_ERROR(state_.device->Clear(to.num_elements,
                                           ElementFormat::kFp32, PartOf(to)));
      RETURN_IF_ERROR(state_.device->Add(to.num_elements, sum, PartOf(to)));
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
  for (const RankEventPtr& event : sent) {
    RETURN_IF_ERROR(state_.device->WaitForEvent(event));
  }
  return absl::OkStatus();
}

}  // namespace weir::calibrate
