// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/run_weir.h"
#include "cli/weir/weir_app.h"

int main(int argc, char** argv) {
  return weir::cli::RunWeir(argc, argv, weir::cli::MakeCoreApp);
}
