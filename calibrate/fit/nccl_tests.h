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

// Reads the output of all_reduce_perf, all_gather_perf, reduce_scatter_perf,
// alltoall_perf or sendrecv_perf. Columns go by the names in the header line,
// so releases with more or fewer of them are read alike; rows of no bytes are
// left out. Of JSON, environment and arguments but the test's name are not
// looked at. Several runs may follow each other in text. InvalidArgument names
// all that is wrong: "<label>:<line>: ..." or "<label>: results[3].time ...".
absl::StatusOr<std::vector<NcclTestsRun>> ParseNcclTests(
    absl::string_view label, absl::string_view text);

// Moves the collective figures of a profile to what the runs measured.
struct CollectiveImport {
  std::string summary;  // runs, points, error of the fit
  std::string warning;  // empty, or why to mistrust it
};

// Fits profile->collectives(), which says where to begin and how fast the links
// are, to runs within one node. InvalidArgument where that is missing or a run
// spans nodes; the profile is then as it was.
absl::StatusOr<CollectiveImport> ImportNcclTests(absl::string_view label,
                                                 absl::string_view text,
                                                 DeviceProfile* profile);

}  // namespace weir

#endif  // WEIR_CALIBRATE_FIT_NCCL_TESTS_H_
