// SPDX-License-Identifier: Apache-2.0
// DAPPLE's lengths (dapple.h) on stages that are placed by numbers of devices
// per server: all that they depend on, and fast enough for its search.
#ifndef WEIR_PLAN_PAPERS_DAPPLE_LENGTH_H_
#define WEIR_PLAN_PAPERS_DAPPLE_LENGTH_H_

#include <vector>

#include "plan/papers/dapple.h"
#include "plan/papers/layer_sums.h"

namespace weir {

struct Servers {
  std::vector<std::vector<int>> devices;  // in order of their numbers
  std::vector<int> sizes;
};
Servers ServersOf(const PlannerWork& work);

struct PlacedStage {
  int first = 0, end = 0;
  int units = 0;            // devices of one replica of the pipeline
  std::vector<int> counts;  // devices of all replicas, per server
  // By DappleLength::Place.
  int num_devices = 0, num_servers = 0;
  double transfer_seconds = 0;  // from the stage before
  // By DappleLength::Price.
  double seconds = 0, all_reduce_seconds = 0;
};

// A pipeline; the stages belong to somebody else.
using PlacedStages = std::vector<const PlacedStage*>;

class DappleLength {
 public:
  // REQUIRES: rates in `options`.
  DappleLength(const PlannerWork& work, const LayerSums& sums, int spread,
               const DappleOptions& options);

  // What a stage behind `before` takes wherever it ends.
  void Place(const PlacedStages& before, PlacedStage* stage) const;
  // The rest. REQUIRES: it is placed.
  void Price(PlacedStage* stage) const;

  // REQUIRES: stages are priced, here and below.
  double Seconds(const PlacedStages& stages) const;
  // No plan with this stage is shorter.
  double LeastSeconds(const PlacedStage& stage) const;
  double LeastOfPasses(const PlacedStage& stage) const {
    return num_steps_ * stage.seconds;
  }
  // Communication there and back to computation.
  double AcrOf(const PlacedStages& stages) const;

 private:
  double PaperSeconds(const PlacedStages& stages) const;

  const LayerSums& sums_;
  DappleOptions options_;
  double speed_;
  int spread_, num_steps_;
};

// By numbers of devices per server.
double DappleTransferSeconds(const std::vector<int>& from,
                             const std::vector<int>& to, double bytes,
                             const DappleOptions& options);
double DappleAllReduceSeconds(int num_devices, int num_servers, double bytes,
                              const DappleOptions& options);

}  // namespace weir

#endif  // WEIR_PLAN_PAPERS_DAPPLE_LENGTH_H_
