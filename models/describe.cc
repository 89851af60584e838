// SPDX-License-Identifier: Apache-2.0
#include "models/describe.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "models/context_parallel.h"
#include "models/model.h"
#include "models/parameters.h"

namespace weir::models {
namespace {

using Row = std::vector<std::string>;

// Consecutive equal layers.
struct Group {
  LayerWork layer;
  int count = 0;
};

double ForwardFlops(const LayerWork& layer) {
  return std::accumulate(
      layer.forward.begin(), layer.forward.end(), 0.0,
      [](double sum, const Kernel& kernel) { return sum + kernel.flops; });
}

// Returns the groups in the order of their first layers. `scattered`: also
// merges equal blocks that other blocks separate.
std::vector<Group> GroupsOf(const std::vector<LayerWork>& layers,
                            bool scattered) {
  std::vector<Group> groups;
  for (const LayerWork& layer : layers) {
    // Blocks of the same kind are copies and have the same name.
    auto at = groups.end();
    if (layer.role == LayerRole::kBlock && !groups.empty()) {
      at = std::find_if(
          scattered ? groups.begin() : groups.end() - 1, groups.end(),
          [&](const Group& group) { return group.layer.name == layer.name; });
    }
    if (at != groups.end()) {
      ++at->count;
    } else {
      groups.push_back({layer, 1});
    }
  }
  return groups;
}

bool HasPattern(const Model& model) {
  return !model.transformer().pattern().empty();
}

std::string WithCommas(double count) {
  std::string digits = absl::StrFormat("%.0f", count);
  for (int place = static_cast<int>(digits.size()) - 3; place > 0; place -= 3) {
    digits.insert(place, 1, ',');
  }
  return digits;
}

std::string Table(const std::vector<Row>& rows) {
  TextTable table;
  table.header = rows.front();
  table.rows.assign(rows.begin() + 1, rows.end());
  return PrintTable(table);
}

const char* RoleName(LayerRole role) {
  switch (role) {
    case LayerRole::kEmbedding:
      return "embedding";
    case LayerRole::kBlock:
      return "block";
    case LayerRole::kHead:
      return "head";
    case LayerRole::kMeasured:
      return "measured";
    case LayerRole::kMtp:
      return "mtp";
    case LayerRole::kVocabulary:
      return "vocabulary";
  }
  return "block";
}

// Returns the number of GPUs that share a block without experts.
int GpusOf(const WorkSpec& spec) {
  return spec.tensor_parallel * spec.context.size();
}

std::string SpecLine(const Model& model, const WorkSpec& spec) {
  if (model.has_measured()) {
    return absl::StrFormat("microbatch of %d, measured with %d",
                           spec.microbatch_size,
                           model.measured().microbatch_size());
  }
  std::string line = absl::StrFormat("microbatch of %d x %d tokens, %d-bit",
                                     spec.microbatch_size, spec.sequence_length,
                                     8 * spec.bytes_per_element);
  if (spec.tensor_parallel > 1) {
    absl::StrAppend(&line, ", per GPU of ", spec.tensor_parallel,
                    spec.sequence_parallel ? " (tensor and sequence parallel)"
                                           : " (tensor parallel)");
  }
  if (spec.context.size() > 1) {
    absl::StrAppend(&line, ", tokens over ", spec.context.size(), " GPUs (",
                    ContextMethodName(spec.context.method), ")");
  }
  if (spec.expert_parallel > 1) {
    absl::StrAppend(&line, ", experts over ", spec.expert_parallel, " GPUs");
  }
  if (spec.gpus_per_expert() != spec.tensor_parallel) {
    absl::StrAppend(&line, ", each on ", spec.gpus_per_expert());
  }
  if (spec.flash_attention) absl::StrAppend(&line, ", fused attention");
  if (spec.documents.length > 0) {
    absl::StrAppendFormat(&line, ", documents with %.0f keys per token",
                          spec.documents.length);
  }
  if (spec.dropout) absl::StrAppend(&line, ", dropout");
  if (spec.recompute > RECOMPUTE_NONE) {
    absl::StrAppend(&line, ", ", RecomputeText(spec.recompute),
                    " recomputation");
  }
  return line;
}

Row RowOf(const Group& group, int count_width, bool measured) {
  const LayerWork& layer = group.layer;
  Row row = {absl::StrFormat("%*d x %s", count_width, group.count, layer.name),
             FormatCount(layer.parameters)};
  if (measured) {
    row.push_back(FormatSeconds(layer.forward_seconds.value_or(0)));
    row.push_back(FormatSeconds(layer.backward_seconds.value_or(0)));
  } else {
    row.push_back(FormatFlops(ForwardFlops(layer)));
  }
  row.push_back(FormatBytes(layer.stash_bytes));
  row.push_back(FormatBytes(layer.output_bytes));
  return row;
}

struct Totals {
  double parameters = 0;  // per GPU, without tied copies
  double forward_flops = 0;
  double stash_bytes = 0;
  double forward_seconds = 0;
  double backward_seconds = 0;
};

Totals TotalsOf(const std::vector<LayerWork>& layers) {
  Totals totals;
  totals.parameters =
      StageParameters(layers, 0, static_cast<int>(layers.size()));
  for (const LayerWork& layer : layers) {
    totals.forward_flops += ForwardFlops(layer);
    totals.stash_bytes += layer.stash_bytes;
    totals.forward_seconds += layer.forward_seconds.value_or(0);
    totals.backward_seconds += layer.backward_seconds.value_or(0);
  }
  return totals;
}

Row TotalRow(const Totals& totals, bool measured) {
  Row row = {"total", FormatCount(totals.parameters)};
  if (measured) {
    row.push_back(FormatSeconds(totals.forward_seconds));
    row.push_back(FormatSeconds(totals.backward_seconds));
  } else {
    row.push_back(FormatFlops(totals.forward_flops));
  }
  row.push_back(FormatBytes(totals.stash_bytes));
  row.push_back("");
  return row;
}

// Returns a JSON number, without a trailing ".0" if it is whole.
nlohmann::ordered_json Number(double value) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (value == std::floor(value) && std::fabs(value) <= kExact) {
    return static_cast<int64_t>(value);
  }
  return value;
}

nlohmann::ordered_json CollectivesJson(
    const std::vector<LayerCollective>& collectives) {
  auto list = nlohmann::ordered_json::array();
  for (const LayerCollective& collective : collectives) {
    list.push_back(
        {{"kind", Name(collective.kind)},
         {"group", Name(collective.group)},
         {"bytes", Number(collective.bytes)},
         {"count", collective.count},
         {"overlaps_weight_gradient", collective.overlaps_weight_gradient},
         {"overlaps_input_gradient", collective.overlaps_input_gradient},
         {"of_recompute", collective.of_recompute}});
  }
  return list;
}

nlohmann::ordered_json LayerJson(const Group& group) {
  const LayerWork& layer = group.layer;
  nlohmann::ordered_json json = {
      {"name", layer.name},
      {"role", RoleName(layer.role)},
      {"count", group.count},
      {"parameters", Number(layer.parameters)},
      {"shared_parameters", Number(layer.shared_parameters)},
      {"forward_flops", Number(ForwardFlops(layer))},
      {"stash_bytes", Number(layer.stash_bytes)},
      {"recompute_scratch_bytes", Number(layer.recompute_scratch_bytes)},
      {"weight_gradient_stash_bytes",
       Number(layer.weight_gradient_stash_bytes)},
      {"output_bytes", Number(layer.output_bytes)},
      {"expert_parameters", Number(layer.expert_parameters)},
      {"forward_collectives", CollectivesJson(layer.forward_collectives)},
      {"backward_collectives", CollectivesJson(layer.backward_collectives)}};
  if (layer.forward_seconds.has_value()) {
    json["forward_seconds"] = *layer.forward_seconds;
    json["backward_seconds"] = layer.backward_seconds.value_or(0);
  }
  return json;
}

// Returns the active parameters of a model with experts, also without the token
// embedding if that makes a difference.
std::string ActiveText(const Model& model) {
  if (model.transformer().num_experts() == 0) return "";
  const double active = CountActiveParameters(model);
  const double table = CountTableParameters(model);
  std::string text =
      absl::StrCat(", ", FormatCount(active), " of them active per token");
  if (table > 0.02 * active) {
    absl::StrAppend(&text, " (", FormatCount(active - table),
                    " without the token embedding)");
  }
  return text;
}

// Returns lines about parts that only some models have.
std::string PartsLines(const Model& model) {
  const Transformer& transformer = model.transformer();
  std::string lines;
  if (const double mtp = CountMtpParameters(model); mtp > 0) {
    absl::StrAppend(&lines, "and ", FormatCount(mtp), " parameters in ",
                    transformer.num_mtp_modules(),
                    transformer.num_mtp_modules() == 1 ? " module" : " modules",
                    " of multi-token prediction\n");
  }
  if (transformer.has_encoder()) {
    const Encoder& encoder = transformer.encoder();
    absl::StrAppend(&lines, FormatCount(EncoderParameters(transformer).Whole()),
                    " of them in an encoder, in the embedding, with ",
                    std::max(encoder.images_per_sequence(), 1u), " x ",
                    encoder.patches_per_image(), " patches per sequence\n");
  }
  if (HasPattern(model)) {
    std::vector<std::string> kinds;
    for (const BlockKind& kind : transformer.kinds()) {
      kinds.push_back(absl::StrCat(
          kind.letter(), " = ", kind.name().empty() ? "usual" : kind.name()));
    }
    absl::StrAppend(&lines, "blocks: ", transformer.pattern(), " (",
                    absl::StrJoin(kinds, ", "), ")\n");
  }
  for (const std::string& note : model.notes()) {
    absl::StrAppend(&lines, "note: ", EscapeLine(note), "\n");
  }
  return lines;
}

}  // namespace

const char* RecomputeName(RecomputeMode recompute) {
  switch (recompute) {
    case RECOMPUTE_SELECTIVE:
      return "selective";
    case RECOMPUTE_OPERATORS:
      return "operators";
    case RECOMPUTE_FULL:
      return "full";
    default:
      return "none";
  }
}

std::string DescribeModel(const Model& model, const WorkSpec& spec) {
  const std::vector<LayerWork> layers = LayersOf(model, spec);
  const std::vector<Group> groups = GroupsOf(layers, HasPattern(model));
  const bool measured = model.has_measured();
  int most = 0;
  for (const Group& group : groups) most = std::max(most, group.count);
  const int count_width = static_cast<int>(absl::StrCat(most).size());
  std::vector<Row> rows = {measured
                               ? Row{"layers", "parameters", "forward",
                                     "backward", "saved activations", "output"}
                               : Row{"layers", "parameters", "forward",
                                     "saved activations", "output"}};
  for (const Group& group : groups) {
    rows.push_back(RowOf(group, count_width, measured));
  }
  rows.push_back(TotalRow(TotalsOf(layers), measured));
  std::string text = absl::StrCat(
      WrapText(absl::StrCat(EscapeLine(model.name()), ": ",
                            WithCommas(CountParameters(model)), " parameters",
                            ActiveText(model), "\n", PartsLines(model),
                            SpecLine(model, spec), "\n")),
      "\n", Table(rows));
  if (!measured) {
    absl::StrAppend(&text, "\nforward and backward: ",
                    FormatFlops(ModelFlops(layers, GpusOf(spec))),
                    " for the whole model, without recomputation\n");
  }
  return text;
}

std::string ModelJson(const Model& model, const WorkSpec& spec) {
  const std::vector<LayerWork> layers = LayersOf(model, spec);
  const Totals totals = TotalsOf(layers);
  nlohmann::ordered_json json = {
      {"name", model.name()},
      {"parameters", Number(CountParameters(model))},
      {"active_parameters", Number(CountActiveParameters(model))},
      {"table_parameters", Number(CountTableParameters(model))},
      {"mtp_parameters", Number(CountMtpParameters(model))},
      {"microbatch_size", spec.microbatch_size},
      {"sequence_length", spec.sequence_length},
      {"tensor_parallel", spec.tensor_parallel},
      {"sequence_parallel", spec.sequence_parallel},
      {"expert_parallel", spec.expert_parallel},
      {"context_parallel", spec.context.size()},
      {"flash_attention", spec.flash_attention},
      {"dropout", spec.dropout},
      {"recompute", RecomputeText(spec.recompute)},
      {"bytes_per_element", spec.bytes_per_element},
      {"model_flops", Number(ModelFlops(layers, GpusOf(spec)))},
      {"parameters_per_gpu", Number(totals.parameters)},
      {"stash_bytes", Number(totals.stash_bytes)}};
  if (spec.gpus_per_expert() != spec.tensor_parallel) {
    json["expert_tensor_parallel"] = spec.gpus_per_expert();
  }
  for (const Group& group : GroupsOf(layers, HasPattern(model))) {
    json["layers"].push_back(LayerJson(group));
  }
  // Names may contain bytes that are not UTF-8.
  return DumpJson(json, 2) + "\n";
}

}  // namespace weir::models
