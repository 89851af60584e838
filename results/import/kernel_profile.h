// SPDX-License-Identifier: Apache-2.0
// A PyTorch profile of one GPU whose ranges name the parts of layers, as in
// github.com/deepseek-ai/profile-data: attn(F), mlp(B), dispatch(F), ...
#ifndef WEIR_RESULTS_IMPORT_KERNEL_PROFILE_H_
#define WEIR_RESULTS_IMPORT_KERNEL_PROFILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "results/import/chrome_events.h"
#include "results/import/recorded_run.h"

namespace weir::results {

// Collects ranges, launches and kernels. A kernel belongs to the innermost
// range of the host in which it was launched (by its correlation), and a range
// lasts from the start of its first kernel to the end of its last.
class KernelProfile {
 public:
  void Take(const ChromeEvent& event);
  bool empty() const { return ranges_.empty(); }

  // Returns the run, not yet cleaned: forwards and backward-weights of attn and
  // mlp as passes in parts, where the microbatch is 0 of the forward chunk and
  // 1 of the backward chunk, and the stage is the number of the layer;
  // dispatches and combines. Its summary has the GPU seconds of each kind of
  // range and how much of the communication computation hides. Returns
  // InvalidArgument if no kernel was launched in a range.
  absl::StatusOr<RecordedRun> Finish(absl::string_view label);

 private:
  struct Range {
    std::string part;           // "attn"
    char direction = 0;         // 'F', 'B' or 'W'
    double start = 0, end = 0;  // microseconds of the host
  };
  struct Launch {
    int64_t correlation = 0;
    double microseconds = 0;
  };
  struct Kernel {
    int64_t correlation = 0;
    double start = 0, end = 0;  // microseconds of the GPU
    int32_t range = -1;
  };

  void AssignRanges();
  std::string Summary() const;

  std::vector<Range> ranges_;
  std::vector<Launch> launches_;
  std::vector<Kernel> kernels_;
};

}  // namespace weir::results

#endif  // WEIR_RESULTS_IMPORT_KERNEL_PROFILE_H_
