// SPDX-License-Identifier: Apache-2.0
#include "calibrate/program/calibrate_main.h"
#include "calibrate/program/machine.h"

int main(int argc, char** argv) {
  const int code = weir::CalibrateMain(argc, argv, weir::MachineFactories());
  weir::ExitIfDeviceHangs(code);
  return code;
}
