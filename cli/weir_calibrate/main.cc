// SPDX-License-Identifier: Apache-2.0
#include "cli/weir_calibrate/calibrate_main.h"
#include "cli/weir_calibrate/machine.h"

int main(int argc, char** argv) {
  const int code = weir::CalibrateMain(argc, argv, weir::MachineFactories());
  weir::ExitIfDeviceHangs(code);
  return code;
}
