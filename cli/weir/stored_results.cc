// SPDX-License-Identifier: Apache-2.0
#include "cli/weir/stored_results.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "results/store.h"
#include "results/summary.h"
#include "schedules/own_name.h"

namespace weir::cli {

absl::StatusOr<std::vector<Result>> LoadSelected(const std::string& path,
                                                 const std::string& name) {
  ASSIGN_OR_RETURN(Results results, results::LoadResults(path));
  std::vector<Result> selected;
  std::vector<std::string> names;
  for (Result& result : *results.mutable_results()) {
    // Older results may have a name that is now an alias.
    result.set_schedule(schedules::OwnScheduleName(result.schedule()));
    names.push_back(results::RowName(result));
    if (name.empty() || schedules::OwnScheduleName(name) == result.schedule() ||
        name == result.name() || name == names.back()) {
      selected.push_back(std::move(result));
    }
  }
  if (!selected.empty()) return selected;
  Problems problems(path);
  if (names.empty()) {
    problems.Add("", "contains no result");
  } else {
    problems.Add("--result", absl::StrCat("is ", name, ", expected ",
                                          absl::StrJoin(names, ", ")));
  }
  return problems.ToStatus();
}

absl::StatusOr<Result> LoadOne(const std::string& path,
                               const std::string& name) {
  ASSIGN_OR_RETURN(std::vector<Result> selected, LoadSelected(path, name));
  if (selected.size() == 1) return std::move(selected.front());
  std::vector<std::string> names;
  for (const Result& result : selected)
    names.push_back(results::RowName(result));
  Problems problems(path);
  problems.Add("", absl::StrCat("holds ", selected.size(),
                                " results, expected --result with one of ",
                                absl::StrJoin(names, ", ")));
  return problems.ToStatus();
}

}  // namespace weir::cli
