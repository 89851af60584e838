// SPDX-License-Identifier: Apache-2.0
// Reads the output of NVIDIA's nccl-tests: text, or JSON written by option -J.
#ifndef WEIR_CALIBRATE_FIT_NCCL_TESTS_H_
#define WEIR_CALIBRATE_FIT_NCCL_TESTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/fit/import.h"
#include "calibrate/pricing/collective_seconds.h"
#include "calibrate/profile/device_profile.pb.h"

namespace weir::calibrate {

// A run of one of the tests.
struct NcclTestsRun {
  struct Row {
    double bytes = 0;  // column `size`
    double seconds = 0;
  };
  models::CollectiveKind kind = models::CollectiveKind::kAllReduce;
  int num_ranks = 0;
  int num_nodes = 0;
  std::string nccl_version;          // "2.28.9"; empty if not given
  std::vector<std::string> devices;  // distinct names
  std::vector<Row> rows;  // out of place; in place if only that was measured
};

// Returns true if the text is output of nccl-tests.
bool LooksLikeNcclTests(absl::string_view text);

// Reads the output of all_reduce_perf, all_gather_perf, reduce_scatter_perf,
// alltoall_perf or sendrecv_perf. Columns are identified by the names in the
// header line, so releases with more or fewer columns are supported; rows of 0
// bytes are skipped. In JSON, the environment and all arguments but the test's
// name are ignored. Text may contain several runs. Returns InvalidArgument with
// all problems: "<label>:<line>: ..." or "<label>: results[3].time ...".
absl::StatusOr<std::vector<NcclTestsRun>> ParseNcclTests(
    absl::string_view label, absl::string_view text);

// Fits start.collectives(), which provides the starting point and the rate of
// the links, to runs within one node; an entry of MeasurementFormats(). The
// report warns if the fit's mean error is above 15 %. Returns InvalidArgument
// if the starting parameters are missing or a run spans nodes.
absl::StatusOr<Import> ImportNcclTests(absl::string_view label,
                                       absl::string_view text,
                                       const DeviceProfile& start,
                                       absl::string_view source);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_NCCL_TESTS_H_
