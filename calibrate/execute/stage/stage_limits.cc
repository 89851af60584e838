// SPDX-License-Identifier: Apache-2.0
#include "calibrate/execute/stage/stage_limits.h"

#include "absl/strings/str_format.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "models/block_spec.h"
#include "models/shape.h"

namespace weir::calibrate {
namespace {

void CheckModel(const Transformer& transformer, const models::WorkSpec& work,
                Problems* problems) {
  const auto refuse = [&](bool found, absl::string_view field,
                          absl::string_view what) {
    if (found) problems->Add(field, what);
  };
  refuse(transformer.num_experts() > 0, "num_experts",
         "is above 0, expected 0: the stage kernels have no experts");
  refuse(transformer.num_token_types() > 0, "num_token_types",
         "is above 0, expected 0: the stage kernels have no token types");
  refuse(transformer.post_norm(), "post_norm",
         "is on, expected a norm before each half of a block");
  refuse(transformer.embedding_norm(), "embedding_norm",
         "is on, expected no norm after the embedding");
  refuse(transformer.mlm_head() || transformer.pooler(), "mlm_head",
         "or pooler is on, expected a head with norm and logits only");
  refuse(transformer.query_key_norm(), "query_key_norm",
         "is on, expected queries and keys without norms");
  for (const std::string& field : models::SpecialFields(transformer)) {
    refuse(true, field,
           "is given, expected nothing: the stage kernels are "
           "those of GPT-2 and Llama");
  }
  const int window = static_cast<int>(transformer.sliding_window());
  if (window > 0 && window < work.sequence_length) {
    problems->Add("sliding_window",
                  absl::StrFormat("is %d, expected none, or one no shorter "
                                  "than the sequences of %d",
                                  window, work.sequence_length));
  }
  if (transformer.num_positions() == 0 && transformer.head_size() % 2 != 0) {
    problems->Add(
        "head_size",
        absl::StrFormat(
            "is %d, expected an even number: rotary embeddings rotate pairs",
            transformer.head_size()));
  }
}

// Checks that the sizes of one GPU are whole numbers.
void CheckShape(const Transformer& transformer, const models::WorkSpec& work,
                Problems* problems) {
  const models::Shape shape = models::ShapeOf(transformer, work);
  const auto whole = [&](absl::string_view field, double size) {
    if (size == static_cast<double>(static_cast<int64_t>(size))) return;
    problems->Add(field,
                  absl::StrFormat("gives each of %d GPUs %g, expected a whole "
                                  "number",
                                  work.tensor_parallel, size));
  };
  whole("feed_forward_size", shape.feed_forward);
  whole("vocabulary_size", shape.vocabulary);
}

}  // namespace

absl::Status CheckStage(const Model& model, const StageSpec& spec) {
  Problems problems("stage");
  if (!model.has_transformer()) {
    problems.Add("model", "is measured, expected a transformer");
    return problems.ToStatus();
  }
  const models::WorkSpec& work = spec.work;
  RETURN_IF_ERROR(models::ValidateWorkSpec("stage", model, work));
  const Transformer& transformer = model.transformer();
  CheckModel(transformer, work, &problems);
  CheckShape(transformer, work, &problems);
  if (work.sequence_parallel) {
    problems.Add("sequence_parallel",
                 "is on, expected off: a stage runs on one GPU");
  }
  if (work.recompute > RECOMPUTE_NONE) {
    problems.Add("recompute", "is on, expected none");
  }
  if (!(spec.dropout >= 0 && spec.dropout < 1)) {
    problems.Add("dropout",
                 absl::StrFormat("is %g, expected 0 to below 1", spec.dropout));
  }
  const int num_layers = static_cast<int>(transformer.num_layers()) + 2;
  if (spec.first_layer < 0 || spec.last_layer <= spec.first_layer ||
      spec.last_layer > num_layers) {
    problems.Add(
        "layers",
        absl::StrFormat(
            "are [%d, %d), expected a non-empty part of the model's [0, %d)",
            spec.first_layer, spec.last_layer, num_layers));
  }
  if (spec.format == ElementFormat::kInt32 ||
      spec.format == ElementFormat::kUint8) {
    problems.Add("format", absl::StrFormat("is %s, expected bf16, fp16 or fp32",
                                           Name(spec.format)));
  }
  return problems.ToStatus();
}

}  // namespace weir::calibrate
