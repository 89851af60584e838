// SPDX-License-Identifier: Apache-2.0
// Views of the slack of schedules.
#ifndef WEIR_PLAN_STRAGGLERS_SLACK_VIEWS_H_
#define WEIR_PLAN_STRAGGLERS_SLACK_VIEWS_H_

#include <span>
#include <string>

#include "sim/report/slack.h"

namespace weir::plan {

struct NamedSlack {
  std::string schedule;
  std::string label;  // of its rows: "zb-v v=2"
  sim::ScheduleSlack slack;
};

// Returns, for each schedule and kind of pass or transfer of replica 0, how
// many are critical, and the median and largest slack.
std::string SlackTable(std::span<const NamedSlack> all);

// Returns a JSON object with the slack of every pass and transfer.
std::string SlackJson(std::span<const NamedSlack> all);

}  // namespace weir::plan

#endif  // WEIR_PLAN_STRAGGLERS_SLACK_VIEWS_H_
