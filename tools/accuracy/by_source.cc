// SPDX-License-Identifier: Apache-2.0
// Prints the tables of errors by source and device from the rows of every set,
// and those of memory:
//
//   accuracy_by_source SETS.csv FOLDER > FOLDER/by_source.md
//
// FOLDER holds SET.csv as written by "weir validate --format csv".
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/accuracy/memory_errors.h"
#include "tools/accuracy/published_sets.h"
#include "tools/accuracy/source_errors.h"

namespace weir {
namespace {

absl::StatusOr<std::string> Table(const std::string& sets_path,
                                  const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<PublishedSet> sets,
                   LoadPublishedSets(sets_path, folder));
  ASSIGN_OR_RETURN(const std::vector<SourceErrors> sources,
                   ErrorsBySource(sets, folder));
  ASSIGN_OR_RETURN(const std::vector<MemorySource> memory,
                   MemorySources(sets, folder));
  ASSIGN_OR_RETURN(const std::vector<SourceVerdicts> verdicts,
                   VerdictsBySource(sets, folder));
  return absl::StrCat(SourceErrorsTable(sources), "\n",
                      MemoryTables(memory, verdicts));
}

int Main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s SETS.csv FOLDER\n", argv[0]);
    return 2;
  }
  const absl::StatusOr<std::string> table = Table(argv[1], argv[2]);
  if (!table.ok()) {
    std::fprintf(stderr, "error: %s\n",
                 std::string(table.status().message()).c_str());
    return 2;
  }
  std::fwrite(table->data(), 1, table->size(), stdout);
  return 0;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) { return weir::Main(argc, argv); }
