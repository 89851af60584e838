// SPDX-License-Identifier: Apache-2.0
// Imports traces of real runs:
//   - timelines of ByteDance (Chrome JSON, or CSV): "Understanding Stragglers
//     in Large Model Training Using What-if Analysis", arXiv 2505.05713;
//   - traces of PyTorch's profiler (Kineto) and other Chrome JSON whose ranges
//     name passes ("PP:2F0", "F3.0.0", "Forward 3"), one file per rank;
//   - exports of Nsight Systems (SQLite) with such NVTX ranges;
//   - execution traces of Chakra whose operations have such names;
//   - dumps of Primus: pp_rank_N.json and config.json;
//   - of one GPU, ranges of DeepSeek's profile ("attn(F)", "dispatch(B)").
// JSON and CSV may be compressed by gzip. Files are read as streams: what is
// kept is a few dozen bytes for each operation.
#ifndef WEIR_RESULTS_IMPORT_IMPORT_TRACE_H_
#define WEIR_RESULTS_IMPORT_IMPORT_TRACE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "results/import/recorded_run.h"
#include "results/import/trace_source.h"

namespace weir::results {

// Reads the files of one run. Returns the operations after CleanRun, or
// InvalidArgument that names the file and what is wrong with it. `progress`
// gets the fraction of all files.
absl::StatusOr<RecordedRun> ImportTrace(const std::vector<std::string>& paths,
                                        const ReadProgress& progress = nullptr);

// A file in memory.
struct TraceText {
  absl::string_view label, bytes;
};

// The same from memory. Returns InvalidArgument with a label.
absl::StatusOr<RecordedRun> ImportTraceTexts(
    const std::vector<TraceText>& files);
absl::StatusOr<RecordedRun> ImportTraceText(absl::string_view label,
                                            absl::string_view bytes);

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_IMPORT_TRACE_H_
