// SPDX-License-Identifier: Apache-2.0
// The exception that all functions of the library throw.
#ifndef WEIR_ERROR_H_
#define WEIR_ERROR_H_

#include <stdexcept>
#include <string>
#include <vector>

namespace weir::api {

// Parts that a message does not have are empty, or 0.
struct Problem {
  std::string message;  // all parts in one line
  std::string file;     // or preset
  int line = 0;         // from 1
  std::string field;    // "parallelism.pipeline"
  std::string found;
  std::string expected;
};

class Error : public std::runtime_error {
 public:
  enum class Kind {
    kInvalidInput,  // the caller can correct it
    kDeadlock,      // or another negative answer to a valid request
    kResources,     // out of memory
    kInternal,      // a bug in weir
  };

  Error(Kind kind, const std::string& message, std::vector<Problem> problems)
      : std::runtime_error(message),
        kind_(kind),
        problems_(std::move(problems)) {}

  Kind kind() const { return kind_; }
  // All problems of the input, not only the first one.
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  Kind kind_;
  std::vector<Problem> problems_;
};

}  // namespace weir::api

#endif  // WEIR_ERROR_H_
