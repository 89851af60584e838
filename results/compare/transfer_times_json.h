// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_RESULTS_COMPARE_TRANSFER_TIMES_JSON_H_
#define WEIR_RESULTS_COMPARE_TRANSFER_TIMES_JSON_H_

#include <nlohmann/json.hpp>

#include "results/compare/idle_causes.h"

namespace weir::results {

// Returns the members of TransferTimes; "count" is the number of transfers.
nlohmann::ordered_json TransferTimesJson(const TransferTimes& times);

}  // namespace weir::results

#endif  // WEIR_RESULTS_COMPARE_TRANSFER_TIMES_JSON_H_
