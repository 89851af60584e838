// SPDX-License-Identifier: Apache-2.0
#include "cli/options/option_group.h"

namespace weir::cli {

void AddPipeline(Options* options, Scenario* scenario,
                 absl::string_view fallback) {
  Group group("Parallelism", options);
  group
      .Count(
          "--pp,--pipeline-model-parallel-size",
          "pipeline-parallel size (ranks)",
          [=](uint32_t n) { scenario->mutable_parallelism()->set_pipeline(n); })
      .fallback = std::string(fallback);
  group
      .Count(
          "--chunks,--vpp,--num-virtual-stages-per-pipeline-rank",
          "stages per rank (virtual pipeline stages)",
          [=](uint32_t n) { scenario->mutable_parallelism()->set_chunks(n); })
      .fallback = "as the schedule requires";
}

void AddMicrobatches(Options* options, Scenario* scenario,
                     absl::string_view microbatches,
                     absl::string_view batches) {
  Group group("Schedule", options);
  group
      .Count("--microbatches", "microbatches per batch and pipeline",
             [=](uint32_t n) { scenario->set_num_microbatches(n); })
      .fallback = std::string(microbatches);
  group
      .Count("--batches", "batches to simulate (schedules without a flush)",
             [=](uint32_t n) { scenario->set_num_batches(n); })
      .fallback = std::string(batches);
}

void AddFormat(Options* options, OutputFlags* output, bool csv) {
  using Format = OutputFlags::Format;
  Group group("Output", options);
  Choices formats = {{"table", static_cast<int>(Format::kTable)},
                     {"json", static_cast<int>(Format::kJson)}};
  if (csv) formats.emplace_back("csv", static_cast<int>(Format::kCsv));
  group
      .Choice("--format", "output format", formats,
              [=](int value) { output->format = static_cast<Format>(value); })
      .fallback = "table";
}

void AddMethod(absl::string_view help, absl::string_view title, bool* fast,
               Options* options) {
  Group(title, options)
      .Choice("--method", help, {{"full", 0}, {"fast", 1}},
              [=](int value) { *fast = value == 1; })
      .fallback = "full";
}

void AddForce(Options* options, OutputFlags* output) {
  Group("Output", options)
      .Switch("--force", "overwrite files that weir did not write",
              [=](bool on) { output->force = on; });
}

void AddMessages(Options* options, OutputFlags* output) {
  using Color = OutputFlags::Color;
  Group group("Output", options);
  group.Switch("--quiet,-q", "print no progress and no notes",
               [=](bool on) { output->quiet = on; });
  group
      .Choice("--color", "when to color messages",
              {{"auto", static_cast<int>(Color::kAuto)},
               {"always", static_cast<int>(Color::kAlways)},
               {"never", static_cast<int>(Color::kNever)}},
              [=](int value) { output->color = static_cast<Color>(value); })
      .fallback = "auto";
}

Options OptionsOfNamed(absl::string_view name, absl::string_view help,
                       Flags* flags) {
  Options options;
  Group("", &options).Text(name, "", help, &flags->name).required = true;
  return options;
}

}  // namespace weir::cli
