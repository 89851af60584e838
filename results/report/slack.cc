// SPDX-License-Identifier: Apache-2.0
// Slack of passes and transfers.
#include "results/report/sections.h"

namespace weir::results {

Json SlackSection(std::span<const Result> results) {
  Json runs = Json::array();
  for (const Result& result : results) {
    Json rows = Json::array();
    for (const RunSlack::Row& row : result.run_slack().rows()) {
      rows.push_back({{"rank", row.rank()},
                      {"what", row.what()},
                      {"count", row.count()},
                      {"num_critical", row.num_critical()},
                      {"median_seconds", row.median_seconds()},
                      {"largest_seconds", row.largest_seconds()}});
    }
    runs.push_back({{"is_exact", result.run_slack().is_exact()},
                    {"batch_seconds", result.batch_seconds()},
                    {"rows", std::move(rows)}});
  }
  return {{"type", "slack"}, {"runs", std::move(runs)}};
}

}  // namespace weir::results
