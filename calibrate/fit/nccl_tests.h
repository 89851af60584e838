// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's nccl-tests print: text, or JSON of their option -J.
#ifndef WEIR_CALIBRATE_FIT_NCCL_TESTS_H_
#define WEIR_CALIBRATE_FIT_NCCL_TESTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "calibrate/collective_seconds.h"
#include "calibrate/device_profile.pb.h"
#include "calibrate/fit/import.h"

namespace weir {

// A run of one of the tests.
struct NcclTestsRun {
  struct Row {
    double bytes = 0;  // column `size`
    double seconds = 0;
  };
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int num_ranks = 0;
  int num_nodes = 0;
  std::string nccl_version;          // "2.28.9"; empty where it is not said
  std::vector<std::string> devices;  // their names, each once
  std::vector<Row> rows;             // out of place; in place where only that
};

// Whether a text is of nccl-tests at all.
bool LooksLikeNcclTests(absl::string_view text);

// Reads the output of all_reduce_perf, all_gather_perf, reduce_scatter_perf,
// alltoall_perf or sendrecv_perf. Columns go by the names in the header line,
// so releases with more or fewer of them are read alike; rows of no bytes are
// left out. Of JSON, environment and arguments but the test's name are not
// looked at. Several runs may follow each other in text. InvalidArgument names
// all that is wrong: "<label>:<line>: ..." or "<label>: results[3].time ...".
absl::StatusOr<std::vector<NcclTestsRun>> ParseNcclTests(
    absl::string_view label, absl::string_view text);

// For MeasurementFormats: fits start.collectives(), which says where to begin
// and how fast the links are, to runs within one node. The report warns where
// the fit's mean error is above 15 %. InvalidArgument where the figures are
// missing or a run spans nodes.
absl::StatusOr<Import> ImportNcclTests(absl::string_view label,
                                       absl::string_view text,
                                       const DeviceProfile& start,
                                       absl::string_view source);

}  // namespace weir

#endif  // WEIR_CALIBRATE_FIT_NCCL_TESTS_H_
