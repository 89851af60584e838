// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "plan/frameworks/imported_run.h"
#include "plan/frameworks/megatron_argument_table.h"
#include "plan/frameworks/megatron_reader.h"

namespace weir::plan {
namespace {

constexpr uint32_t kMaxResource = 1000000;

// Options of sbatch, srun and torchrun that tell how many processes there are.
struct Resources {
  uint32_t nodes = 0, tasks = 0, tasks_per_node = 0;
  uint32_t gpus = 0, gpus_per_node = 0, processes_per_node = 0;
  int nodes_line = 0;

  uint32_t PerNode() const {
    if (processes_per_node > 0) return processes_per_node;
    if (gpus_per_node > 0) return gpus_per_node;
    if (gpus > 0 && nodes > 0) return gpus / nodes;
    return tasks_per_node;
  }
};

uint32_t* FieldOf(absl::string_view option, Resources* resources) {
  static const auto& fields =
      *new std::map<absl::string_view, uint32_t Resources::*>{
          {"--nodes", &Resources::nodes},
          {"-N", &Resources::nodes},
          {"--nnodes", &Resources::nodes},
          {"--ntasks", &Resources::tasks},
          {"-n", &Resources::tasks},
          {"--ntasks-per-node", &Resources::tasks_per_node},
          {"--gpus", &Resources::gpus},
          {"-G", &Resources::gpus},
          {"--gpus-per-node", &Resources::gpus_per_node},
          {"--gres", &Resources::gpus_per_node},
          {"--nproc_per_node", &Resources::processes_per_node},
          {"--nproc-per-node", &Resources::processes_per_node},
      };
  const auto found = fields.find(option);
  return found == fields.end() ? nullptr : &(resources->*found->second);
}

// "8", "h100:8" or "gpu:h100:8".
bool ParseNumber(absl::string_view text, uint32_t* number) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  return absl::SimpleAtoi(parts.back(), number) && *number > 0 &&
         *number <= kMaxResource;
}

// Reads options with their values from `words`, up to the first script of
// Python. Values that the shell would compute are left out.
void TakeResources(const std::vector<ShellWord>& words, Resources* resources) {
  for (size_t i = 0; i < words.size(); ++i) {
    absl::string_view text = words[i].text;
    if (absl::EndsWith(text, ".py")) return;
    const size_t equals = text.find('=');
    const absl::string_view option = text.substr(0, equals);
    uint32_t* field = FieldOf(option, resources);
    if (field == nullptr) continue;
    if (equals != absl::string_view::npos) {
      text = text.substr(equals + 1);
    } else if (i + 1 < words.size()) {
      text = words[++i].text;
    }
    uint32_t number = 0;
    if (!ParseNumber(text, &number)) continue;
    *field = number;
    if (field == &resources->nodes) resources->nodes_line = words[i].line;
  }
}

// Returns the number of arguments that weir reads.
size_t CountRead(const ShellCommand& command) {
  return std::count_if(command.begin(), command.end(), [](const auto& word) {
    absl::string_view name = word.text;
    if (!absl::ConsumePrefix(&name, "--")) return false;
    name = name.substr(0, name.find('='));
    return MegatronArgumentTable().contains(std::string(name));
  });
}

// Returns the command with the most arguments of Megatron-LM; nullptr if no
// command has any.
const ShellCommand* TrainingCommand(const ShellScript& script) {
  const ShellCommand* best = nullptr;
  size_t most = 0;
  for (const ShellCommand& command : script.commands) {
    const size_t count = CountRead(command);
    if (count > most) {
      best = &command;
      most = count;
    }
  }
  return best;
}

// Returns the words after the name of the Python script; all words if there is
// none.
std::vector<ShellWord> ArgumentsOf(const ShellCommand& command) {
  const auto script = std::find_if(
      command.begin(), command.end(),
      [](const ShellWord& word) { return absl::EndsWith(word.text, ".py"); });
  return {script == command.end() ? command.begin() : script + 1,
          command.end()};
}

// Returns the variables that Slurm would set.
std::map<std::string, std::string> SlurmVariables(const Resources& resources) {
  std::map<std::string, std::string> variables;
  const auto set = [&](const char* name, uint32_t value) {
    if (value > 0) variables[name] = absl::StrCat(value);
  };
  set("SLURM_NNODES", resources.nodes);
  set("SLURM_JOB_NUM_NODES", resources.nodes);
  set("SLURM_NTASKS_PER_NODE", resources.tasks_per_node);
  set("SLURM_GPUS_PER_NODE", resources.gpus_per_node);
  set("SLURM_GPUS_ON_NODE", resources.gpus_per_node);
  set("SLURM_NTASKS", resources.tasks > 0
                          ? resources.tasks
                          : resources.nodes * resources.tasks_per_node);
  return variables;
}

// Refuses variables that change the speed of kernels in ways that are not
// simulated.
void CheckVariables(const std::map<std::string, std::string>& variables,
                    const std::set<std::string>& left_out, Problems* problems) {
  for (const char* name : {"CUDA_LAUNCH_BLOCKING", "NCCL_P2P_DISABLE",
                           "NCCL_IB_DISABLE", "NCCL_SHM_DISABLE"}) {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second == "0" ||
        found->second.empty() || left_out.contains(name)) {
      continue;
    }
    problems->Add(name, absl::StrCat("is ", found->second,
                                     ", which is not simulated: remove it, or "
                                     "predict the run without it by "
                                     "--leave-out ",
                                     name));
  }
}

}  // namespace

absl::StatusOr<ImportedRun> ReadSlurmScript(const std::string& label,
                                            absl::string_view text,
                                            const ImportContext& context) {
  // The directives determine variables that the commands use.
  ASSIGN_OR_RETURN(ShellScript script, ReadShellScript(label, text, {}));
  Resources resources;
  TakeResources(script.directives, &resources);
  ASSIGN_OR_RETURN(script,
                   ReadShellScript(label, text, SlurmVariables(resources)));
  Problems problems(label);
  const ShellCommand* command = TrainingCommand(script);
  if (command == nullptr) {
    problems.Add("",
                 "has no command with arguments of Megatron-LM "
                 "(configurations of NeMo, torchtitan and DeepSpeed are read "
                 "by --nemo, --torchtitan and --deepspeed)");
    return problems.ToStatus();
  }
  for (const ShellCommand& other : script.commands) {
    // A launcher whose command is a quoted word.
    if (!other.empty() && (absl::EndsWith(other[0].text, "srun") ||
                           absl::EndsWith(other[0].text, "torchrun"))) {
      TakeResources(other, &resources);
    }
  }
  TakeResources(*command, &resources);
  CheckVariables(script.variables, context.left_out, &problems);
  RETURN_IF_ERROR(problems.ToStatus());
  ImportContext known = context;
  const uint32_t num_gpus = resources.nodes * resources.PerNode();
  if (num_gpus > 0) known.num_gpus = num_gpus;
  ASSIGN_OR_RETURN(ImportedRun run,
                   ReadMegatronWords(label, ArgumentsOf(*command), known));
  run.num_gpus = num_gpus;
  if (resources.nodes > 0) {
    run.scenario.set_num_nodes(resources.nodes);
    run.report.used.push_back(
        {"nodes", absl::StrCat(resources.nodes), resources.nodes_line, true});
  }
  if (script.has_conditions) {
    run.report.notes.push_back(
        "the last assignment of each variable counts, since conditions and "
        "loops "
        "of the script are not evaluated");
  }
  return run;
}

}  // namespace weir::plan
