// SPDX-License-Identifier: Apache-2.0
// weir-calibrate network over a fake network: the real launch, control plane,
// plan and profile without a GPU.
#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/exit_code.h"
#include "calibrate/fabric/command.h"
#include "tests/calibrate/fabric/fake_transport.h"

int main(int argc, char** argv) try {
  CLI::App app("a network calibration that needs no GPU");
  weir::calibrate::NetworkFlags flags;
  weir::calibrate::FakeTransportOptions options;
  flags.command = "fake_network";
  flags.weir_version = "fake";
  flags.print_error = [](absl::string_view text) {
    std::cerr << absl::StrCat("error: ", text, "\n");
  };
  flags.print_warning = [](absl::string_view text) {
    std::cerr << absl::StrCat("warning: ", text, "\n");
  };
  flags.start = "h200-sxm";
  flags.max_bytes = 1 << 24;
  app.add_option("--out", flags.out);
  app.add_option("--start", flags.start);
  app.add_option("--pairs-per-class", flags.pairs_per_class);
  app.add_option("--max-bytes", flags.max_bytes);
  app.add_option("--timeout", flags.timeout_seconds);
  app.add_option("--topology", flags.topology);
  app.add_option("--rendezvous", flags.rendezvous);
  app.add_option("--groups", flags.groups);
  app.add_option("--seed", flags.seed);
  app.add_flag("--one-gpu", flags.one_gpu);
  app.add_option("--folder", options.folder)->required();
  app.add_option("--trouble", options.trouble);
  app.add_option("--noise", options.noise);
  app.add_option("--leaf", options.leaf);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : weir::kExitUsage;
  }
  return weir::calibrate::RunNetworkCommand(
      flags, weir::calibrate::FakeNetwork(options));
} catch (const std::exception& error) {
  std::cerr << "error: " << error.what() << "\n";
  return weir::kExitInternal;
}
