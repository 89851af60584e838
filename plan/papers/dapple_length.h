// SPDX-License-Identifier: Apache-2.0
// DAPPLE's lengths (dapple.h) for stages given by their numbers of devices per
// server, which determine the lengths. Fast enough for DAPPLE's search.
#ifndef WEIR_PLAN_PAPERS_DAPPLE_LENGTH_H_
#define WEIR_PLAN_PAPERS_DAPPLE_LENGTH_H_

#include <vector>

#include "plan/papers/dapple.h"
#include "plan/papers/layer_sums.h"

namespace weir::plan {

struct Servers {
  std::vector<std::vector<int>> devices;  // by server, ascending
  std::vector<int> sizes;
};
Servers ServersOf(const PlannerWork& work);

struct PlacedStage {
  int first = 0, end = 0;
  int units = 0;            // devices of one replica of the pipeline
  std::vector<int> counts;  // devices of all replicas, by server
  // Set by DappleLength::Place.
  int num_devices = 0, num_servers = 0;
  double transfer_seconds = 0;  // from the previous stage
  // Set by DappleLength::Price.
  double seconds = 0, all_reduce_seconds = 0;
};

// A pipeline. Does not own its stages.
using PlacedStages = std::vector<const PlacedStage*>;

class DappleLength {
 public:
  // Requires: rates are set in `options`.
  DappleLength(const PlannerWork& work, const LayerSums& sums, int spread,
               const DappleOptions& options);

  // Sets the fields of a stage after `before` that do not depend on its end.
  void Place(const PlacedStages& before, PlacedStage* stage) const;
  // Sets the other fields. Requires: Place was called.
  void Price(PlacedStage* stage) const;

  // Returns the length of a pipeline in seconds. Requires, here and below:
  // stages are priced.
  double Seconds(const PlacedStages& stages) const;
  // Returns a lower bound in seconds on the length of every plan with this
  // stage.
  double LeastSeconds(const PlacedStage& stage) const;
  double LeastOfPasses(const PlacedStage& stage) const {
    return num_steps_ * stage.seconds;
  }
  // Returns the ratio of round-trip communication to computation (ACR).
  double AcrOf(const PlacedStages& stages) const;

 private:
  double PaperSeconds(const PlacedStages& stages) const;

  const LayerSums& sums_;
  DappleOptions options_;
  double speed_;
  int spread_, num_steps_;
};

// As in dapple.h, by numbers of devices per server.
double DappleTransferSeconds(const std::vector<int>& from,
                             const std::vector<int>& to, double bytes,
                             const DappleOptions& options);
double DappleAllReduceSeconds(int num_devices, int num_servers, double bytes,
                              const DappleOptions& options);

}  // namespace weir::plan

#endif  // WEIR_PLAN_PAPERS_DAPPLE_LENGTH_H_
