// SPDX-License-Identifier: Apache-2.0
// The versions of a stage's weights on one rank, as a runtime keeps them: it
// knows its own order of passes and the policy, and frees what nobody will
// read.
#ifndef WEIR_CALIBRATE_REPLAY_WEIGHT_VERSIONS_H_
#define WEIR_CALIBRATE_REPLAY_WEIGHT_VERSIONS_H_

#include <map>
#include <vector>

#include "schedules/schedule.h"

namespace weir {

class WeightVersions {
 public:
  // `forwards`: microbatches whose forwards this rank runs. `stashes`: false
  // where passes compute with estimates that are kept instead.
  WeightVersions(const Schedule& schedule, int stage,
                 const std::vector<int>& forwards, bool stashes);

  void Begin(void* weights);  // version 0 of a step

  // `admitted`: what the first stage read for it, kFirstStage alone; `last`:
  // no later microbatch reads that.
  int ReadForward(int microbatch, int admitted, bool last);
  int ReadBackward(int microbatch) const;
  void EndBackward(int microbatch);

  int newest() const { return newest_; }
  // Null: not there.
  void* memory(int version) const;
  // Somebody still reads the newest once it is superseded.
  bool MustKeepNewest() const { return MustKeep(newest_); }
  // The newest from now on; may be the memory of the one before.
  void Push(void* weights);
  // What nobody reads any more.
  std::vector<void*> TakeDead();
  int num_held() const { return static_cast<int>(held_.size()); }

 private:
  bool MustKeep(int version) const;

  const WeightPolicy& policy_;
  const int stage_, per_update_;
  const bool same_, stashes_;
  std::vector<int> forwards_;
  std::vector<int> read_;  // [microbatch], by its forward
  int newest_ = 0;
  std::map<int, void*> held_;     // by version
  std::map<int, int> backwards_;  // by version: still to come
  std::map<int, int> planned_;    // by version: forwards still to come
  std::map<int, int> first_;      // by update: what its first forward read
  std::map<int, int> left_;       // by update: forwards still to come
  int lowest_ = 0;                // that a forward may still be admitted with
  int num_left_ = 0;
};

}  // namespace weir

#endif  // WEIR_CALIBRATE_REPLAY_WEIGHT_VERSIONS_H_
