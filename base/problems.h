// SPDX-License-Identifier: Apache-2.0
// Collects all problems of an input, so that a user sees them at once:
//
//   Problems problems("cluster.textproto");
//   if (!(bandwidth > 0)) problems.Add("nodes[0].nics[1].bytes_per_second",
//                                      "is 0, expected a number above 0");
//   RETURN_IF_ERROR(problems.ToStatus());
#ifndef WEIR_BASE_PROBLEMS_H_
#define WEIR_BASE_PROBLEMS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace weir {

class Problems {
 public:
  // `where` is the file (or flag) with which every message begins.
  explicit Problems(absl::string_view where) : where_(where) {}

  // Adds "<where>: <field> <what>", or "<where>: <what>" if `field` is empty.
  void Add(absl::string_view field, absl::string_view what);

  // Adds "<where>:<line>: <field> <what>". `line` counts from 1; 0 means that
  // there is none.
  void AddAt(int line, absl::string_view field, absl::string_view what);

  // Adds a problem unless low <= value <= high. NaN is outside every range.
  void CheckRange(absl::string_view field, double value, double low,
                  double high);

  // Adds a problem unless value is finite and > 0.
  void CheckPositive(absl::string_view field, double value);

  bool empty() const { return messages_.empty(); }

  // Returns OK if there is no problem, else InvalidArgument with one line per
  // problem.
  absl::Status ToStatus() const;

 private:
  void AddLine(std::string message);

  std::string where_;
  std::vector<std::string> messages_;
};

}  // namespace weir

#endif  // WEIR_BASE_PROBLEMS_H_
