// SPDX-License-Identifier: Apache-2.0
// Launches, options and greetings for tests of rank 0.
#ifndef WEIR_TESTS_CALIBRATE_FABRIC_RANK0_H_
#define WEIR_TESTS_CALIBRATE_FABRIC_RANK0_H_

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "calibrate/fabric/control.pb.h"
#include "calibrate/fabric/launch.h"
#include "calibrate/fabric/leader.h"

namespace weir::calibrate {

inline constexpr char kToken[] = "the token of the job";

inline absl::Time Later() { return absl::Now() + absl::Seconds(30); }

inline RankLaunch LaunchOf(int num_ranks) {
  RankLaunch launch;
  launch.num_ranks = num_ranks;
  launch.node = "n0";
  return launch;
}

inline LeaderOptions OptionsOf(double timeout_seconds) {
  LeaderOptions options;
  options.weir_version = "tested";
  options.timeout_seconds = timeout_seconds;
  options.perform = [](const Request&) { return Answer(); };
  options.report_error = [](const absl::Status&) {};
  return options;
}

// Returns the greeting of a rank.
inline Hello HelloOf(int rank, uint64_t instance, int num_ranks) {
  Hello hello;
  hello.set_token(kToken);
  hello.set_rank(rank);
  hello.set_num_ranks(num_ranks);
  hello.set_node("n1");
  hello.set_pid(4711);
  hello.set_weir_version("tested");
  hello.set_instance(instance);
  hello.set_attempt(1);
  return hello;
}

}  // namespace weir::calibrate

#endif  // WEIR_TESTS_CALIBRATE_FABRIC_RANK0_H_
