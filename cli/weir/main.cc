// SPDX-License-Identifier: Apache-2.0
#include <CLI/App.hpp>

#include "cli/weir/weir_app.h"

int main(int argc, char** argv) {
  return weir::cli::RunWeir(argc, argv, weir::cli::MakeWeirApp);
}
