// SPDX-License-Identifier: Apache-2.0
// SimGrid 3.32 keeps every detached communication of the main thread in one
// list and searches it at each completion, so the cost of a flow grows with the
// number of flows in flight. The engine holds our flows until they end, so
// detaching them has no purpose: this replaces the exported function by one
// that does nothing. Fixed in SimGrid 3.34; measured in docs/performance.md.
// clang-format off
#include <xbt/base.h>  // version.h needs it first
#include <simgrid/version.h>
// clang-format on

#include "sim/engine/platform.h"

namespace weir::sim {
// Referenced from platform.cc, because a linker drops an object file of a
// static library to which nothing refers.
void LinkNoDetach() {}
}  // namespace weir::sim

#if SIMGRID_VERSION == 33200
extern "C" {
__attribute__((visibility("default"))) void*
weir_simgrid_no_detach(void* communication) __asm__(
    "_ZN7simgrid6kernel8activity8CommImpl6detachEv");

void* weir_simgrid_no_detach(void* communication) { return communication; }
}
#endif
