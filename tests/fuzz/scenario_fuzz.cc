// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <set>

#include "base/textproto.h"
#include "scenarios/scenario.h"

namespace {

void Require(bool fact) {
  if (!fact) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  weir::Scenario scenario;
  if (!weir::ParseTextProto("fuzz", text, &scenario).ok()) return 0;
  // Skips names of files on this machine.
  for (const auto* name :
       {&scenario.model(), &scenario.cluster(), &scenario.profile()}) {
    if (name->find('/') != std::string::npos) return 0;
  }
  const auto resolved = weir::scenarios::ResolveScenario("fuzz", scenario);
  if (!resolved.ok()) {
    Require(!resolved.status().message().empty());
    return 0;
  }
  Require(resolved->num_microbatches >= 1);
  const std::vector<int>& gpus = resolved->placement.gpus;
  Require(static_cast<int>(gpus.size()) == resolved->placement.num_gpus());
  Require(std::set<int>(gpus.begin(), gpus.end()).size() == gpus.size());
  const auto again =
      weir::scenarios::ResolveScenario("fuzz", resolved->scenario);
  Require(again.ok());
  Require(weir::PrintTextProto(again->scenario) ==
          weir::PrintTextProto(resolved->scenario));
  return 0;
}
