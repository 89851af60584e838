// SPDX-License-Identifier: Apache-2.0
// What the tables say about a result, cell by cell; "-" where the result does
// not say. Everything is printable ASCII.
#ifndef WEIR_RESULTS_CELLS_H_
#define WEIR_RESULTS_CELLS_H_

#include <string>

#include "results/result.pb.h"

namespace weir {

// "tensor 8 x pipeline 8 x data 4 = 256 GPUs, batch 512 = 4 x 128 microbatches
// of 1, sequence 2048"; without what the result does not have.
std::string ShapeText(const Result& result);

// The same for a column: "tp 8, pp 8, dp 4, batch 512".
std::string ShapeCell(const Result& result);

std::string TimeCell(const Result& result);  // "9.84 s", "~9.84 s"
// "9.84 s (9.10 to 10.6 s)"; without the interval where there is none.
std::string TimeIntervalCell(const Result& result);
// "62 % measured, 30 % fitted, 8 % assumed" of the time; empty where the
// result does not say.
std::string EvidenceCell(const Result& result);
std::string SamplesCell(const Result& result);
std::string TokensCell(const Result& result);
std::string UtilizationCell(const Result& result);
std::string BubbleCell(const Result& result);
std::string ExposedCell(const Result& result);

// "15.2 GiB of 15.8 GiB", "17.2 GiB of 15.8 GiB, 1.40 GiB too much".
std::string MemoryCell(const Result& result);

// "replayed on 4 partitions of ..., every pass alone"; empty for what was
// simulated.
std::string ExecutedCell(const Result& result);

// Whether TimeCell is only about right: no period was seen without flush.
bool IsApproximate(const Result& result);

// "1.40 GiB too much", or "does not fit" where the result does not say why.
std::string MisfitText(const Result& result);

}  // namespace weir

#endif  // WEIR_RESULTS_CELLS_H_
