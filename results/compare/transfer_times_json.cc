// SPDX-License-Identifier: Apache-2.0
#include "results/compare/transfer_times_json.h"

namespace weir::results {

nlohmann::ordered_json TransferTimesJson(const TransferTimes& times) {
  return {{"count", times.num_transfers},
          {"bytes", times.bytes},
          {"queued_seconds", times.queued_seconds},
          {"wire_seconds", times.wire_seconds},
          {"awaited_pass_seconds", times.awaited_pass_seconds},
          {"awaited_queued_seconds", times.awaited_queued_seconds},
          {"awaited_wire_seconds", times.awaited_wire_seconds}};
}

}  // namespace weir::results
