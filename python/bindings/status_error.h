// SPDX-License-Identifier: Apache-2.0
// The exception that carries a status to Python.
#ifndef WEIR_PYTHON_BINDINGS_STATUS_ERROR_H_
#define WEIR_PYTHON_BINDINGS_STATUS_ERROR_H_

#include <exception>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace weir::python {

// Becomes weir._core.StatusError(exit_code, message) in Python.
class StatusError : public std::exception {
 public:
  explicit StatusError(absl::Status status)
      : status_(std::move(status)), text_(status_.message()) {}
  const char* what() const noexcept override { return text_.c_str(); }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status status_;
  std::string text_;
};

}  // namespace weir::python

#endif  // WEIR_PYTHON_BINDINGS_STATUS_ERROR_H_
