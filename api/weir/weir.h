// SPDX-License-Identifier: Apache-2.0
// All of weir's C++ library:
//
//   #include <weir/weir.h>
//   auto scenario = weir::api::Scenario::Load("llama-3-70b-64-h100");
//   scenario.SetSchedule("zb-h1");
//   double seconds = weir::api::Simulate(scenario).step_seconds;
//
// Types are plain, numbers are seconds, bytes and FLOP. Functions throw
// weir::api::Error.
#ifndef WEIR_WEIR_H_
#define WEIR_WEIR_H_

#include "weir/error.h"     // IWYU pragma: export
#include "weir/scenario.h"  // IWYU pragma: export
#include "weir/schedule.h"  // IWYU pragma: export
#include "weir/simulate.h"  // IWYU pragma: export

#endif  // WEIR_WEIR_H_
