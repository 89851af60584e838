// SPDX-License-Identifier: Apache-2.0
#include "schedules/comm/transfers.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"

namespace weir::schedules {
namespace {

using Kind = TransferFault::Kind;

// Tables with a cell per stage and microbatch.
enum Table {
  kForwards,
  kGradients,
  kSendsForward,
  kReceivesForward,
  kSendsBackward,
  kReceivesBackward,
  kNumTables
};

int TableOf(Op op) {
  switch (op) {
    case Op::kForward:
      return kForwards;
    case Op::kBackward:
    case Op::kBackwardInput:
      return kGradients;
    case Op::kSendForward:
      return kSendsForward;
    case Op::kReceiveForward:
      return kReceivesForward;
    case Op::kSendBackward:
      return kSendsBackward;
    case Op::kReceiveBackward:
      return kReceivesBackward;
    case Op::kBackwardWeight:
    case Op::kOffload:
    case Op::kReload:
    case Op::kUnshard:
    case Op::kReshard:
    case Op::kReduceGradient:
      break;
  }
  return -1;
}

class Linker {
 public:
  Linker(const CommProgram& program, size_t limit,
         std::vector<TransferFault>* faults)
      : program_(program),
        shape_(ShapeOf(program)),
        limit_(limit),
        faults_(faults) {
    for (const auto& actions : program.ranks) {
      links_.first.push_back(num_actions_);
      num_actions_ += static_cast<int32_t>(actions.size());
    }
    links_.first.push_back(num_actions_);
    links_.partner.assign(num_actions_, -1);
    links_.local.assign(num_actions_, -1);
    rank_of_.reserve(num_actions_);
    for (size_t rank = 0; rank < program.ranks.size(); ++rank) {
      rank_of_.insert(rank_of_.end(), program.ranks[rank].size(),
                      static_cast<int32_t>(rank));
    }
    for (auto& table : tables_) {
      table.assign(
          static_cast<size_t>(shape_.num_stages) * shape_.num_microbatches, -1);
    }
  }

  Links Link() && {
    ForEach([&](int32_t id, const CommAction& action) { Enter(id, action); });
    ForEach([&](int32_t id, const CommAction& action) { Connect(id, action); });
    // Orders can only be compared if all pairs are complete.
    if (faults_->empty()) FindCrossed();
    return std::move(links_);
  }

 private:
  template <typename Visit>
  void ForEach(const Visit& visit) {
    int32_t id = 0;
    for (const auto& actions : program_.ranks) {
      for (const CommAction& action : actions) visit(id++, action);
    }
  }

  const CommAction& At(int32_t id) const {
    return program_.ranks[rank_of_[id]][id - links_.first[rank_of_[id]]];
  }

  void Fault(Kind kind, int32_t id, int32_t other, absl::string_view what) {
    if (faults_->size() >= limit_) return;
    faults_->push_back({kind, links_.PlaceOf(id),
                        other < 0 ? Place{} : links_.PlaceOf(other),
                        absl::StrCat(ToString(At(id)), " ", what)});
  }

  std::string Named(int32_t id) const {
    const Place place = links_.PlaceOf(id);
    return absl::StrCat(ToString(At(id)), " at position ", place.position,
                        " of rank ", place.rank);
  }

  int32_t& Cell(int table, int stage, int microbatch) {
    return tables_[table][static_cast<size_t>(stage) * shape_.num_microbatches +
                          microbatch];
  }

  bool HasStage(int stage) const {
    return stage >= 0 && stage < shape_.num_stages;
  }

  // Returns -1 if there is none or the stage does not exist.
  int32_t Find(int table, int stage, int microbatch) {
    if (!HasStage(stage)) return -1;
    return Cell(table, stage, microbatch);
  }

  void Enter(int32_t id, const CommAction& action) {
    const int table = TableOf(action.op);
    if (table < 0) return;
    for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
      int32_t& cell = Cell(table, action.stage, k);
      if (cell >= 0 && IsTransfer(action.op)) {
        Fault(Kind::kTwice, id, cell,
              absl::StrCat("appears a second time, after ", Named(cell)));
      }
      if (cell < 0) cell = id;
    }
  }

  void Connect(int32_t id, const CommAction& action) {
    const int table = TableOf(action.op);
    if (table < 0) return;
    switch (table) {
      case kForwards:
      case kGradients:
        ConnectPass(id, action, table);
        break;
      case kSendsForward:
      case kSendsBackward:
        ConnectSend(id, action, table);
        break;
      default:
        ConnectReceive(id, action, table);
    }
  }

  bool SameMicrobatches(const CommAction& one, const CommAction& other) const {
    return one.microbatch == other.microbatch &&
           one.num_microbatches == other.num_microbatches;
  }

  void ConnectPass(int32_t id, const CommAction& action, int table) {
    const bool forward = table == kForwards;
    const int from = action.stage + (forward ? -1 : 1);
    if (from < 0 || from >= shape_.num_stages) return;
    const int32_t made = Find(table, from, action.microbatch);
    if (made >= 0 && rank_of_[made] == rank_of_[id]) {
      links_.local[id] = made;
      if (made > id && !action.with_next) {
        Fault(
            Kind::kLate, id, made,
            absl::StrCat("depends on ", Named(made), ", which comes after it"));
      }
      return;
    }
    const int32_t received =
        Find(forward ? kReceivesForward : kReceivesBackward, action.stage,
             action.microbatch);
    if (received < 0 || rank_of_[received] != rank_of_[id]) {
      Fault(Kind::kMissing, id, received,
            absl::StrCat("has no ", forward ? "RECV_F" : "RECV_B",
                         " for its input on its rank"));
      return;
    }
    if (!SameMicrobatches(action, At(received))) {
      Fault(Kind::kSize, id, received,
            absl::StrCat("has different microbatches than ", Named(received)));
      return;
    }
    links_.partner[id] = received;
    if (received > id) {
      Fault(Kind::kLate, id, received,
            absl::StrCat("comes before ", Named(received),
                         ", which receives its input"));
    }
  }

  void ConnectSend(int32_t id, const CommAction& action, int table) {
    const bool forward = table == kSendsForward;
    const int32_t made =
        Find(forward ? kForwards : kGradients, action.stage, action.microbatch);
    if (made < 0 || rank_of_[made] != rank_of_[id]) {
      Fault(Kind::kNothing, id, made,
            "sends an output that no pass on its rank produces");
    } else {
      links_.local[id] = made;
      if (made > id) {
        Fault(Kind::kNothing, id, made,
              absl::StrCat("comes before ", Named(made),
                           ", which produces the data it sends"));
      }
    }
    const int to = action.stage + (forward ? 1 : -1);
    if (!HasStage(to)) {
      Fault(Kind::kNoStage, id, -1,
            absl::StrCat("sends ", forward ? "after" : "before", " stage ",
                         action.stage, ", the ", forward ? "last" : "first",
                         ", expected no ", forward ? "SEND_F" : "SEND_B",
                         " for it"));
      return;
    }
    const int32_t met = Find(forward ? kReceivesForward : kReceivesBackward, to,
                             action.microbatch);
    if (met < 0) {
      Fault(Kind::kUnmatched, id, -1,
            absl::StrCat("has no matching receive, expected ", to,
                         forward ? "RECV_F" : "RECV_B", action.microbatch,
                         " on another rank"));
      return;
    }
    if (rank_of_[met] == rank_of_[id]) {
      Fault(Kind::kItself, id, met,
            "is sent to its own rank, expected no transfer between stages of "
            "one rank");
    }
    if (!SameMicrobatches(action, At(met))) {
      Fault(Kind::kSize, id, met,
            absl::StrCat("sends different microbatches than ", Named(met),
                         " receives: sizes differ"));
    }
    links_.partner[id] = met;
  }

  void ConnectReceive(int32_t id, const CommAction& action, int table) {
    const bool forward = table == kReceivesForward;
    const int from = action.stage + (forward ? -1 : 1);
    if (!HasStage(from)) {
      Fault(Kind::kNoStage, id, -1,
            absl::StrCat("receives from ", forward ? "before" : "after",
                         " stage ", action.stage, ", the ",
                         forward ? "first" : "last", ", expected no ",
                         forward ? "RECV_F" : "RECV_B", " for it"));
      return;
    }
    const int32_t met =
        Find(forward ? kSendsForward : kSendsBackward, from, action.microbatch);
    if (met < 0) {
      Fault(Kind::kUnmatched, id, -1,
            absl::StrCat("has no matching send, expected ", from,
                         forward ? "SEND_F" : "SEND_B", action.microbatch,
                         " on another rank"));
    } else {
      links_.partner[id] = met;
    }
    const int32_t used =
        Find(forward ? kForwards : kGradients, action.stage, action.microbatch);
    if (used < 0 || rank_of_[used] != rank_of_[id]) {
      Fault(Kind::kUnused, id, used,
            "receives data that no pass on its rank uses");
    }
  }

  // The transfers from one rank to another, in each side's order.
  struct Channel {
    int32_t to;
    std::vector<int32_t> receives;
    size_t num_sends = 0;
    bool told = false;
  };

  // Searches linearly, because a rank has few peers.
  Channel& ChannelTo(int32_t from, int32_t to) {
    std::vector<Channel>& channels = channels_[from];
    for (Channel& channel : channels) {
      if (channel.to == to) return channel;
    }
    channels.push_back({to, {}});
    return channels.back();
  }

  // Finds transfers that are crossed: two ranks that send and receive without
  // tags match by order.
  void FindCrossed() {
    channels_.resize(program_.ranks.size());
    ForEach([&](int32_t id, const CommAction& action) {
      if (!IsTransfer(action.op) || IsSend(action.op)) return;
      ChannelTo(rank_of_[links_.partner[id]], rank_of_[id])
          .receives.push_back(id);
    });
    ForEach([&](int32_t id, const CommAction& action) {
      if (!IsSend(action.op)) return;
      const int32_t met = links_.partner[id];
      Channel& channel = ChannelTo(rank_of_[id], rank_of_[met]);
      const size_t k = channel.num_sends++;
      if (k >= channel.receives.size() || channel.receives[k] == met ||
          channel.told) {
        return;
      }
      channel.told = true;
      Fault(Kind::kCrossed, id, channel.receives[k],
            absl::StrCat("is transfer ", k, " from rank ", rank_of_[id],
                         " to rank ", rank_of_[met], ", but ",
                         Named(channel.receives[k]),
                         " is the receive at this position"));
    });
  }

  const CommProgram& program_;
  const ProgramShape shape_;
  const size_t limit_;
  std::vector<TransferFault>* const faults_;
  Links links_;
  int32_t num_actions_ = 0;
  std::vector<int32_t> rank_of_;
  std::array<std::vector<int32_t>, kNumTables> tables_;
  std::vector<std::vector<Channel>> channels_;  // [sender]
};

}  // namespace

Place Links::PlaceOf(int32_t action) const {
  const auto above = std::upper_bound(first.begin(), first.end(), action);
  const int32_t rank = static_cast<int32_t>(above - first.begin()) - 1;
  return {rank, action - first[rank]};
}

ProgramShape ShapeOf(const CommProgram& program) {
  ProgramShape shape;
  for (const auto& actions : program.ranks) {
    for (const CommAction& action : actions) {
      shape.num_stages = std::max(shape.num_stages, action.stage + 1);
      shape.num_microbatches =
          std::max(shape.num_microbatches, action.last_microbatch() + 1);
    }
  }
  return shape;
}

Links LinkProgram(const CommProgram& program, size_t limit,
                  std::vector<TransferFault>* faults) {
  return Linker(program, limit, faults).Link();
}

}  // namespace weir::schedules
