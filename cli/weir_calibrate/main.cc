// SPDX-License-Identifier: Apache-2.0
#include "cli/weir_calibrate/calibrate_main.h"
#include "cli/weir_calibrate/machine.h"

int main(int argc, char** argv) {
  const int code =
      weir::cli::CalibrateMain(argc, argv, weir::cli::MachineFactories());
  weir::cli::ExitIfDeviceHangs(code);
  return code;
}
