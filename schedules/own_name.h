// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_SCHEDULES_OWN_NAME_H_
#define WEIR_SCHEDULES_OWN_NAME_H_

#include <string>

namespace weir::schedules {

// Returns the registry's name of a schedule for any of its names, including
// options. Returns files and unknown names unchanged.
std::string OwnScheduleName(const std::string& name_or_path);

}  // namespace weir::schedules

#endif  // WEIR_SCHEDULES_OWN_NAME_H_
