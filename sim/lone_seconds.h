// SPDX-License-Identifier: Apache-2.0
// What passes, transfers and reductions of the first replica take when nobody
// else uses their links.
#ifndef WEIR_SIM_LONE_SECONDS_H_
#define WEIR_SIM_LONE_SECONDS_H_

#include <optional>
#include <vector>

#include "sim/groups.h"
#include "sim/pass_order.h"
#include "sim/pipeline_graph.h"

namespace weir {

class LoneSeconds {
 public:
  explicit LoneSeconds(const PipelineInputs& inputs);

  // With what is called inside it, and not before its host has launched it.
  double OfPass(const PassKind& kind);
  double OfHop(const HopKind& hop);
  // What a rank does when its passes are through: steps, and before them
  // reductions where `with_reductions`; these begin with the last pass, if
  // gradients are not reduced as they come.
  double OfTail(int rank, bool with_reductions);

 private:
  struct Calls {
    std::vector<Collectives> in_line, beside, experts;
  };
  void AddCalls(const Action& action, Calls* calls) const;
  double OfOffload(int rank, const Action& action);
  double OfCalls(const Group& group, const std::vector<Collectives>& calls);
  const Group& TensorGroup(int rank);
  const Group& ExpertGroup(int rank);
  double OfReductions(int rank);
  std::vector<int> SteppedStages(int rank) const;
  double StepSeconds(int rank, const std::vector<int>& stages, size_t i) const;

  const PipelineInputs in_;
  TaskGraph scratch_;  // of ways_, which adds pairs
  Ways ways_;
  std::vector<std::optional<Group>> tensors_, experts_;  // [rank]
};

}  // namespace weir

#endif  // WEIR_SIM_LONE_SECONDS_H_
