// SPDX-License-Identifier: Apache-2.0
#include "results/import/clock_evidence.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/units.h"
#include "results/import/worker_names.h"

namespace weir::results {
namespace {

std::string CountText(const Violations& violations, const char* what) {
  return absl::StrFormat("(%d of %d %s, most of all ", violations.count,
                         violations.total, what);
}

std::string BetweenStages(const RecordedRun& run, const Violations& violations,
                          const std::string& what, const char* counted) {
  const RecordedOperation& second = violations.second;
  return absl::StrCat(what, CountText(violations, counted), "the ",
                      NameOf(second.kind), " of microbatch ", second.microbatch,
                      " on ", NameOfWorker(run, second.replica, second.rank),
                      ", after rank ", violations.first.rank, ", in step ",
                      second.step, ")");
}

}  // namespace

void Violations::AddOrders(const std::vector<EventOrder>& orders,
                           double allowed_seconds) {
  total += static_cast<int64_t>(orders.size());
  for (const EventOrder& order : orders) {
    if (order.slack_seconds >= -allowed_seconds) continue;
    Add(*order.first, *order.second, -order.slack_seconds);
  }
}

std::string ClockEvidence::Text(const RecordedRun& run) const {
  std::vector<std::string> parts;
  if (messages.count > 0) {
    parts.push_back(BetweenStages(
        run, messages,
        absl::StrCat("messages arrive up to ", FormatSeconds(messages.seconds),
                     " before they are sent "),
        "messages"));
  } else if (passes.count > 0) {
    parts.push_back(BetweenStages(
        run, passes,
        absl::StrCat("passes start up to ", FormatSeconds(passes.seconds),
                     " before the stage before them ends the microbatch "),
        "passes"));
  }
  if (collectives.count > 0) {
    const RecordedOperation& started = collectives.first;
    const RecordedOperation& ended = collectives.second;
    parts.push_back(absl::StrCat(
        "collectives end up to ", FormatSeconds(collectives.seconds),
        " before another replica starts them ",
        CountText(collectives, "collectives"), "the ", NameOf(ended.kind),
        " on ", NameOfWorker(run, ended.replica, ended.rank),
        ", before replica ", started.replica, ", in step ", ended.step, ")"));
  }
  return absl::StrJoin(parts, ", and ");
}

}  // namespace weir::results
