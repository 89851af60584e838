// SPDX-License-Identifier: Apache-2.0
// What is simulated: a model, a cluster, and how to train the model on it.
#ifndef WEIR_SCENARIO_H_
#define WEIR_SCENARIO_H_

#include <functional>
#include <string>
#include <vector>

#include "weir/error.h"

namespace weir::api {

// What one stage of a pipeline costs per microbatch, for Scenario::FromCosts.
struct StageCosts {
  double forward_seconds = 0;
  // Gradients of the stage's input and of its weights. Schedules that do not
  // split backwards run them as one pass of the sum.
  double backward_input_seconds = 0;
  double backward_weight_seconds = 0;
  // Bytes that a microbatch occupies from its forward to its backward. Any
  // other unit is possible: automatic orders depend only on the ratios between
  // stages, and Result::peak_memory_bytes is in the same unit.
  double activation_bytes = 1;
};

struct StageOfPipeline {
  int stage = 0;  // 0 has the embedding, num_stages - 1 the loss
  int num_stages = 1;
};

// Prices a stage. Called once per stage, in ascending order.
using CostModel = std::function<StageCosts(const StageOfPipeline&)>;

// Shape of a pipeline with given costs.
struct PipelineShape {
  int num_ranks = 1;
  int num_chunks = 1;  // stages per rank
  int num_microbatches = 1;
  // Latency of a transfer between neighboring ranks.
  double hop_seconds = 0;
  std::string schedule = "1f1b";
};

// A scenario is a value: copies are independent. It holds the message
// weir.Scenario of the manual's page "Fields of files"; nothing is checked
// before it is simulated, except the syntax.
class Scenario {
 public:
  // Loads a preset ("llama-3-70b-64-h100") or a file, textproto or JSON.
  static Scenario Load(const std::string& preset_or_path);
  // Parses a textproto or JSON. Errors call the text `label`.
  static Scenario Parse(const std::string& text,
                        const std::string& label = "scenario");
  // Returns a pipeline whose passes cost what `model` says, instead of a model
  // on a cluster. Throws Error for a cost that is negative or not finite.
  static Scenario FromCosts(const PipelineShape& shape, const CostModel& model);

  // Replaces fields: Set("parallelism { pipeline: 4 } schedule: 'zb-h1'").
  // A list in the text replaces the list of the scenario.
  Scenario& Set(const std::string& text);
  // The same as Set with "schedule: '<name>'".
  Scenario& SetSchedule(const std::string& name);

  // The preset or file, for messages.
  const std::string& label() const { return label_; }
  // The scenario as textproto.
  const std::string& text() const { return text_; }

 private:
  Scenario(std::string label, std::string text)
      : label_(std::move(label)), text_(std::move(text)) {}

  std::string label_;
  std::string text_;
};

// The names of presets, sorted.
std::vector<std::string> ScenarioPresets();
std::vector<std::string> ModelPresets();
std::vector<std::string> ClusterPresets();

}  // namespace weir::api

#endif  // WEIR_SCENARIO_H_
