// SPDX-License-Identifier: Apache-2.0
// One tensor passes between two layers: the residual stream forward, its
// gradient backward.
#include <optional>
#include <vector>

#include "calibrate/execute/stage/stage_block.h"
#include "calibrate/execute/stage/stage_builder.h"
#include "calibrate/execute/stage/stage_embedding_head.h"

namespace weir::calibrate {

void AddLayers(StageBuilder* b) {
  const StageSpec& spec = b->spec();
  const StageSizes& sizes = b->sizes();
  StageProgram& program = b->program();
  const int head_layer = static_cast<int>(b->transformer().num_layers()) + 1;
  const int64_t stream = sizes.tokens * sizes.hidden;
  std::optional<Embedding> embedding;
  std::vector<Block> blocks;
  std::optional<Head> head;
  TensorView x;
  if (spec.first_layer == 0) {
    program.tokens = b->Input("tokens", sizes.tokens, ElementFormat::kInt32);
    embedding.emplace(b, program.tokens);
  } else {
    program.input = x.buffer = b->Input("input", stream, spec.format);
  }
  for (int l = spec.first_layer; l < spec.last_layer; ++l) {
    if (l > 0 && l < head_layer) blocks.emplace_back(b, l);
  }
  if (spec.last_layer > head_layer) {
    program.targets = b->Input("targets", sizes.tokens, ElementFormat::kInt32);
    std::optional<TensorView> table;
    if (embedding && b->transformer().tied_embeddings()) {
      table = embedding->table();
    }
    head.emplace(b, table);
  }

  if (embedding) x = embedding->Forward();
  for (Block& block : blocks) x = block.Forward(x);
  TensorView d;
  if (head) {
    head->Forward(x);
    d = head->BackwardInput();
    head->BackwardWeight();
  } else {
    program.output = x.buffer;
    b->MakeOutput(x);
    program.output_gradient = d.buffer =
        b->Input("output gradient", stream, spec.format);
  }
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    d = block->BackwardInput(d);
    block->BackwardWeight();
  }
  if (embedding) {
    embedding->BackwardWeight(d);
  } else {
    program.input_gradient = d.buffer;
    b->MakeOutput(d);
  }
}

}  // namespace weir::calibrate
