// SPDX-License-Identifier: Apache-2.0
#include "scenarios/check_stages.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "scenarios/check_scenario.h"
#include "scenarios/uneven_split.h"

namespace weir::scenarios {
namespace {

// Returns "parallelism.chunks 2 or 5", or "parallelism.pipeline 4 or 8" for one
// chunk or if no number of chunks divides.
std::string NearestStages(const Parallelism& parallelism, int num_blocks,
                          bool divides_gpus) {
  const auto pipeline = static_cast<int>(Degree(parallelism.pipeline()));
  const auto chunks = static_cast<int>(Degree(parallelism.chunks()));
  const bool vary_chunks = chunks > 1 && num_blocks % pipeline == 0;
  const int total = vary_chunks ? num_blocks / pipeline : num_blocks;
  const int value = vary_chunks ? chunks : pipeline * chunks;
  const auto per_tensor =
      static_cast<int>(pipeline * Degree(parallelism.data()));
  std::vector<std::string> nearest;
  const auto add = [&](int n) {
    if (!vary_chunks && n % chunks != 0) return false;
    if (total % n != 0) return false;
    if (divides_gpus && !vary_chunks && per_tensor % (n / chunks) != 0)
      return false;
    nearest.push_back(absl::StrCat(vary_chunks ? n : n / chunks));
    return true;
  };
  for (int n = value - 1; n >= 1; --n) {
    if (add(n)) break;
  }
  for (int n = value + 1; n <= total; ++n) {
    if (add(n)) break;
  }
  if (nearest.empty()) return "parallelism.chunks 1";
  return absl::StrCat(
      vary_chunks ? "parallelism.chunks " : "parallelism.pipeline ",
      absl::StrJoin(nearest, " or "));
}

}  // namespace

void CheckStages(Problems& problems, const Parallelism& parallelism,
                 const Model& model, bool divides_gpus) {
  if (!parallelism.blocks_per_stage().empty() ||
      !parallelism.layout().empty() || SplitsUnevenly(parallelism)) {
    return;
  }
  const double num_stages =
      Degree(parallelism.pipeline()) * Degree(parallelism.chunks());
  const bool measured = model.has_measured();
  const int num_blocks =
      measured ? model.measured().layers_size()
               : static_cast<int>(model.transformer().num_layers());
  if (num_stages > num_blocks) {
    problems.Add("parallelism",
                 absl::StrFormat("has %.0f stages (pipeline x chunks), "
                                 "expected at most the model's %d %s",
                                 num_stages, num_blocks,
                                 measured ? "layers" : "blocks"));
  } else if (!measured && num_blocks % static_cast<int>(num_stages) != 0) {
    problems.Add(
        "",
        absl::StrFormat(
            "parallelism.pipeline %.0f x parallelism.chunks %.0f = %.0f "
            "stages, expected a divisor of the model's %d blocks; nearest: %s, "
            "or an uneven partition with parallelism.layout or "
            "parallelism.blocks_per_stage",
            Degree(parallelism.pipeline()), Degree(parallelism.chunks()),
            num_stages, num_blocks,
            NearestStages(parallelism, num_blocks, divides_gpus)));
  }
}

}  // namespace weir::scenarios
