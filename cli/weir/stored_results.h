// SPDX-License-Identifier: Apache-2.0
// Results that an earlier command wrote.
#ifndef WEIR_CLI_WEIR_STORED_RESULTS_H_
#define WEIR_CLI_WEIR_STORED_RESULTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "results/result.pb.h"

namespace weir::cli {

// Returns all results of a file, or those whose schedule, row or name is
// `name`, the value of --result; empty: all. Returns the errors of LoadResults,
// and InvalidArgument if there is none.
absl::StatusOr<std::vector<Result>> LoadSelected(const std::string& path,
                                                 const std::string& name);

// Returns the only selected result. Returns the errors of LoadSelected, and
// InvalidArgument if there are several.
absl::StatusOr<Result> LoadOne(const std::string& path,
                               const std::string& name);

}  // namespace weir::cli

#endif  // WEIR_CLI_WEIR_STORED_RESULTS_H_
