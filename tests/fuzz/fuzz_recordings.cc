// SPDX-License-Identifier: Apache-2.0
// Traces of several files, whose clocks differ: passes keep their durations,
// and the true times are found where they follow from the trace. Damaged files
// give an error or a valid result.
#include <cmath>
#include <vector>

#include "results/import/import_trace.h"
#include "results/import/run_result.h"
#include "results/validate.h"
#include "tests/fuzz/generate_recording.h"
#include "tests/fuzz/target.h"

namespace weir::fuzz {
namespace {

enum class RecordingFormat { kKineto, kNsight };

std::vector<std::string> FilesOf(RecordingFormat format,
                                 const Recording& recording,
                                 const ClockOffsets& offsets, bool variant) {
  return format == RecordingFormat::kKineto
             ? KinetoFiles(recording, offsets, variant)
             : NsightFiles(recording, offsets, variant);
}

absl::StatusOr<results::RecordedRun> Import(
    const std::vector<std::string>& files) {
  std::vector<results::TraceText> texts;
  for (const std::string& file : files) texts.push_back({"fuzz", file});
  return results::ImportTraceTexts(texts);
}

void RequireSameRun(const results::RecordedRun& run,
                    const results::RecordedRun& truth, bool also_starts) {
  constexpr double kTolerance = 1e-9;
  REQUIRE(run.operations.size() == truth.operations.size());
  for (size_t i = 0; i < run.operations.size(); ++i) {
    const results::RecordedOperation& o = run.operations[i];
    const results::RecordedOperation& same = truth.operations[i];
    REQUIRE(o.kind == same.kind && o.stage == same.stage);
    REQUIRE(std::abs(o.seconds() - same.seconds()) < kTolerance);
    REQUIRE(!also_starts ||
            std::abs(o.start_seconds - same.start_seconds) < kTolerance);
  }
}

void RequireValidResult(const results::RecordedRun& run) {
  const auto steps = results::StepsOf(run);
  REQUIRE(!steps.empty());
  const Result result = results::ResultOfStep(run, results::MedianStep(steps));
  REQUIRE_OK(results::ValidateResult("fuzz", result));
}

}  // namespace

bool RunInput(Choices* choices) {
  const Recording recording = DrawRecording(choices);
  const auto format =
      choices->OneIn(2) ? RecordingFormat::kKineto : RecordingFormat::kNsight;
  // Passes of Nsight's ranges without kernels are launches.
  const bool variant = choices->OneIn(2);
  const ClockOffsets none(recording.workers.size());
  const auto truth = Import(FilesOf(format, recording, none, variant));
  REQUIRE_OK(truth);
  REQUIRE(truth->moved_clocks.empty());
  RequireValidResult(*truth);

  const ClockOffsets offsets = DrawOffsets(recording, choices);
  std::vector<std::string> files = FilesOf(format, recording, offsets, variant);
  if (choices->OneIn(4)) {
    if (format == RecordingFormat::kNsight && choices->OneIn(2)) {
      files = NsightFiles(recording, offsets, variant, choices);
    } else {
      std::string& file =
          files[choices->Int(0, static_cast<int>(files.size()) - 1)];
      file = Damage(std::move(file), choices);
    }
    const auto run = Import(files);
    if (run.ok()) RequireValidResult(*run);
    return run.ok();
  }
  const auto run = Import(files);
  REQUIRE_OK(run);
  RequireValidResult(*run);
  RequireSameRun(*run, *truth, recording.is_symmetric);
  return true;
}

}  // namespace weir::fuzz
