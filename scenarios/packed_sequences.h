// SPDX-License-Identifier: Apache-2.0
// Lengths of the documents that are packed into a sequence
// (docs/packed-sequences.md).
#ifndef WEIR_SCENARIOS_PACKED_SEQUENCES_H_
#define WEIR_SCENARIOS_PACKED_SEQUENCES_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "scenarios/scenario.pb.h"

namespace weir::scenarios {

// Parses --packed-sequences: "2048", "uniform:100-4000",
// "lognormal:MEAN,DEVIATION", or lengths with relative counts,
// "512*3,4096*1". Returns InvalidArgument "is x, expected ..." for other text.
absl::StatusOr<SequenceLengths> ParseSequenceLengths(absl::string_view text);

// Checks the fields of batch.packed_sequences, if it is present.
void CheckSequenceLengths(Problems& problems, const Batch& batch);

// Returns E[min(l, longest)^power] of the length l of a document in tokens, in
// closed form. Requires: CheckSequenceLengths found no problem, power is 1 to
// 4.
double LengthMoment(const SequenceLengths& lengths, int power, double longest);

}  // namespace weir::scenarios

#endif  // WEIR_SCENARIOS_PACKED_SEQUENCES_H_
