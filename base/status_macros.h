// SPDX-License-Identifier: Apache-2.0
// RETURN_IF_ERROR and ASSIGN_OR_RETURN: the only two macros of weir.
#ifndef WEIR_BASE_STATUS_MACROS_H_
#define WEIR_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define WEIR_CONCAT_INNER_(a, b) a##b
#define WEIR_CONCAT_(a, b) WEIR_CONCAT_INNER_(a, b)

#define RETURN_IF_ERROR(expression)                           \
  do {                                                        \
    if (absl::Status status_ = (expression); !status_.ok()) { \
      return status_;                                         \
    }                                                         \
  } while (false)

#define ASSIGN_OR_RETURN(target, expression) \
  WEIR_ASSIGN_OR_RETURN_(WEIR_CONCAT_(status_or_, __LINE__), target, expression)

#define WEIR_ASSIGN_OR_RETURN_(temporary, target, expression) \
  auto temporary = (expression);                              \
  if (!temporary.ok()) return std::move(temporary).status();  \
  target = std::move(temporary).value()

#endif  // WEIR_BASE_STATUS_MACROS_H_
