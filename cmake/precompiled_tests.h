// SPDX-License-Identifier: Apache-2.0
// Headers that most tests include; precompiled if WEIR_UNITY is on.
#ifndef WEIR_CMAKE_PRECOMPILED_TESTS_H_
#define WEIR_CMAKE_PRECOMPILED_TESTS_H_

#include "cmake/precompiled.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#endif  // WEIR_CMAKE_PRECOMPILED_TESTS_H_
