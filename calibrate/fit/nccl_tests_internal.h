// SPDX-License-Identifier: Apache-2.0
// Shared by the readers of text and JSON. Only nccl_tests*.cc include this.
#ifndef WEIR_CALIBRATE_FIT_NCCL_TESTS_INTERNAL_H_
#define WEIR_CALIBRATE_FIT_NCCL_TESTS_INTERNAL_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/problems.h"
#include "calibrate/fit/nccl_tests.h"

namespace weir::calibrate {

// ".../all_reduce_perf" and "all_reduce_perf_mpi" are kAllReduce.
std::optional<models::CollectiveKind> KindOfProgram(absl::string_view program);
inline constexpr absl::string_view kKnownPrograms =
    "all_reduce_perf, all_gather_perf, reduce_scatter_perf, alltoall_perf or "
    "sendrecv_perf";

// Returns the version of an NCCL_VERSION_CODE: 22809 is 2.28.9, 2708 is 2.7.8.
std::string NcclVersion(int code);

std::vector<NcclTestsRun> ReadNcclTestsText(absl::string_view text,
                                            Problems* problems);
std::vector<NcclTestsRun> ReadNcclTestsJson(absl::string_view text,
                                            Problems* problems);

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_FIT_NCCL_TESTS_INTERNAL_H_
