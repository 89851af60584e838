// SPDX-License-Identifier: Apache-2.0
// What Primus writes with --dump_pp_data: for each pipeline rank of the first
// replica a file pp_rank_N.json with the start and end of every pass in
// milliseconds, by step, and config.json with the layout
// (github.com/AMD-AGI/Primus, pp_visualizer.py and tools/visualization/pp_vis).
#ifndef WEIR_RESULTS_IMPORT_PRIMUS_DUMP_H_
#define WEIR_RESULTS_IMPORT_PRIMUS_DUMP_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "results/import/primus_file.h"
#include "results/import/recorded_run.h"
#include "results/import/trace_source.h"

namespace weir::results {

// Collects the files of a dump.
class PrimusDump {
 public:
  // Reads a file, the rank of which is in its name, or else the next one.
  // Returns InvalidArgument if it is not JSON of this form, or has a time that
  // is no finite number.
  absl::Status Read(TraceSource* source);

  // Returns the run, not yet cleaned. A backward is a backward-input if there
  // is a weight gradient of its microbatch. Returns InvalidArgument if passes
  // have no number and cannot be counted, or forwards and backwards were
  // recorded as one interval.
  absl::StatusOr<RecordedRun> Finish(absl::string_view label);

 private:
  struct Rank {
    std::string label;
    std::map<int32_t, PrimusStep> steps;
  };
  struct Layout;  // of the passes, from the configuration and the chunks

  absl::Status AddRank(const std::string& label,
                       std::map<int32_t, PrimusStep> steps);
  absl::StatusOr<Layout> FindLayout(absl::string_view label) const;
  // Returns true if chunk 1 runs from the last rank to the first.
  bool IsFolded() const;
  // Adds the passes of a step of a rank.
  static absl::Status AddPasses(const Layout& layout, const std::string& label,
                                int32_t rank, int32_t number,
                                const PrimusStep& step, RecordedRun* run);
  // Notes files with the same times.
  void NoteCopies(RecordedRun* run) const;
  // Notes what was assumed about stages and clocks.
  static void AddNotes(const Layout& layout, RecordedRun* run);

  std::map<int32_t, Rank> ranks_;
  bool has_config_ = false;
  std::map<std::string, double> config_;
  std::vector<std::string> notes_;
  int num_unnamed_ = 0;  // files without a rank in their names
};

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_PRIMUS_DUMP_H_
