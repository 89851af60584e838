// SPDX-License-Identifier: Apache-2.0
#include "calibrate/runtime.h"

#include "base/assets.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "calibrate/figures.h"

namespace weir {

absl::StatusOr<Runtime> LoadRuntime(const std::string& name_or_path) {
  ASSIGN_OR_RETURN(const Asset asset,
                   LoadAsset("calibrate/runtimes", name_or_path));
  Runtime runtime;
  RETURN_IF_ERROR(ParseTextProto(asset.label, asset.contents, &runtime));
  Problems problems(asset.label);
  if (runtime.name().empty()) {
    problems.Add("name", "is empty, expected the name of the framework");
  }
  for (const NamedFigure& named : FiguresOf(&runtime)) {
    CheckFigure(named.path, *named.figure, 0, 10, &problems);
  }
  RETURN_IF_ERROR(problems.ToStatus());
  return runtime;
}

}  // namespace weir
