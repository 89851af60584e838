// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json_text.h"
#include "base/version.h"
#include "cli/weir_calibrate/calibrate_commands.h"

namespace weir::cli {
namespace {

std::string Text(const std::vector<calibrate::MachineFinding>& findings) {
  std::string text = absl::StrFormat("%-9s %s (git %s)\n", "weir",
                                     WeirVersion(), GitRevision());
  for (const calibrate::MachineFinding& finding : findings) {
    absl::StrAppendFormat(&text, "%-9s %s\n", finding.name,
                          finding.found.empty()
                              ? absl::StrCat("not found: ", finding.advice)
                              : finding.found);
  }
  return text;
}

std::string Json(const std::vector<calibrate::MachineFinding>& findings,
                 bool usable) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const calibrate::MachineFinding& finding : findings) {
    nlohmann::ordered_json entry = {{"name", finding.name},
                                    {"found", finding.found},
                                    {"required", finding.required}};
    if (finding.found.empty()) entry["advice"] = finding.advice;
    list.push_back(std::move(entry));
  }
  const nlohmann::ordered_json answer = {
      {"tool", "weir-calibrate"},
      {"version", std::string(WeirVersion())},
      {"command", "doctor"},
      {"config", nlohmann::ordered_json::object()},
      {"result", {{"usable", usable}, {"findings", std::move(list)}}},
      {"warnings", nlohmann::ordered_json::array()}};
  return DumpJson(answer, 2);
}

}  // namespace

int RunDoctor(const DoctorFlags& flags, const Factories& factories) {
  const std::vector<calibrate::MachineFinding> findings =
      factories.find(flags.device);
  bool usable = true;
  for (const calibrate::MachineFinding& finding : findings) {
    if (finding.required && finding.found.empty()) usable = false;
  }
  const ExitCode printed =
      PrintAnswer(flags.json ? Json(findings, usable) : Text(findings));
  if (printed != kExitOk) return printed;
  return usable ? kExitOk : kExitMissing;
}

}  // namespace weir::cli
