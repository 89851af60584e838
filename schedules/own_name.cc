// SPDX-License-Identifier: Apache-2.0
#include "schedules/own_name.h"

#include "schedules/options.h"
#include "schedules/registry.h"
#include "schedules/source.h"

namespace weir::schedules {

std::string OwnScheduleName(const std::string& name_or_path) {
  if (IsScheduleFile(name_or_path)) return name_or_path;
  const auto kind = FindScheduleKind(name_or_path);
  return kind.ok() ? WithOwnName(name_or_path, **kind) : name_or_path;
}

}  // namespace weir::schedules
