// SPDX-License-Identifier: Apache-2.0
// The settings of a command line of Megatron-LM, as they are read.
#ifndef WEIR_PLAN_FRAMEWORKS_MEGATRON_SETTINGS_H_
#define WEIR_PLAN_FRAMEWORKS_MEGATRON_SETTINGS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/problems.h"
#include "plan/frameworks/import_report.h"
#include "scenarios/scenario.pb.h"

namespace weir::plan {

// The values of the arguments that were read. Fields besides the scenario start
// with the defaults of arguments.py or are only meaningful in combination.
struct MegatronSettings {
  Scenario scenario;
  std::string runtime;               // preset that the scenario names
  std::vector<std::string> notes;    // defaults that were assumed
  std::vector<std::string> missing;  // see ImportReport
  std::vector<ImportedFigure> figures;
  const Scenario* flags = nullptr;  // see ImportContext::overrides
  // The names of arguments in the file, if not "--" and the argument.
  std::map<std::string, std::string> names;
  std::set<std::string> given;
  // Arguments whose values were reported, and consequences of which are not.
  std::set<std::string> reported;
  bool disable_bias_linear = false, add_qkv_bias = false;
  bool grouped_queries = false, fp32_gradients = false;
  bool gradients_in_bf16 = false, untied = false, learned_positions = true;
  // The dispatcher "flex" needs one of its programs.
  bool flex_dispatcher = false, deepep = false, hybridep = false;
  bool pads_experts = false;  // to their capacity
  uint32_t deepep_multiprocessors = 0, hybridep_multiprocessors = 0;
  uint32_t muon_num_ns_steps = 0;
  bool experts = false, fp16 = false, bf16 = false;
  // Formats of GEMMs: "hybrid", "tensorwise", "e2m1"; empty: 16 bits.
  std::string fp8_format, fp8_recipe = "delayed", fp4_format;
  bool first_last_in_bf16 = false;
  uint32_t first_in_bf16 = 1, last_in_bf16 = 1;
  uint32_t query_groups = 1, max_positions = 0, shared_width = 0;
  uint32_t bucket_elements = 0;
  std::string tokenizer;
  uint32_t vocabulary = 0, padded_vocabulary = 0;
  std::optional<bool> fused_attention;
  bool overlap_p2p = true, overlap_param_gather = false;
  bool optimizer_cpu_offload = false;
  bool cuda_graphs = false, local_graphs = false;  // --cuda-graph-impl
  double optimizer_offload_fraction = 1;
  bool tp_comm_overlap = false, fused_cross_entropy = false;
  bool scatters_transfers = true, fused_softmax = true, fused_bias_act = true;
  bool fused_bias_dropout = true, fused_accumulation = true;
  std::optional<uint32_t> layers_per_stage;
  uint32_t expert_tensor = 0;
  double attention_dropout = 0.1, hidden_dropout = 0.1;
  std::vector<bool> expert_blocks;

  // Returns the name of an argument in the file: "--swiglu".
  std::string NameOf(const std::string& argument) const;

  Transformer& model() { return *scenario.mutable_transformer(); }
  Parallelism& parallelism() { return *scenario.mutable_parallelism(); }
  Batch& batch() { return *scenario.mutable_batch(); }
  Training& training() { return *scenario.mutable_training(); }
  Communication& communication() { return *scenario.mutable_communication(); }
};

// Sets the fields of the scenario that depend on several arguments, and those
// that no argument has set to the defaults of arguments.py. Reports
// combinations that Megatron-LM refuses or that weir does not simulate, except
// those that involve arguments in `reported`. `num_gpus`: of the cluster, 0 if
// unknown. Returns the errors of LoadRuntime for the runtime.
absl::Status CombineSettings(uint32_t num_gpus, MegatronSettings* settings,
                             Problems* problems);

}  // namespace weir::plan

#endif  // WEIR_PLAN_FRAMEWORKS_MEGATRON_SETTINGS_H_
