// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/generate_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/csv.h"
#include "base/text.h"

namespace weir::fuzz {
namespace {

std::string ToLine(const std::vector<std::string>& fields) {
  return absl::StrJoin(fields, ",", [](std::string* out, const auto& field) {
    out->append(CsvField(field));
  });
}

// Generates text that CsvField preserves, which has no control characters.
std::string Cell(Choices* choices) { return WithoutControls(choices->Text()); }

const char* const kColumns[] = {"model", "tp",   "pp",       "dp",
                                "mbs",   "gbs",  "seconds",  "schedule",
                                "gpus",  "note", "memory_gb"};

// Returns a time in the given unit, as a program prints it.
std::string Seconds(double seconds, double unit) {
  return absl::StrCat(seconds / unit);
}

}  // namespace

std::string GeneratedTable::ToCsv(Choices* choices) const {
  const char* end = choices->OneIn(4) ? "\r\n" : "\n";
  std::string text = choices->OneIn(8) ? "\xef\xbb\xbf" : "";
  absl::StrAppend(&text, ToLine(header), end);
  for (const auto& row : rows) {
    if (choices->OneIn(16)) text += end;
    absl::StrAppend(&text, ToLine(row), end);
  }
  return text;
}

GeneratedTable GenerateTable(Choices* choices) {
  GeneratedTable table;
  const int num_columns = choices->Int(2, 6);
  for (int i = 0; i < num_columns; ++i) {
    table.header.push_back(absl::StrCat("c", i, Cell(choices)));
  }
  for (int left = choices->Int(0, 8); left > 0; --left) {
    auto& row = table.rows.emplace_back();
    for (int i = 0; i < num_columns; ++i) row.push_back(Cell(choices));
    row[0] += "x";  // empty lines are skipped
  }
  return table;
}

MeasuredRuns GenerateMeasuredRuns(Choices* choices) {
  MeasuredRuns runs;
  for (const char* name : kColumns) {
    if (choices->OneIn(3)) continue;
    runs.table.header.emplace_back(name);
    if (!choices->OneIn(3)) continue;
    MeasuredColumns::Column* column = runs.columns.add_columns();
    column->set_from(name);
    column->set_to(absl::StrCat(name, "_of_weir"));
    if (choices->OneIn(2)) column->set_scale(choices->LogReal(1e-9, 1e9));
    if (choices->OneIn(3)) column->set_pattern("([0-9]+)");
    if (choices->OneIn(3)) (*column->mutable_values())["1"] = "one";
  }
  if (runs.table.header.empty()) runs.table.header = {"tp"};
  runs.table.header.emplace_back("key");
  for (int left = choices->Int(0, 8); left > 0; --left) {
    auto& row = runs.table.rows.emplace_back();
    for (size_t i = 0; i + 1 < runs.table.header.size(); ++i) {
      row.push_back(choices->OneIn(4) ? choices->Text()
                                      : absl::StrCat(choices->Int(0, 64)));
    }
    row.emplace_back("k");
  }
  if (choices->OneIn(3)) {
    MeasuredColumns::Condition* where = runs.columns.add_where();
    where->set_column("key");
    where->add_values(choices->OneIn(2) ? "K" : "other");
  }
  if (choices->OneIn(12)) runs.columns.add_ignore("missing");
  if (choices->OneIn(12)) {
    runs.columns.add_columns()->set_from(choices->Text());
  }
  return runs;
}

std::string GenerateTimelineCsv(Choices* choices) {
  static constexpr std::pair<const char*, double> kUnits[] = {
      {"seconds", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  const std::pair<const char*, double>& chosen = kUnits[choices->Int(0, 3)];
  const char* suffix = chosen.first;
  // Clang 14 cannot capture structured bindings.
  const double unit = chosen.second;
  const bool with_bytes = choices->OneIn(2);
  std::string text = absl::StrCat("rank,action,start_", suffix, ",end_", suffix,
                                  with_bytes ? ",bytes\n" : "\n");
  const int num_ranks = choices->Int(1, 4), m = choices->Int(1, 4);
  const double origin = choices->OneIn(2) ? 0 : choices->Real(-10, 1e6);
  const auto add = [&](int rank, const std::string& action) {
    const double start = origin + choices->Real(0, 10);
    absl::StrAppend(&text, rank, ",", action, ",", Seconds(start, unit), ",",
                    Seconds(start + choices->Real(0, 2), unit));
    if (with_bytes) {
      absl::StrAppend(&text, ",");
      if (choices->OneIn(2)) absl::StrAppend(&text, choices->Int(0, 1 << 30));
    }
    absl::StrAppend(&text, "\n");
  };
  for (int rank = 0; rank < num_ranks; ++rank) {
    for (int k = 0; k < m; ++k) {
      add(rank, absl::StrCat(rank, "F", k));
      if (rank + 1 < num_ranks && choices->OneIn(2)) {
        add(rank, absl::StrCat(rank, "SEND_F", k));
        add(rank + 1, absl::StrCat(rank + 1, "RECV_F", k));
      }
      const bool split = choices->OneIn(2);
      add(rank, absl::StrCat(rank, split ? "I" : "B", k));
      if (split) add(rank, absl::StrCat(rank, "W", k));
    }
    if (choices->OneIn(2)) add(rank, absl::StrCat(rank, "REDUCE_GRAD"));
    if (choices->OneIn(2)) add(rank, absl::StrCat(rank, " step u0"));
  }
  return text;
}

}  // namespace weir::fuzz
