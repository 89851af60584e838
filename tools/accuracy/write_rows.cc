// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/write_rows.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files.h"

namespace weir {

absl::Status WriteRows(const std::string& path,
                       absl::Span<const MeasuredSeconds> rows,
                       absl::Span<const double> predicted_seconds) {
  std::string text =
      "line,row,quantity,measured,predicted,error,fits_memory,reason\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    const double predicted = predicted_seconds[i];
    absl::StrAppend(&text, rows[i].line, ",\"", rows[i].row, "\",seconds,",
                    absl::StrFormat("%.6g,%.6g,%.5f", rows[i].seconds,
                                    predicted, predicted / rows[i].seconds - 1),
                    ",true,\n");
  }
  return WriteFile(path, text);
}

}  // namespace weir
