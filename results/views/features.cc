// SPDX-License-Identifier: Apache-2.0
#include "results/views/features.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/textproto.h"
#include "base/units.h"

namespace weir::results {
namespace {

// Returns "core_attn" for "CORE_ATTN".
std::string Lower(const std::string& name) {
  return absl::AsciiStrToLower(name);
}

std::string Plural(uint32_t number, absl::string_view noun) {
  return absl::StrCat(number, " ", noun, number == 1 ? "" : "s");
}

// Returns "fp8_block" for OPERAND_FP8_BLOCK.
std::string FormatName(OperandFormat format) {
  return format == OPERAND_16_BIT
             ? "16 bits"
             : Lower(OperandFormat_Name(format).substr(sizeof("OPERAND_") - 1));
}

std::string FormatName(StateFormat format) {
  return Lower(StateFormat_Name(format).substr(sizeof("STATE_") - 1));
}

class FeatureList {
 public:
  explicit FeatureList(const Scenario& scenario) : scenario_(scenario) {}

  std::vector<std::string> All() {
    AddLayout();
    AddContext();
    AddDocuments();
    AddAdapters();
    AddOptimizer();
    AddFormats();
    AddMemory();
    AddDispatch();
    AddRouting();
    AddCudaGraphs();
    AddChanges();
    return std::move(features_);
  }

 private:
  template <typename... Parts>
  void Add(const Parts&... parts) {
    features_.push_back(Ascii(absl::StrCat(parts...)));
  }

  void AddLayout() {
    const Parallelism& parallelism = scenario_.parallelism();
    if (!parallelism.layout().empty()) Add("layout ", parallelism.layout());
    if (scenario_.training().has_mtp_num_layers()) {
      Add(Plural(scenario_.training().mtp_num_layers(), "MTP module"));
    }
    switch (parallelism.vocabulary_parallel()) {
      case VOCABULARY_ONE_BARRIER:
        Add("sharded vocabulary with one barrier");
        break;
      case VOCABULARY_TWO_BARRIERS:
        Add("sharded vocabulary with two barriers");
        break;
      default:
        break;
    }
  }

  void AddContext() {
    const Parallelism& parallelism = scenario_.parallelism();
    if (parallelism.context() <= 1) return;
    switch (parallelism.context_method()) {
      case CONTEXT_ALL_GATHER:
        Add("context by all_gather");
        break;
      case CONTEXT_A2A:
        Add("context by a2a");
        break;
      case CONTEXT_A2A_P2P:
        Add("context by a2a+p2p of ",
            absl::StrJoin(parallelism.hierarchical_context(), " x "));
        break;
      default:
        break;
    }
  }

  void AddDocuments() {
    if (!scenario_.batch().has_packed_sequences()) return;
    const SequenceLengths& lengths = scenario_.batch().packed_sequences();
    switch (lengths.distribution_case()) {
      case SequenceLengths::kFixed:
        Add("documents of ", lengths.fixed(), " tokens");
        break;
      case SequenceLengths::kUniform:
        Add("documents of ", lengths.uniform().shortest(), " to ",
            lengths.uniform().longest(), " tokens");
        break;
      case SequenceLengths::kLogNormal:
        Add("log-normal documents of ", lengths.log_normal().mean(),
            " tokens (deviation ", lengths.log_normal().deviation(), ")");
        break;
      case SequenceLengths::kHistogram:
        Add("documents of ",
            Plural(static_cast<uint32_t>(lengths.histogram().lengths_size()),
                   "length"));
        break;
      default:
        break;
    }
  }

  void AddAdapters() {
    const Lora& lora = scenario_.training().lora();
    if (lora.rank() == 0) return;
    std::vector<std::string> modules;
    for (const int module : lora.target_modules()) {
      modules.push_back(
          Lower(LoraModule_Name(static_cast<LoraModule>(module))));
    }
    Add("LoRA of rank ", lora.rank(), modules.empty() ? "" : " in ",
        absl::StrJoin(modules, " and "));
  }

  void AddOptimizer() {
    const Training& training = scenario_.training();
    const Optimizer optimizer = training.optimizer();
    if (optimizer == MUON || optimizer == DIST_MUON) {
      Add(optimizer == MUON ? "Muon" : "distributed Muon",
          training.muon_num_ns_steps() == 0
              ? ""
              : absl::StrCat(" with ", Plural(training.muon_num_ns_steps(),
                                              "iteration")));
    }
    if (training.fully_sharded()) Add("fully sharded");
    const auto state = [&](absl::string_view name, StateFormat format) {
      if (format == STATE_FORMAT_UNSPECIFIED || format == STATE_FP32) return;
      Add(name, " in ", FormatName(format));
    };
    state("first moment", training.first_moment());
    state("second moment", training.second_moment());
    state("main weights", training.main_weights());
  }

  void AddFormats() {
    const Training& training = scenario_.training();
    if (training.has_attention_format()) {
      Add("attention in ", FormatName(training.attention_format()));
    }
    if (training.has_dispatch_format()) {
      Add("dispatch in ", FormatName(training.dispatch_format()));
    }
    if (training.has_quantized_parameters()) {
      Add("weights kept in ", training.quantized_parameters()
                                  ? "the format of the recipe"
                                  : "16 bits");
    }
    const auto blocks = [&](absl::string_view which, uint32_t number) {
      Add(which, " ", Plural(number, "block"), " in 16 bits");
    };
    if (training.has_first_blocks_in_16_bits()) {
      blocks("first", training.first_blocks_in_16_bits());
    }
    if (training.has_last_blocks_in_16_bits()) {
      blocks("last", training.last_blocks_in_16_bits());
    }
  }

  void AddMemory() {
    const Training& training = scenario_.training();
    if (!training.recompute_modules().empty()) {
      std::vector<std::string> modules;
      for (const int module : training.recompute_modules()) {
        modules.push_back(
            Lower(RecomputeModule_Name(static_cast<RecomputeModule>(module))));
      }
      Add("recomputed ", absl::StrJoin(modules, " and "));
    }
    const uint32_t n = std::max(training.recompute_num_layers(), 1u);
    switch (training.recompute_method()) {
      case RECOMPUTE_UNIFORM:
        if (n > 1) Add("recomputed groups of ", Plural(n, "block"));
        break;
      case RECOMPUTE_BLOCK:
        Add("recomputed ", Plural(n, "block"), " per stage");
        break;
      case RECOMPUTE_EVERY:
        Add("recomputed block of every ", n);
        break;
      default:
        break;
    }
    if (training.cpu_offloading_num_layers() > 0) {
      Add("activations of ",
          Plural(training.cpu_offloading_num_layers(), "block"),
          " per stage on the host");
    }
    if (training.optimizer_offload_fraction() > 0) {
      Add(FormatPercent(training.optimizer_offload_fraction()),
          " of the optimizer on the host");
    }
  }

  void AddDispatch() {
    const Communication& communication = scenario_.communication();
    const TokenDispatcher dispatcher = communication.token_dispatcher();
    if (dispatcher == TOKENS_DEEPEP || dispatcher == TOKENS_HYBRID_EP) {
      Add(dispatcher == TOKENS_HYBRID_EP ? "HybridEP" : "DeepEP",
          communication.dispatch_multiprocessors() == 0
              ? ""
              : absl::StrCat(" with ",
                             Plural(communication.dispatch_multiprocessors(),
                                    "multiprocessor")));
    }
    if (communication.overlap_expert_exchange()) {
      Add("exchanges of experts overlap with the next pass");
    }
    if (communication.has_tp_comm_overlap()) {
      Add(communication.tp_comm_overlap()
              ? "tensor-parallel collectives overlap with GEMMs"
              : "tensor-parallel collectives do not overlap with GEMMs");
    }
  }

  void AddCudaGraphs() {
    const Training& training = scenario_.training();
    if (training.cuda_graph_scope().empty()) return;
    std::vector<std::string> parts;
    for (const int scope : training.cuda_graph_scope()) {
      // A file of a newer version may have others.
      if (!CudaGraphScope_IsValid(scope) || scope == 0) continue;
      parts.push_back(
          Lower(CudaGraphScope_Name(scope).substr(sizeof("CUDA_GRAPH_") - 1)));
    }
    Add("CUDA graphs of ", absl::StrJoin(parts, ", "));
  }

  void AddRouting() {
    const Training& training = scenario_.training();
    if (training.has_moe_router_fusion()) {
      Add(training.moe_router_fusion() ? "fused router" : "router not fused");
    }
    if (training.has_moe_router_num_groups()) {
      Add(Plural(training.moe_router_num_groups(), "group"), " of experts");
    }
    if (training.has_moe_router_group_topk()) {
      Add("experts from ", Plural(training.moe_router_group_topk(), "group"));
    }
    if (training.has_moe_expert_capacity_factor()) {
      Add("capacity factor ", training.moe_expert_capacity_factor());
    }
    if (training.has_moe_pad_expert_input_to_capacity()) {
      Add(training.moe_pad_expert_input_to_capacity()
              ? "experts padded to their capacity"
              : "experts not padded");
    }
  }

  void AddChanges() {
    const ClusterChanges& changes = scenario_.cluster_changes();
    if (changes.topology() != TOPOLOGY_AS_GIVEN) {
      Add("topology ",
          absl::StrReplaceAll(Lower(Topology_Name(changes.topology())),
                              {{"_", "-"}}));
    }
    if (changes.oversubscription() > 0) {
      Add("oversubscription ", changes.oversubscription());
    }
    if (changes.nvlink_domain() > 0) {
      Add("NVLink domains of ", changes.nvlink_domain(), " GPUs");
    }
    if (scenario_.slow_size() > 0) {
      Add(Plural(static_cast<uint32_t>(scenario_.slow_size()), "slow part"));
    }
    if (changes.routing() == ROUTING_ECMP) Add("ECMP routing");
    if (changes.routing() == ROUTING_VALIANT) Add("Valiant routing");
    if (scenario_.failed_size() > 0) {
      Add(Plural(static_cast<uint32_t>(scenario_.failed_size()),
                 "failed part"));
    }
    if (scenario_.background_size() > 0) {
      Add("traffic of other jobs on ",
          Plural(static_cast<uint32_t>(scenario_.background_size()), "part"));
    }
    for (const std::string& setting : scenario_.set_figures()) {
      Add("set ", setting);
    }
  }

  const Scenario& scenario_;
  std::vector<std::string> features_;
};

}  // namespace

Scenario ScenarioOf(const Result& result) {
  Scenario scenario;
  SilenceProtobuf();
  const absl::Status status =
      ParseTextProto("", result.provenance().scenario(), &scenario);
  return status.ok() ? scenario : Scenario();
}

std::vector<std::string> FeaturesOf(const Scenario& scenario) {
  return FeatureList(scenario).All();
}

std::string CommonFeatures(std::span<const Result> results) {
  std::string common;
  for (const Result& result : results) {
    const std::string features =
        absl::StrJoin(FeaturesOf(ScenarioOf(result)), ", ");
    if (&result != &results.front() && features != common) return "";
    common = features;
  }
  return common;
}

std::string FeaturesLine(const std::string& features) {
  return features.empty()
             ? ""
             : WrapText(absl::StrCat("features: ", features, "\n"));
}

}  // namespace weir::results
