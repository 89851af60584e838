// SPDX-License-Identifier: Apache-2.0
// Turns the errors of weir into exceptions.
#ifndef WEIR_API_STATUS_H_
#define WEIR_API_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weir/error.h"

namespace weir::api {

[[noreturn]] void ThrowError(const absl::Status& status);

inline void ThrowUnlessOk(const absl::Status& status) {
  if (!status.ok()) ThrowError(status);
}

template <typename Value>
Value ValueOrThrow(absl::StatusOr<Value> value) {
  if (!value.ok()) ThrowError(value.status());
  return *std::move(value);
}

}  // namespace weir::api

#endif  // WEIR_API_STATUS_H_
