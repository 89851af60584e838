// SPDX-License-Identifier: Apache-2.0
// Registers embedded files with base/assets.h. Includes nothing, since the
// generated sources that use it contain only data.
#ifndef WEIR_BASE_ASSET_REGISTRATION_H_
#define WEIR_BASE_ASSET_REGISTRATION_H_

namespace weir {

// Both arguments must be string literals.
struct AssetRegistration {
  template <decltype(sizeof(0)) kPathSize, decltype(sizeof(0)) kSize>
  AssetRegistration(const char (&path)[kPathSize],
                    const char (&contents)[kSize])
      : AssetRegistration(path, kPathSize - 1, contents, kSize - 1) {}

 private:
  AssetRegistration(const char* path, decltype(sizeof(0)) path_size,
                    const char* contents, decltype(sizeof(0)) size);
};

}  // namespace weir

#endif  // WEIR_BASE_ASSET_REGISTRATION_H_
