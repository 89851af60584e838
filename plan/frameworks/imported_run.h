// SPDX-License-Identifier: Apache-2.0
// A training run that was read from files of a framework.
#ifndef WEIR_PLAN_FRAMEWORKS_IMPORTED_RUN_H_
#define WEIR_PLAN_FRAMEWORKS_IMPORTED_RUN_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plan/frameworks/import_report.h"
#include "scenarios/scenario.pb.h"

namespace weir::plan {

struct ImportedRun {
  // Every field that the framework determines is set, if necessary to the
  // framework's default, so that it does not depend on weir's defaults. Cluster
  // and, unless the file states it, parallelism.data are not set. Without a
  // description of the model, neither model nor transformer is set.
  Scenario scenario;
  ImportReport report;
  uint32_t num_gpus = 0;  // of the run; 0: the file does not tell
};

struct ImportContext {
  uint32_t num_gpus = 0;           // of the cluster; 0: unknown
  std::set<std::string> left_out;  // keys to ignore
  // What flags replace after the file has been read.
  Scenario overrides = {};

  bool HasModel() const {
    return !overrides.model().empty() || overrides.has_transformer();
  }
};

// All functions return InvalidArgument with all problems, each with line, key,
// value and what was expected.

// Reads arguments of Megatron-LM as on a command line, over any number of
// lines; '#' starts a comment.
absl::StatusOr<ImportedRun> ReadMegatronArguments(const std::string& label,
                                                  absl::string_view text,
                                                  const ImportContext& context);

// Reads a shell script, such as those of sbatch, that starts Megatron-LM.
// Nothing is executed. The nodes are those of Slurm's options.
absl::StatusOr<ImportedRun> ReadSlurmScript(const std::string& label,
                                            absl::string_view text,
                                            const ImportContext& context);

// Reads overrides of a recipe of Megatron-Bridge, or a configuration of NeMo 1:
// YAML, or one "key=value" per line.
absl::StatusOr<ImportedRun> ReadNemoSettings(const std::string& label,
                                             absl::string_view text,
                                             const ImportContext& context);

// Reads a job configuration of torchtitan in TOML. The path of a CSV with a
// schedule is relative to the folder of `label`.
absl::StatusOr<ImportedRun> ReadTorchtitanJob(const std::string& label,
                                              absl::string_view text,
                                              const ImportContext& context);

// Reads a configuration of DeepSpeed in JSON, which describes neither model nor
// tensor and pipeline parallelism: `base` has these, and its other fields stay
// where the file says nothing.
absl::StatusOr<ImportedRun> ReadDeepSpeedConfig(const std::string& label,
                                                absl::string_view text,
                                                const ImportContext& context,
                                                const Scenario& base);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_IMPORTED_RUN_H_
