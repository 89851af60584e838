// SPDX-License-Identifier: Apache-2.0
// Names in written scenarios, which must not depend on the working directory.
#ifndef WEIR_PLAN_FRAMEWORKS_ABSOLUTE_PATH_H_
#define WEIR_PLAN_FRAMEWORKS_ABSOLUTE_PATH_H_

#include <string>

namespace weir::plan {

// Returns the absolute path if `name` is a file, else the name of a preset as
// it is.
std::string AbsoluteIfFile(const std::string& name);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_ABSOLUTE_PATH_H_
