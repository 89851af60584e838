// SPDX-License-Identifier: Apache-2.0
// Pairs of a backward and the forward that follows it, which run at the same
// time so that the exchanges of one overlap with the kernels of the other.
#ifndef WEIR_SCHEDULES_PAIR_PASSES_H_
#define WEIR_SCHEDULES_PAIR_PASSES_H_

#include "schedules/schedule.h"

namespace weir::schedules {

// Marks each backward (or backward-input) that is followed by a forward of
// another microbatch or stage, and of as many microbatches, as overlapping it.
// Leaves orders and existing pairs as they are. In 1F1B, these are the pairs
// (B of microbatch j, F of microbatch j + w + 1) after w warm-up forwards,
// which Megatron-LM merges with one more warm-up forward
// (--overlap-moe-expert-parallel-comm). Both passes of a pair start when both
// can, so that the first of them may wait.
void PairBackwardsWithForwards(Schedule* schedule);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_PAIR_PASSES_H_
