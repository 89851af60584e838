// SPDX-License-Identifier: Apache-2.0
// The versions of a stage's weights on one rank, as a runtime manages them:
// from the rank's own order of passes and the policy, it frees versions that
// are no longer read.
#ifndef WEIR_CALIBRATE_EXECUTE_WEIGHT_VERSIONS_H_
#define WEIR_CALIBRATE_EXECUTE_WEIGHT_VERSIONS_H_

#include <map>
#include <vector>

#include "schedules/schedule.h"

namespace weir::calibrate {

class WeightVersions {
 public:
  // `forwards`: microbatches whose forwards this rank runs. `stashes`: false if
  // passes compute with saved estimates instead.
  WeightVersions(const schedules::Schedule& schedule, int stage,
                 const std::vector<int>& forwards, bool stashes);

  void Begin(void* weights);  // version 0 of a step

  // Returns the version that a forward reads. `admitted`: the version read by
  // the first stage, used by kFirstStage only. `last`: no later microbatch
  // reads that version.
  int ReadForward(int microbatch, int admitted, bool last);
  int ReadBackward(int microbatch) const;
  void EndBackward(int microbatch);

  int newest() const { return newest_; }
  // Returns null if the version is not held.
  void* memory(int version) const;
  // Returns true if the newest version will still be read after it is
  // superseded.
  bool MustKeepNewest() const { return MustKeep(newest_); }
  // Sets the newest version; may be the memory of the previous one.
  void Push(void* weights);
  // Removes and returns the versions that are no longer read.
  std::vector<void*> TakeDead();
  int num_held() const { return static_cast<int>(held_.size()); }

 private:
  bool MustKeep(int version) const;

  const schedules::WeightPolicy& policy_;
  const int stage_, per_update_;
  const bool same_, stashes_;
  std::vector<int> forwards_;
  std::vector<int> read_;  // [microbatch], by its forward
  int newest_ = 0;
  std::map<int, void*> held_;     // by version
  std::map<int, int> backwards_;  // by version: still to come
  std::map<int, int> planned_;    // by version: forwards still to come
  std::map<int, int> first_;  // by update: version read by its first forward
  std::map<int, int> left_;   // by update: forwards still to come
  int lowest_ = 0;  // lowest version with which a forward may still be admitted
  int num_left_ = 0;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_WEIGHT_VERSIONS_H_
