// SPDX-License-Identifier: Apache-2.0
#include "cli/options/import_options.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "cli/options/add_option.h"
#include "cli/options/flags.h"

namespace weir::cli {

void AddImports(CLI::App* app, ScenarioFlags* flags) {
  ImportFlags* imports = &flags->imports;
  app->option_defaults()->group("Run of a framework (needs --cluster)");
  AddText(app, "--megatron-args", "FILE",
          "read model, layout and training from arguments of Megatron-LM, "
          "such as weir plan --out writes",
          &imports->megatron_args);
  AddText(app, "--sbatch", "FILE",
          "the same from a Slurm script that starts Megatron-LM; nothing is "
          "executed",
          &imports->sbatch);
  AddText(app, "--nemo", "FILE",
          "the same from overrides of Megatron-Bridge or a configuration of "
          "NeMo (YAML, or key=value lines)",
          &imports->nemo);
  AddText(app, "--torchtitan", "FILE",
          "the same from a job configuration of torchtitan (TOML)",
          &imports->torchtitan);
  AddText(app, "--deepspeed", "FILE",
          "batch, precision and ZeRO from a configuration of DeepSpeed (JSON); "
          "the model and the layout come from another option or the scenario",
          &imports->deepspeed);
  AddOption(
      app, "--leave-out", "KEY,...",
      "ignore these settings of the file, for those that weir refuses",
      [](const std::string& text) -> absl::StatusOr<std::vector<std::string>> {
        return std::vector<std::string>(
            absl::StrSplit(text, ',', absl::SkipWhitespace()));
      },
      &imports->left_out)
      ->join(',');
}

}  // namespace weir::cli
