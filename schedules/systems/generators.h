// SPDX-License-Identifier: Apache-2.0
// The families behind the registry, one source file each.
#ifndef WEIR_SCHEDULES_SYSTEMS_GENERATORS_H_
#define WEIR_SCHEDULES_SYSTEMS_GENERATORS_H_

#include <functional>
#include <vector>

#include "base/problems.h"
#include "schedules/registry.h"
#include "schedules/schedule.h"

namespace weir {

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

// Stage c*num_ranks + r on rank r as its chunk c.
std::vector<int> LoopedRoute(const ScheduleSpec& spec);

// There and back: chunk 0 from rank 0 to the last, chunk 1 from the last to
// rank 0, chunk 2 from rank 0 again. Two chunks make a V.
std::vector<int> ZigZagRoute(const ScheduleSpec& spec);

// A schedule with the looped placement of the spec and no actions yet.
Schedule EmptySchedule(absl::string_view name, const ScheduleSpec& spec);

// Orders one stage: warm-up forwards, then one forward and one backward in
// turn, then the backwards that are left.
std::vector<Action> OneFOneB(int stage, int num_warmup, int num_microbatches);

// As OneFOneB, of all batches; warmup(stage) forwards before the first
// backward. REQUIRES: one stage on a rank.
Schedule OneFOneBSchedule(absl::string_view name, const ScheduleSpec& spec,
                          const std::function<int(int stage)>& warmup);

// A 1F1B of all batches without a pause between them: stage s warms up with
// num_ranks-1-s forwards.
Schedule OneFOneBSchedule(absl::string_view name, const ScheduleSpec& spec);

// "backward-order" of the kinds that run all backwards of a stage at a time:
// from the newest activations, or from the first microbatch on.
ScheduleOption BackwardOrderOption();
bool BackwardsReversed(const ScheduleSpec& spec, Problems* problems);

// Breadth-first: all forwards of a rank's first stage, then of its next, and
// back with the backwards. One stage per rank is GPipe.
Schedule StageByStage(absl::string_view name, const ScheduleSpec& spec);

}  // namespace weir

#endif  // WEIR_SCHEDULES_SYSTEMS_GENERATORS_H_
