// SPDX-License-Identifier: Apache-2.0
// Presets register themselves before main(). A linker takes an object of an
// archive only if something refers to it: KeepAssets() refers to all presets.
#ifndef WEIR_API_KEEP_ASSETS_H_
#define WEIR_API_KEEP_ASSETS_H_

namespace weir::api {

void KeepAssets();

}  // namespace weir::api

#endif  // WEIR_API_KEEP_ASSETS_H_
