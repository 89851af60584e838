// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/weight_versions.h"

#include <algorithm>

namespace weir::calibrate {
namespace {

using ForwardRead = schedules::WeightPolicy::ForwardRead;

int CountOf(const std::map<int, int>& counts, int key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

WeightVersions::WeightVersions(const schedules::Schedule& schedule, int stage,
                               const std::vector<int>& forwards, bool stashes)
    : policy_(schedule.weights),
      stage_(stage),
      per_update_(schedule.microbatches_per_update(stage)),
      same_(!schedule.forward_only &&
            policy_.backward ==
                schedules::WeightPolicy::BackwardRead::kSameAsForward),
      stashes_(stashes),
      forwards_(forwards),
      read_(schedule.total_microbatches(), 0) {}

void WeightVersions::Begin(void* weights) {
  newest_ = lowest_ = 0;
  held_ = {{0, weights}};
  backwards_.clear();
  planned_.clear();
  first_.clear();
  left_.clear();
  num_left_ = static_cast<int>(forwards_.size());
  for (int k : forwards_) {
    const int update = k / per_update_;
    ++left_[update];
    ++planned_[std::max(update - policy_.delay_updates, 0)];
  }
}

int WeightVersions::ReadForward(int microbatch, int admitted, bool last) {
  const int update = microbatch / per_update_;
  int version = newest_;
  switch (policy_.forward) {
    case ForwardRead::kLatest:
      break;
    case ForwardRead::kDelayed:
      version = std::max(update - policy_.delay_updates, 0);
      break;
    case ForwardRead::kFirstStage:
      if (stage_ > 0) version = admitted;
      break;
    case ForwardRead::kFirstOfUpdate:
      version = first_.try_emplace(update, newest_).first->second;
      break;
  }
  --planned_[std::max(update - policy_.delay_updates, 0)];
  --left_[update];
  --num_left_;
  lowest_ = std::max(lowest_, version + (last ? 1 : 0));
  if (same_ && stashes_) ++backwards_[version];
  return read_[microbatch] = version;
}

int WeightVersions::ReadBackward(int microbatch) const {
  return same_ ? read_[microbatch] : newest_;
}

void WeightVersions::EndBackward(int microbatch) {
  if (same_ && stashes_) --backwards_[read_[microbatch]];
}

void* WeightVersions::memory(int version) const {
  const auto found = held_.find(version);
  return found == held_.end() ? nullptr : found->second;
}

bool WeightVersions::MustKeep(int version) const {
  if (CountOf(backwards_, version) > 0) return true;
  if (num_left_ == 0) return false;
  switch (policy_.forward) {
    case ForwardRead::kLatest:
      return false;
    case ForwardRead::kDelayed:
      return CountOf(planned_, version) > 0;
    case ForwardRead::kFirstStage:
      return stage_ > 0 && version >= lowest_;
    case ForwardRead::kFirstOfUpdate:
      return stashes_ &&
             std::any_of(first_.begin(), first_.end(), [&](const auto& first) {
               return first.second == version &&
                      CountOf(left_, first.first) > 0;
             });
  }
  return false;
}

void WeightVersions::Push(void* weights) {
  if (held_[newest_] == weights) held_.erase(newest_);
  held_[++newest_] = weights;
}

std::vector<void*> WeightVersions::TakeDead() {
  std::vector<void*> dead;
  for (auto at = held_.begin(); at != held_.end();) {
    if (at->first == newest_ || MustKeep(at->first)) {
      ++at;
    } else {
      dead.push_back(at->second);
      at = held_.erase(at);
    }
  }
  return dead;
}

}  // namespace weir::calibrate
