// SPDX-License-Identifier: Apache-2.0
#include "schedules/lint/lint_text.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "base/text.h"

namespace weir::schedules {
namespace {

using Json = nlohmann::ordered_json;

absl::string_view Word(Finding::Severity severity) {
  return severity == Finding::Severity::kError ? "error" : "note";
}

std::string Counted(int count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

std::string Where(const LintReport& report, const Finding& finding) {
  std::string where;
  if (finding.line > 0) {
    where = absl::StrCat(EscapeLine(report.name), ":", finding.line, ":",
                         finding.column, ": ");
  }
  if (finding.place.exists()) {
    absl::StrAppend(&where, "rank ", finding.place.rank, " position ",
                    finding.place.position, ": ");
  }
  return where;
}

Json FindingJson(const Finding& finding) {
  Json json = {{"severity", std::string(Word(finding.severity))},
               {"rule", finding.rule}};
  if (finding.place.exists()) {
    json["rank"] = finding.place.rank;
    json["position"] = finding.place.position;
  }
  if (finding.line > 0) {
    json["line"] = finding.line;
    json["column"] = finding.column;
  }
  json["message"] = finding.message;
  if (!finding.advice.empty()) json["advice"] = finding.advice;
  if (!finding.cycle.empty()) json["cycle"] = finding.cycle;
  if (!finding.reordering.empty()) json["reordering"] = finding.reordering;
  return json;
}

}  // namespace

std::string LintText(const LintReport& report) {
  std::string text = absl::StrCat(
      EscapeLine(report.name), ": ", Counted(report.num_ranks, "rank"), ", ",
      Counted(report.num_stages, "stage"), ", ", report.num_microbatches,
      report.num_microbatches == 1 ? " microbatch: " : " microbatches: ",
      Counted(report.num_errors(), "error"), ", ",
      Counted(report.num_notes(), "note"), "\n");
  for (const Finding& finding : report.findings) {
    absl::StrAppend(&text, "\n", Word(finding.severity), " ", finding.rule,
                    ": ", Where(report, finding), finding.message, "\n");
    for (const std::string& wait : finding.cycle) {
      absl::StrAppend(&text, "  ", wait, "\n");
    }
    if (!finding.reordering.empty()) {
      absl::StrAppend(&text, "  fix: ", finding.reordering, "\n");
    }
    if (!finding.advice.empty()) {
      absl::StrAppend(&text, "  advice: ", finding.advice, "\n");
    }
  }
  return text;
}

std::string LintJson(const LintReport& report) {
  Json findings = Json::array();
  for (const Finding& finding : report.findings) {
    findings.push_back(FindingJson(finding));
  }
  const Json json = {{"schedule", report.name},
                     {"num_ranks", report.num_ranks},
                     {"num_stages", report.num_stages},
                     {"num_microbatches", report.num_microbatches},
                     {"errors", report.num_errors()},
                     {"notes", report.num_notes()},
                     {"findings", std::move(findings)}};
  constexpr int kIndent = 2;
  return DumpJson(json, kIndent);
}

}  // namespace weir::schedules
