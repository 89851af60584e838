// SPDX-License-Identifier: Apache-2.0
// Generates device profiles: a preset or the measured toy with changed model
// parameters and without some of its optional parts.
#ifndef WEIR_TESTS_FUZZ_GENERATE_PROFILE_H_
#define WEIR_TESTS_FUZZ_GENERATE_PROFILE_H_

#include "calibrate/profile/device_profile.pb.h"
#include "tests/fuzz/choices.h"

namespace weir::fuzz {

// Changes model parameters of a profile and removes some of its optional parts.
void VaryProfile(bool may_be_invalid, DeviceProfile* profile, Choices* choices);

DeviceProfile GenerateProfile(Choices* choices);

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_GENERATE_PROFILE_H_
