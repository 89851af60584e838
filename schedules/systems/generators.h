// SPDX-License-Identifier: Apache-2.0
// Families of schedules in the registry, one source file each.
#ifndef WEIR_SCHEDULES_SYSTEMS_GENERATORS_H_
#define WEIR_SCHEDULES_SYSTEMS_GENERATORS_H_

#include <functional>
#include <vector>

#include "base/problems.h"
#include "schedules/registry.h"
#include "schedules/schedule.h"

namespace weir::schedules {

ScheduleKind GPipeKind();                  // gpipe.cc
ScheduleKind PipeDreamFlushKind();         // pipedream_flush.cc
ScheduleKind DapplePAKind();               // dapple.cc
ScheduleKind DapplePBKind();               // dapple.cc
ScheduleKind InterleavedKind();            // interleaved.cc
ScheduleKind InterleavedZeroBubbleKind();  // interleaved_zb.cc
ScheduleKind BreadthFirstKind();           // breadth_first.cc
ScheduleKind ChimeraKind();                // chimera.cc
ScheduleKind HanayoKind();                 // hanayo.cc
ScheduleKind BitPipeKind();                // bitpipe.cc
ScheduleKind TwoBpNaiveKind();             // two_stage_backward.cc
ScheduleKind TwoBpGPipeKind();             // two_stage_backward.cc
ScheduleKind TwoBp1F1B1Kind();             // two_stage_backward.cc
ScheduleKind TwoBp1F1B2Kind();             // two_stage_backward.cc
ScheduleKind ZeroBubbleH1Kind();           // zero_bubble.cc
ScheduleKind ZeroBubbleH2Kind();           // zero_bubble.cc
ScheduleKind ZeroBubble1pKind();           // zero_bubble_auto.cc
ScheduleKind ZeroBubble2pKind();           // zero_bubble_auto.cc
ScheduleKind ZeroBubbleVKind();            // zero_bubble_v.cc
ScheduleKind VHalfKind();                  // v_blocks.cc
ScheduleKind VMinKind();                   // v_blocks.cc
ScheduleKind DualPipeKind();               // dualpipe.cc
ScheduleKind DualPipeVKind();              // dualpipe.cc
ScheduleKind OptPipeKind();                // optpipe.cc
ScheduleKind PipeDreamKind();              // pipedream.cc
ScheduleKind PipeDream2BWKind();           // pipedream.cc
ScheduleKind PipeMareKind();               // pipemare.cc
ScheduleKind SpecTrainKind();              // weight_prediction.cc
ScheduleKind XPipeKind();                  // weight_prediction.cc
ScheduleKind PipelinedBackpropKind();      // pipelined_backprop.cc
ScheduleKind TiMePReStKind();              // timeprest.cc
ScheduleKind BaPipeAsKind();               // bapipe.cc
ScheduleKind BaPipeFbpAsKind();            // bapipe.cc
ScheduleKind BaPipeSnoKind();              // bapipe.cc
ScheduleKind BaPipeSoKind();               // bapipe.cc
ScheduleKind SppKind();                    // spp.cc
ScheduleKind EdgePipeKind();               // edge.cc
ScheduleKind AccEPTKind();                 // edge.cc

// Returns a route with stage c*num_ranks + r on rank r as its chunk c.
std::vector<int> LoopedRoute(const ScheduleSpec& spec);

// Returns a route with alternating directions: chunk 0 from rank 0 to the last,
// chunk 1 from the last to rank 0, chunk 2 from rank 0 again. Two chunks form a
// V.
std::vector<int> ZigZagRoute(const ScheduleSpec& spec);

// Returns a schedule with the looped route of the spec and no actions.
Schedule EmptySchedule(absl::string_view name, const ScheduleSpec& spec);

// Returns the order of a stage: warm-up forwards, then one forward and one
// backward alternately, then the remaining backwards.
std::vector<Action> OneFOneB(int stage, int num_warmup, int num_microbatches);

// Returns a schedule whose stages follow OneFOneB over all batches, with
// warmup(stage) forwards before the first backward. Requires: one stage per
// rank.
Schedule OneFOneBSchedule(absl::string_view name, const ScheduleSpec& spec,
                          const std::function<int(int stage)>& warmup);

// Returns 1F1B of all batches without a pause between them: stage s warms up
// with num_ranks-1-s forwards.
Schedule OneFOneBSchedule(absl::string_view name, const ScheduleSpec& spec);

// Option "backward-order" of kinds that run all backwards of a stage
// consecutively: from the newest activations, or from the first microbatch on.
ScheduleOption BackwardOrderOption();
bool BackwardsReversed(const ScheduleSpec& spec, Problems* problems);

// Returns the breadth-first order: all forwards of a rank's first stage, then
// of its next; backwards in reverse order of stages. With one stage per rank
// this is GPipe.
Schedule StageByStage(absl::string_view name, const ScheduleSpec& spec);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_SYSTEMS_GENERATORS_H_
