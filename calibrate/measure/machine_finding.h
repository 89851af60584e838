// SPDX-License-Identifier: Apache-2.0
// A component of the machine that calibration needs.
#ifndef WEIR_CALIBRATE_MEASURE_MACHINE_FINDING_H_
#define WEIR_CALIBRATE_MEASURE_MACHINE_FINDING_H_

#include <string>

namespace weir::calibrate {

// A required or optional component of the machine.
struct MachineFinding {
  std::string name;    // "driver"
  std::string found;   // "580.95.05"; empty: missing
  std::string advice;  // remedy if it is missing
  bool required = true;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_MEASURE_MACHINE_FINDING_H_
