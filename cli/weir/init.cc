// SPDX-License-Identifier: Apache-2.0
// "weir init": five questions, then files to start from.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/assets.h"
#include "base/output_file.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/options/messages.h"
#include "cli/options/output_files.h"
#include "cli/weir/commands.h"
#include "cli/weir/commented_textproto.h"
#include "models/model.h"
#include "plan/frameworks/absolute_path.h"
#include "scenarios/cluster/cluster.h"
#include "scenarios/scenario.h"
#include "sim/fast/fast_simulator.h"
#include "sim/report/memory_interval.h"
#include "sim/simulate.h"

namespace weir::cli {
namespace {

constexpr char kDefaultModel[] = "llama-3-70b";
constexpr char kDefaultCluster[] = "dgx-h100";
constexpr uint32_t kDefaultGpus = 64;
constexpr uint32_t kTokensPerBatch = 1 << 20;

bool CanAsk() { return isatty(STDIN_FILENO) == 1 && IsStderrTerminal(); }

// Asks on a terminal until `take` accepts the answer; an empty answer or the
// end of the input means `standard`.
absl::Status Ask(const std::string& question, const std::string& standard,
                 const OutputFlags& output,
                 const std::function<absl::Status(const std::string&)>& take) {
  if (!CanAsk()) return take(standard);
  while (true) {
    std::fprintf(stderr, "%s [%s]: ", question.c_str(), standard.c_str());
    std::string answer;
    const bool ended = !std::getline(std::cin, answer);
    absl::string_view text = absl::StripAsciiWhitespace(answer);
    absl::Status status = take(text.empty() ? standard : std::string(text));
    if (status.ok() || ended) return status;
    PrintError(status, output);
  }
}

absl::Status TakeNumber(const std::string& text, absl::string_view what,
                        uint32_t* number) {
  if (absl::SimpleAtoi(text, number) && *number > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " is ", EscapeLine(text), ", expected a whole number above 0"));
}

struct Answers {
  Model model;
  Cluster cluster;
  uint32_t num_gpus = 0;
  uint32_t sequence_length = 0;
  uint32_t batch_size = 0;
};

absl::StatusOr<Cluster> ClusterOf(const std::string& name, uint32_t num_gpus) {
  ASSIGN_OR_RETURN(Cluster cluster, scenarios::LoadCluster(name));
  if (cluster.groups_size() != 1) {
    if (static_cast<uint32_t>(scenarios::NumGpus(cluster)) == num_gpus) {
      return cluster;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "--gpus is ", num_gpus, ", expected ", scenarios::NumGpus(cluster),
        ", all GPUs of ", EscapeLine(name)));
  }
  const uint32_t per_node = cluster.groups(0).node().num_gpus();
  if (num_gpus > per_node && num_gpus % per_node != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--gpus is ", num_gpus, ", expected a multiple of ",
                     per_node, ", the GPUs of a node of ", EscapeLine(name)));
  }
  const int num_nodes =
      static_cast<int>(std::max<uint32_t>(num_gpus / per_node, 1));
  return scenarios::LoadCluster(name, num_nodes);
}

// Takes every answer from its flag, or asks.
absl::StatusOr<Answers> Collect(const Flags& flags) {
  const InitFlags& given = flags.init;
  const OutputFlags& output = flags.output;
  Answers answers;
  std::vector<std::string> assumed;
  const auto ask =
      [&](const std::string& flag, const std::string& value,
          const std::string& question, const std::string& standard,
          const std::function<absl::Status(const std::string&)>& take) {
        if (!value.empty()) return take(value);
        if (!CanAsk()) assumed.push_back(absl::StrCat(flag, " ", standard));
        return Ask(question, standard, output, take);
      };
  RETURN_IF_ERROR(ask("--model", given.model,
                      "1/5 model: preset, or path of a config.json",
                      kDefaultModel, [&](const std::string& text) {
                        auto model = models::LoadModel(text);
                        RETURN_IF_ERROR(model.status());
                        answers.model = *std::move(model);
                        return absl::OkStatus();
                      }));
  std::string cluster;
  RETURN_IF_ERROR(ask(
      "--cluster", given.cluster,
      absl::StrCat("2/5 machines: ",
                   absl::StrJoin(ListAssets("scenarios/cluster/presets"), ", "),
                   ", or a file"),
      kDefaultCluster, [&](const std::string& text) {
        cluster = text;
        return scenarios::LoadCluster(text).status();
      }));
  RETURN_IF_ERROR(ask(
      "--gpus", given.num_gpus, "3/5 number of GPUs",
      absl::StrCat(kDefaultGpus), [&](const std::string& text) -> absl::Status {
        RETURN_IF_ERROR(TakeNumber(text, "--gpus", &answers.num_gpus));
        ASSIGN_OR_RETURN(answers.cluster, ClusterOf(cluster, answers.num_gpus));
        return absl::OkStatus();
      }));
  const uint32_t usual =
      std::max(models::DefaultSequenceLength(answers.model), 1u);
  RETURN_IF_ERROR(
      ask("--seq", given.sequence_length, "4/5 sequence length, in tokens",
          absl::StrCat(usual), [&](const std::string& text) {
            return TakeNumber(text, "--seq", &answers.sequence_length);
          }));
  const uint32_t batch =
      std::max(kTokensPerBatch / answers.sequence_length, answers.num_gpus);
  RETURN_IF_ERROR(ask("--gbs", given.batch_size,
                      "5/5 global batch size, in sequences",
                      absl::StrCat(batch), [&](const std::string& text) {
                        return TakeNumber(text, "--gbs", &answers.batch_size);
                      }));
  if (!assumed.empty()) {
    PrintNote(absl::StrCat("assumed, as there is no terminal to ask on: ",
                           absl::StrJoin(assumed, " ")),
              output);
  }
  return answers;
}

Scenario ScenarioOf(const Answers& answers, const std::string& folder,
                    uint32_t tensor, uint32_t pipeline, bool recompute) {
  Scenario scenario;
  scenario.set_name(answers.model.name());
  scenario.set_model(
      plan::AbsoluteIfFile(absl::StrCat(folder, "/model.textproto")));
  scenario.set_cluster(
      plan::AbsoluteIfFile(absl::StrCat(folder, "/cluster.textproto")));
  Parallelism& parallelism = *scenario.mutable_parallelism();
  parallelism.set_tensor(tensor);
  parallelism.set_pipeline(pipeline);
  // The data-parallel size follows from the GPUs of the cluster, or from these.
  if (scenarios::NumGpus(answers.cluster) !=
      static_cast<int>(answers.num_gpus)) {
    parallelism.set_num_gpus(answers.num_gpus);
  }
  parallelism.set_sequence_parallel(tensor > 1);
  Batch& batch = *scenario.mutable_batch();
  batch.set_microbatch_size(1);
  batch.set_global_batch_size(answers.batch_size);
  batch.set_sequence_length(answers.sequence_length);
  scenario.set_schedule("1f1b");
  Training& training = *scenario.mutable_training();
  training.set_precision(MIXED_BF16);
  training.set_optimizer(ADAM);
  training.set_recompute(recompute ? RECOMPUTE_FULL : RECOMPUTE_NONE);
  training.set_flash_attention(true);
  training.set_fp32_gradients(true);
  training.set_distributed_optimizer(true);
  Communication& communication = *scenario.mutable_communication();
  communication.set_transfers(OVERLAPPED);
  communication.set_gradient_reduction(REDUCTION_OVERLAPPED);
  return scenario;
}

struct Layout {
  Scenario scenario;
  std::string text;  // "tp 4, pp 8, dp 2: 19.3 s, 70.1 GiB"
  bool fits = false;
};

std::vector<std::pair<uint32_t, uint32_t>> Shapes(const Answers& answers) {
  const uint32_t per_node =
      std::min(answers.cluster.groups(0).node().num_gpus(), answers.num_gpus);
  const uint32_t layers = answers.model.transformer().num_layers();
  std::vector<std::pair<uint32_t, uint32_t>> shapes;
  for (uint32_t tensor = 1; tensor <= per_node; tensor *= 2) {
    for (uint32_t pipeline = 1; tensor * pipeline <= answers.num_gpus;
         pipeline *= 2) {
      if (answers.num_gpus % (tensor * pipeline) != 0) continue;
      if (layers > 0 && layers % pipeline != 0) continue;
      if (answers.batch_size % (answers.num_gpus / (tensor * pipeline)) != 0) {
        continue;
      }
      shapes.emplace_back(tensor, pipeline);
    }
  }
  std::sort(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first * a.second, a.first) <
           std::pair(b.first * b.second, b.first);
  });
  return shapes;
}

// Returns the layout with the fewest GPUs per replica that fits, without
// recomputation if possible. Requires: the model and cluster files exist.
absl::StatusOr<Layout> ChooseLayout(const Answers& answers,
                                    const std::string& folder) {
  sim::FastSimulator simulator;
  absl::Status last = absl::InvalidArgumentError(absl::StrCat(
      "no layout: --gbs is ", answers.batch_size,
      ", expected a multiple of the number of data-parallel ranks"));
  std::optional<Layout> layout;
  for (const bool recompute : {false, true}) {
    for (const auto& [tensor, pipeline] : Shapes(answers)) {
      Layout next;
      next.scenario = ScenarioOf(answers, folder, tensor, pipeline, recompute);
      const auto resolved =
          scenarios::ResolveScenario("weir init", next.scenario);
      if (!resolved.ok()) {
        last = resolved.status();
        continue;
      }
      const auto run = simulator.Estimate(*resolved);
      if (!run.ok()) {
        last = run.status();
        continue;
      }
      const double most =
          *std::max_element(run->peak_bytes.begin(), run->peak_bytes.end());
      const double capacity = resolved->device.memory_bytes().value();
      const double margin = sim::MemoryMargin(*resolved, capacity,
                                              resolved->placement.num_gpus());
      next.fits = run->fits_memory && most <= (1 - margin) * capacity;
      next.text =
          absl::StrCat("tp ", tensor, ", pp ", pipeline, ", dp ",
                       answers.num_gpus / (tensor * pipeline),
                       recompute ? ", full recomputation" : "", ": ",
                       FormatSeconds(run->batch_seconds), " per step, ",
                       FormatBytes(most), " of ", FormatBytes(capacity));
      if (next.fits) return next;
      layout = std::move(next);
    }
  }
  if (!layout.has_value()) return last;
  return *std::move(layout);
}

absl::Status Write(const std::string& path, const std::string& text,
                   const OutputFlags& output) {
  RETURN_IF_ERROR(WriteOutput(path, MarkText(text), ReplaceOf(output)));
  PrintNote(absl::StrCat("wrote ", path), output);
  return absl::OkStatus();
}

absl::StatusOr<Layout> Init(const Flags& flags) {
  std::string folder = flags.init.folder;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  std::vector<OutputFile> files;
  for (const char* name : {"model", "cluster", "scenario"}) {
    files.push_back({"--out", absl::StrCat(folder, "/", name, ".textproto"),
                     ReplaceOf(flags.output)});
  }
  RETURN_IF_ERROR(weir::CheckOutputs(files));
  ASSIGN_OR_RETURN(const Answers answers, Collect(flags));
  RETURN_IF_ERROR(
      Write(files[0].path, CommentedTextProto(answers.model), flags.output));
  RETURN_IF_ERROR(
      Write(files[1].path, CommentedTextProto(answers.cluster), flags.output));
  ASSIGN_OR_RETURN(Layout layout, ChooseLayout(answers, folder));
  RETURN_IF_ERROR(
      Write(files[2].path, CommentedTextProto(layout.scenario), flags.output));
  return layout;
}

}  // namespace

int RunInit(const Flags& flags) {
  const absl::StatusOr<Layout> layout = Init(flags);
  if (!layout.ok()) return PrintError(layout.status(), flags.output);
  std::string folder = flags.init.folder;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  const std::string file = absl::StrCat(folder, "/scenario.textproto");
  const absl::Status printed = PrintResult(absl::StrCat(
      layout->fits ? "a layout that fits: " : "no simple layout fits: ",
      layout->text, "\nnext:\n  weir simulate ", file, "\n  weir compare ",
      file, " --schedule 1f1b,interleaved-1f1b,zb-h1\n  weir plan ", file,
      "\n"));
  if (!printed.ok()) return PrintError(printed, flags.output);
  return layout->fits ? kExitOk : kExitNegative;
}

}  // namespace weir::cli
