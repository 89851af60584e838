// SPDX-License-Identifier: Apache-2.0
// Device profiles and runtimes that inherit from another one and replace a few
// parameters.
#ifndef WEIR_PLAN_VALIDATION_PROFILE_OVERLAY_H_
#define WEIR_PLAN_VALIDATION_PROFILE_OVERLAY_H_

#include <string>
#include <vector>

#include "calibrate/profile/device_profile.pb.h"
#include "calibrate/profile/figure.pb.h"
#include "calibrate/profile/runtime.pb.h"

namespace weir::plan {

struct ReplacedFigure {
  std::string path;  // of calibrate::FiguresOf
  Figure figure;
};

// Return a message whose base is `base` (a preset, or a path, which becomes
// absolute) and which, loaded, equals the given one with the figures replaced.
// Contains what is not inherited, such as measured kernels, and repeated fields
// with a replaced figure as a whole. Require: the message was loaded from
// `base`, and the paths exist.
DeviceProfile OverlayOf(DeviceProfile profile, const std::string& base,
                        const std::vector<ReplacedFigure>& figures);
Runtime OverlayOf(Runtime runtime, const std::string& base,
                  const std::vector<ReplacedFigure>& figures);

}  // namespace weir::plan

#endif  // WEIR_PLAN_VALIDATION_PROFILE_OVERLAY_H_
