// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/execution_order.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "calibrate/execute/stage_layout.h"
#include "schedules/walk.h"

namespace weir::calibrate {
namespace {

// Number of actions of each rank that end before an action begins, by rank.
using Past = std::vector<int32_t>;

void Join(const Past& other, Past* past) {
  for (size_t i = 0; i < past->size(); ++i) {
    (*past)[i] = std::max((*past)[i], other[i]);
  }
}

// [rank][position]
std::vector<std::vector<Past>> PastsOf(
    const schedules::Schedule& schedule,
    const schedules::Dependencies& dependencies) {
  std::vector<std::vector<Past>> pasts;
  for (const auto& actions : schedule.rank_actions) {
    pasts.emplace_back(actions.size(), Past(schedule.num_ranks, 0));
  }
  // Returns the actions that have ended once the given one has.
  const auto after = [&](schedules::Place place) {
    Past past = pasts[place.rank][place.position];
    past[place.rank] = place.position + 1;
    return past;
  };
  schedules::WalkSchedule(
      schedule, dependencies, [&](int rank, int32_t position) {
        const auto& actions = schedule.rank_actions[rank];
        if (position > 0 && actions[position - 1].overlaps_next) return;
        Past& past = pasts[rank][position];
        if (position > 0) Join(after({rank, position - 1}), &past);
        const int last = position + (actions[position].overlaps_next ? 1 : 0);
        for (int i = position; i <= last; ++i) {
          for (schedules::Place place :
               dependencies.Awaited(actions[i], {rank, i})) {
            Join(after(place), &past);
          }
        }
        if (last > position) pasts[rank][last] = past;
      });
  return pasts;
}

class OrderBuilder {
 public:
  OrderBuilder(const ExecutionPlan& plan,
               const schedules::Dependencies& dependencies)
      : plan_(plan), schedule_(plan.schedule), dependencies_(dependencies) {
    order_.items.resize(schedule_.num_ranks);
    order_.first_receives.resize(schedule_.num_ranks);
  }

  ExecutionOrder Build() {
    if (!schedule_.forward_only) AddExchanges();
    for (int rank = 0; rank < schedule_.num_ranks; ++rank) AddItems(rank);
    AddMessages();
    return std::move(order_);
  }

 private:
  struct PendingUpdate {
    int stage = 0, update = 0;
    bool operator<(const PendingUpdate& other) const {
      return stage != other.stage ? stage < other.stage : update < other.update;
    }
  };

  int NumUpdates(int stage) const {
    return schedule_.total_microbatches() /
           schedule_.microbatches_per_update(stage);
  }

  void AddExchanges();
  void AddTied(int update);
  void AddItems(int rank);
  std::map<int32_t, std::vector<PendingUpdate>> UpdatesOf(int rank) const;
  void AddUpdates(int rank, std::vector<PendingUpdate> due);
  void AddExchangeItems(int rank, int exchange);
  void AddMessages();
  void AddMessage(const std::vector<std::vector<Past>>& pasts,
                  const MessageKey& key);
  ExecutionItem& ItemAt(int rank, int32_t position) {
    return order_.items[rank][item_of_[rank][position]];
  }

  const ExecutionPlan& plan_;
  const schedules::Schedule& schedule_;
  const schedules::Dependencies& dependencies_;
  ExecutionOrder order_;
  std::map<PendingUpdate, std::vector<int>> exchanges_of_;  // indices
  std::vector<std::vector<int>> item_of_;                   // [rank][position]
};

void OrderBuilder::AddExchanges() {
  int num_tied = 0;
  if (plan_.tied.num_elements > 0) num_tied = NumUpdates(0);
  for (int stage = 0; stage < schedule_.num_stages; ++stage) {
    const std::vector<int> ranks = schedule_.RanksOf(stage);
    if (ranks.size() < 2) continue;
    const StageLayout layout(plan_.programs[stage]);
    const int64_t all = layout.buffer(layout.gradients).num_elements;
    for (int update = 0; update < NumUpdates(stage); ++update) {
      Exchange exchange{stage, update, {}, static_cast<int>(ranks.size())};
      for (int rank : ranks) {
        exchange.members.push_back({rank, stage, 0, all});
      }
      exchanges_of_[{stage, update}].push_back(
          static_cast<int>(order_.exchanges.size()));
      order_.exchanges.push_back(std::move(exchange));
    }
  }
  for (int update = 0; update < num_tied; ++update) AddTied(update);
}

// Added after the sums over replicas: one replica of each end adds up, all get
// the sum.
void OrderBuilder::AddTied(int update) {
  const int last = schedule_.num_stages - 1;
  const TiedTable& tied = plan_.tied;
  Exchange exchange{0, update, {}, 2};
  const auto member = [&](int rank, bool first) {
    return Exchange::Member{rank, first ? 0 : last,
                            first ? tied.first_offset : tied.last_offset,
                            tied.num_elements};
  };
  const std::vector<int> firsts = schedule_.RanksOf(0);
  const std::vector<int> lasts = schedule_.RanksOf(last);
  exchange.members = {member(firsts[0], true), member(lasts[0], false)};
  for (size_t i = 1; i < firsts.size(); ++i) {
    exchange.members.push_back(member(firsts[i], true));
  }
  for (size_t i = 1; i < lasts.size(); ++i) {
    exchange.members.push_back(member(lasts[i], false));
  }
  const auto index = static_cast<int>(order_.exchanges.size());
  exchanges_of_[{0, update}].push_back(index);
  exchanges_of_[{last, update}].push_back(index);
  order_.exchanges.push_back(std::move(exchange));
}

// Maps the position of an action to the updates due right after it: once all of
// this rank's gradients of the update are complete or, with a flush, after the
// rank's last action.
std::map<int32_t, std::vector<OrderBuilder::PendingUpdate>>
OrderBuilder::UpdatesOf(int rank) const {
  std::map<int32_t, std::vector<PendingUpdate>> updates;
  if (schedule_.forward_only) return updates;
  const auto& actions = schedule_.rank_actions[rank];
  const auto end = static_cast<int32_t>(actions.size()) - 1;
  for (int stage : schedule_.StagesOf(rank)) {
    const int per_update = schedule_.microbatches_per_update(stage);
    std::vector<int> expected(NumUpdates(stage), 0);
    for (const schedules::Action& action : actions) {
      if (action.stage != stage || !schedules::CompletesGradient(action.op))
        continue;
      for (int k = action.microbatch; k <= action.last_microbatch(); ++k) {
        if (k / per_update < std::ssize(expected)) ++expected[k / per_update];
      }
    }
    int complete = 0, update = 0, needed = 0;
    for (int32_t i = 0; i <= end && update < std::ssize(expected); ++i) {
      const schedules::Action& action = actions[i];
      if (action.stage != stage || !schedules::CompletesGradient(action.op))
        continue;
      complete += action.num_microbatches;
      const int32_t at = i + (actions[i].overlaps_next ? 1 : 0);
      while (update < std::ssize(expected) &&
             complete >= needed + expected[update]) {
        updates[schedule_.flush ? end : at].push_back({stage, update});
        needed += expected[update++];
      }
    }
  }
  return updates;
}

void OrderBuilder::AddItems(int rank) {
  const auto& actions = schedule_.rank_actions[rank];
  const auto updates = UpdatesOf(rank);
  std::vector<ExecutionItem>& items = order_.items[rank];
  std::vector<int>& item_of = item_of_.emplace_back(actions.size());
  for (int32_t i = 0; i < std::ssize(actions); ++i) {
    const bool second = i > 0 && actions[i - 1].overlaps_next;
    if (second) {
      items.back().num_actions = 2;
    } else {
      ExecutionItem item;
      item.position = i;
      if (actions[i].op == schedules::Op::kOffload)
        item.kind = ExecutionItem::Kind::kOffload;
      if (actions[i].op == schedules::Op::kReload)
        item.kind = ExecutionItem::Kind::kReload;
      items.push_back(std::move(item));
    }
    item_of[i] = static_cast<int>(items.size()) - 1;
    const auto due = updates.find(i);
    if (due != updates.end()) AddUpdates(rank, due->second);
  }
}

// Adds all sums before all updates, in ascending order so that no two ranks can
// wait for each other.
void OrderBuilder::AddUpdates(int rank, std::vector<PendingUpdate> due) {
  std::sort(due.begin(), due.end());
  std::vector<int> exchanges;
  for (const PendingUpdate& one : due) {
    const auto found = exchanges_of_.find(one);
    if (found == exchanges_of_.end()) continue;
    exchanges.insert(exchanges.end(), found->second.begin(),
                     found->second.end());
  }
  std::sort(exchanges.begin(), exchanges.end());
  exchanges.erase(std::unique(exchanges.begin(), exchanges.end()),
                  exchanges.end());
  for (int exchange : exchanges) AddExchangeItems(rank, exchange);
  for (const PendingUpdate& one : due) {
    ExecutionItem item;
    item.kind = ExecutionItem::Kind::kUpdate;
    item.stage = one.stage;
    item.update = one.update;
    order_.items[rank].push_back(std::move(item));
  }
}

void OrderBuilder::AddExchangeItems(int rank, int exchange) {
  const Exchange& all = order_.exchanges[exchange];
  const int root = all.members[0].rank;
  const auto add = [&](ExecutionItem::Kind kind, int member) {
    ExecutionItem item;
    item.kind = kind;
    item.exchange = exchange;
    item.member = member;
    order_.items[rank].push_back(std::move(item));
  };
  const auto num_members = static_cast<int>(all.members.size());
  if (rank == root) {
    for (int i = 1; i < all.num_added; ++i) {
      if (all.members[i].rank != root) add(ExecutionItem::Kind::kLend, i);
      add(ExecutionItem::Kind::kAdd, i);
    }
    add(ExecutionItem::Kind::kReturn, 0);
    return;
  }
  for (const bool receives : {false, true}) {
    for (int i = 1; i < num_members; ++i) {
      if (all.members[i].rank != rank) continue;
      add(receives            ? ExecutionItem::Kind::kReceiveSum
          : i < all.num_added ? ExecutionItem::Kind::kGive
                              : ExecutionItem::Kind::kOffer,
          i);
    }
  }
}

void OrderBuilder::AddMessages() {
  const auto pasts = PastsOf(schedule_, dependencies_);
  for (const bool gradient : {false, true}) {
    if (gradient && schedule_.forward_only) continue;
    for (int stage = 0; stage < schedule_.num_stages; ++stage) {
      for (int k = 0; k < schedule_.total_microbatches(); ++k) {
        AddMessage(pasts, {gradient, stage, k});
      }
    }
  }
}

void OrderBuilder::AddMessage(const std::vector<std::vector<Past>>& pasts,
                              const MessageKey& key) {
  const int to_stage = key.stage + (key.gradient ? -1 : 1);
  if (to_stage < 0 || to_stage >= schedule_.num_stages) return;
  const schedules::Op op =
      key.gradient ? schedules::Op::kBackward : schedules::Op::kForward;
  const schedules::Place from =
      dependencies_.Find(op, key.stage, key.microbatch);
  const schedules::Place to = dependencies_.Find(op, to_stage, key.microbatch);
  if (from.rank == to.rank) return;
  const int32_t after = pasts[from.rank][from.position][to.rank] - 1;
  if (after < 0) {
    order_.first_receives[to.rank].push_back(key);
  } else {
    ItemAt(to.rank, after).receives.push_back(key);
  }
  const std::vector<Past>& own = pasts[from.rank];
  const auto knows = std::partition_point(
      own.begin(), own.end(),
      [&](const Past& past) { return past[to.rank] <= to.position; });
  if (knows == own.end()) return;  // freed at the end of the step
  ItemAt(from.rank, static_cast<int32_t>(knows - own.begin()))
      .arrived.push_back(key);
}

}  // namespace

ExecutionOrder MakeExecutionOrder(const ExecutionPlan& plan,
                                  const schedules::Dependencies& dependencies) {
  return OrderBuilder(plan, dependencies).Build();
}

std::string ItemText(const ExecutionPlan& plan, const ExecutionOrder& order,
                     int rank, const ExecutionItem& item) {
  if (item.position >= 0) {
    const auto& actions = plan.schedule.rank_actions[rank];
    std::string text = schedules::ToString(actions[item.position]);
    for (int i = 1; i < item.num_actions; ++i) {
      absl::StrAppend(&text, ";",
                      schedules::ToString(actions[item.position + i]));
    }
    return absl::StrCat(text, " (position ", item.position, ")");
  }
  const bool sums = item.exchange >= 0;
  const int stage = sums ? order.exchanges[item.exchange].stage : item.stage;
  const int update = sums ? order.exchanges[item.exchange].update : item.update;
  return absl::StrCat("update ", update, " of stage ", stage);
}

}  // namespace weir::calibrate
