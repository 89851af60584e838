// SPDX-License-Identifier: Apache-2.0
// Shows, compares and imports device profiles.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/assets.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/output_file.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/textproto.h"
#include "calibrate/describe/describe_profile.h"
#include "calibrate/fit/import.h"
#include "calibrate/profile/device_profile.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/commented_textproto.h"
#include "cli/weir/envelope.h"

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;

bool WantsJson(const Flags& flags) {
  return flags.output.format == OutputFlags::Format::kJson;
}

std::string Framed(const Flags& flags, const Json& config, const Json& result) {
  const auto text = [](const Json& json) { return DumpJson(json); };
  return Envelope(flags.command, text(config), text(result));
}

int PrintProfile(const absl::StatusOr<std::string>& text,
                 const OutputFlags& output) {
  if (!text.ok()) return PrintError(text.status(), output);
  const absl::Status printed = PrintResult(*text);
  return printed.ok() ? kExitOk : PrintError(printed, output);
}

absl::StatusOr<std::string> Shown(const Flags& flags) {
  ASSIGN_OR_RETURN(const DeviceProfile profile,
                   calibrate::LoadDeviceProfile(flags.name));
  if (flags.output.textproto) return CommentedTextProto(profile);
  return WantsJson(flags) ? Framed(flags, {{"profile", flags.name}},
                                   calibrate::ProfileJson(profile))
                          : calibrate::DescribeProfile(profile);
}

absl::StatusOr<calibrate::ProfileDifference> Compared(const Flags& flags) {
  ASSIGN_OR_RETURN(const DeviceProfile a,
                   calibrate::LoadDeviceProfile(flags.name));
  ASSIGN_OR_RETURN(const DeviceProfile b,
                   calibrate::LoadDeviceProfile(flags.profile.other));
  return calibrate::DiffProfiles(a, b);
}

absl::StatusOr<calibrate::Import> Imported(const Flags& flags) {
  RETURN_IF_ERROR(CheckOutput(flags.profile.out, ReplaceOf(flags.output)));
  const ProfileFlags& given = flags.profile;
  calibrate::Import import;
  ASSIGN_OR_RETURN(import.profile, calibrate::LoadDeviceProfile(given.start));
  if (given.device.name.empty() &&
      (!given.device.peaks.empty() || given.device.memory_bytes > 0 ||
       given.device.memory_bytes_per_second > 0 ||
       given.device.num_multiprocessors > 0 ||
       given.device.link_bytes_per_second > 0)) {
    return absl::InvalidArgumentError(
        "--peak, --bandwidth, --memory, --multiprocessors and --links "
        "describe a new device, expected --device NAME");
  }
  if (!given.device.name.empty()) {
    ASSIGN_OR_RETURN(import.profile,
                     calibrate::ProfileOf(given.device, import.profile));
  }
  std::vector<std::string> files = {flags.name};
  files.insert(files.end(), given.also.begin(), given.also.end());
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
    ASSIGN_OR_RETURN(calibrate::Import one,
                     calibrate::ImportMeasurements(
                         file, text, import.profile,
                         given.source.empty() ? file : given.source));
    import.profile = std::move(one.profile);
    if (files.size() > 1) {
      absl::StrAppend(&import.report, EscapeLine(file), "\n");
    }
    absl::StrAppend(&import.report, one.report);
  }
  if (!import.profile.gemms_of().empty()) {
    absl::StrAppend(&import.report,
                    "warning: no bf16 or fp16 GEMMs were imported: those of ",
                    EscapeLine(import.profile.name()), " are assumed from the ",
                    EscapeLine(import.profile.gemms_of()), "\n");
  }
  return import;
}

}  // namespace

int RunProfileList(const Flags& flags) {
  return PrintProfile(
      absl::StrCat(absl::StrJoin(ListAssets("calibrate/profile/presets"), "\n"),
                   "\n"),
      flags.output);
}

int RunProfileShow(const Flags& flags) {
  return PrintProfile(Shown(flags), flags.output);
}

int RunProfileDiff(const Flags& flags) {
  const absl::StatusOr<calibrate::ProfileDifference> difference =
      Compared(flags);
  if (!difference.ok()) return PrintError(difference.status(), flags.output);
  const int printed = PrintProfile(
      WantsJson(flags)
          ? Framed(flags, {{"a", flags.name}, {"b", flags.profile.other}},
                   calibrate::DifferenceJson(*difference))
          : calibrate::DescribeDifference(flags.name, flags.profile.other,
                                          *difference),
      flags.output);
  if (printed != kExitOk) return printed;
  const double tolerance = flags.profile.tolerance;
  return tolerance > 0 && difference->Largest() > tolerance ? kExitNegative
                                                            : kExitOk;
}

int RunProfileImport(const Flags& flags) {
  const absl::StatusOr<calibrate::Import> import = Imported(flags);
  if (!import.ok()) return PrintError(import.status(), flags.output);
  const absl::Status written =
      WriteOutput(flags.profile.out, MarkText(PrintTextProto(import->profile)),
                  ReplaceOf(flags.output));
  if (!written.ok()) return PrintError(written, flags.output);
  const absl::Status printed = PrintResult(import->report);
  if (!printed.ok()) return PrintError(printed, flags.output);
  PrintNote(absl::StrCat("wrote ", flags.profile.out), flags.output);
  return kExitOk;
}

}  // namespace weir::cli
