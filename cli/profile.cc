// SPDX-License-Identifier: Apache-2.0
// Measurements into a device profile.
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "calibrate/device_profile.h"
#include "calibrate/fit/import.h"
#include "cli/commands.h"
#include "cli/messages.h"

namespace weir {
namespace {

absl::StatusOr<Import> Imported(const Flags& flags) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.name));
  ASSIGN_OR_RETURN(const DeviceProfile start,
                   LoadDeviceProfile(flags.profile.device));
  return ImportMeasurements(
      flags.name, text, start,
      flags.profile.source.empty() ? flags.name : flags.profile.source);
}

}  // namespace

int RunProfileImport(const Flags& flags) {
  const absl::StatusOr<Import> import = Imported(flags);
  if (!import.ok()) return PrintError(import.status(), flags.output);
  const absl::Status written =
      WriteFile(flags.profile.out, PrintTextProto(import->profile));
  if (!written.ok()) return PrintError(written, flags.output);
  const absl::Status printed = PrintResult(import->report);
  if (!printed.ok()) return PrintError(printed, flags.output);
  PrintNote(absl::StrCat("wrote ", flags.profile.out), flags.output);
  return kExitOk;
}

}  // namespace weir
