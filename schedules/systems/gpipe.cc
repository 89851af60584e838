// SPDX-License-Identifier: Apache-2.0
// GPipe (Huang et al., 2019, section 2): all forwards, then all backwards in
// reverse order, the newest activations first. torchgpipe, PyTorch and
// PipeDream-2BW's baseline run the backwards from the first microbatch on.
#include "schedules/limits.h"
#include "schedules/options.h"
#include "schedules/systems/generators.h"

namespace weir::schedules {
namespace {

constexpr absl::string_view kGPipeName = "gpipe";

absl::Status CheckGPipe(const ScheduleSpec& spec) {
  Problems problems(kGPipeName);
  CheckLimits(spec, &problems);
  CheckOneChunk(spec, &problems);
  CheckOneBatch(spec, &problems);
  BackwardsReversed(spec, &problems);
  return problems.ToStatus();
}

Schedule GenerateGPipe(const ScheduleSpec& spec) {
  return StageByStage(kGPipeName, spec);
}

}  // namespace

ScheduleOption BackwardOrderOption() {
  return {"backward-order", "reverse",
          "order of the backwards: reverse (last microbatch first) or forward"};
}

bool BackwardsReversed(const ScheduleSpec& spec, Problems* problems) {
  return ChoiceOption(spec, "backward-order", {"reverse", "forward"},
                      problems) == "reverse";
}

ScheduleKind GPipeKind() {
  return {.name = kGPipeName,
          .aliases = {"afab", "all-forward-all-backward", "fill-drain"},
          .paper =
              "Huang et al., GPipe: Efficient Training of Giant Neural "
              "Networks using Pipeline Parallelism, NeurIPS 2019",
          .constraints = "chunks is 1, num_batches is 1",
          .summary = "all forwards, all backwards, flush; one weight version",
          .flush = true,
          .options = {BackwardOrderOption()},
          .check = CheckGPipe,
          .generate = GenerateGPipe};
}

}  // namespace weir::schedules
