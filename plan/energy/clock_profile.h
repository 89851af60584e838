// SPDX-License-Identifier: Apache-2.0
// Measured time and energy of the passes of a pipeline at each clock, as
// Perseus publishes them (Chung et al., Reducing energy bloat in large model
// training, SOSP 2024; github.com/ml-energy/zeus, sosp24_data).
#ifndef WEIR_PLAN_ENERGY_CLOCK_PROFILE_H_
#define WEIR_PLAN_ENERGY_CLOCK_PROFILE_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedules/action.h"

namespace weir::plan {

// One microbatch of one stage at one clock, on one GPU.
struct ClockPoint {
  double megahertz = 0;
  double seconds = 0;
  double joules = 0;
};

struct ClockProfile {
  int num_stages = 0;
  // By stage and pass; not empty, ascending clocks.
  std::map<std::pair<int, schedules::Op>, std::vector<ClockPoint>> passes;
  std::vector<std::string> notes;  // what was ignored
};

// Returns the name of a pass in column "instruction".
std::string InstructionName(schedules::Op pass);

// Returns true if the first line of a text names the columns of a profile.
bool IsClockProfile(absl::string_view text);

// Reads a CSV with the columns stage, instruction, frequency (MHz; also clock
// or clock_mhz), time (seconds; also seconds) and energy (joules; also joules).
// Instructions: forward, backward, or backward_input and backward_weight for
// schedules that split backwards. Rows of the same pass and clock are averaged,
// with a note, and refused if their times or energies differ by more than a
// factor of 2.
// A last row without a line break is ignored, with a note: its last number may
// lack digits. Multiplies times by `time_scale` and energies by it and
// `gpus_per_stage`. Returns InvalidArgument with file, line and column if a
// value is invalid, or a column is missing.
absl::StatusOr<ClockProfile> ReadClockProfile(absl::string_view label,
                                              absl::string_view text,
                                              double time_scale = 1,
                                              double gpus_per_stage = 1);

}  // namespace weir::plan

#endif  // WEIR_PLAN_ENERGY_CLOCK_PROFILE_H_
