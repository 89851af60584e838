// SPDX-License-Identifier: Apache-2.0
// Which passes and transfers are critical.
#ifndef WEIR_SIM_REPORT_CRITICAL_SLACK_H_
#define WEIR_SIM_REPORT_CRITICAL_SLACK_H_

namespace weir::sim {

// Returns the largest slack of critical passes and transfers of a run: its
// rounding errors, which are no slack.
inline double CriticalSlack(double makespan_seconds) {
  return 1e-9 * makespan_seconds;
}

}  // namespace weir::sim

#endif  // WEIR_SIM_REPORT_CRITICAL_SLACK_H_
