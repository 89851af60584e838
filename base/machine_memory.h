// SPDX-License-Identifier: Apache-2.0
// Determines how much memory a new computation can use.
#ifndef WEIR_BASE_MACHINE_MEMORY_H_
#define WEIR_BASE_MACHINE_MEMORY_H_

#include <string>

namespace weir {

// Returns the bytes that this process can still allocate without swapping: the
// memory that the kernel reports as available, or less if a control group
// (version 1 or 2) of a container or a batch job allows less. Returns infinity
// if neither is known. Reads /proc and /sys below `root`, which only tests set.
double AvailableMemoryBytes(const std::string& root = "");

}  // namespace weir

#endif  // WEIR_BASE_MACHINE_MEMORY_H_
