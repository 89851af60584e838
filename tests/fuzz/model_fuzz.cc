// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/textproto.h"
#include "models/describe.h"
#include "models/layer_work.h"
#include "models/model.h"

namespace {

void Require(bool fact) {
  if (!fact) std::abort();
}

// Checks that a valid model can be counted, split into layers, printed and read
// back.
void Use(const weir::Model& model) {
  Require(std::isfinite(weir::models::CountParameters(model)));
  const auto again =
      weir::models::ParseModel("again", weir::PrintTextProto(model));
  Require(again.ok());
  const bool small = model.transformer().num_layers() <= 200 &&
                     model.measured().layers_size() <= 200;
  if (!small) return;
  weir::models::WorkSpec spec;
  spec.sequence_length =
      static_cast<int>(weir::models::DefaultSequenceLength(model));
  Require(weir::models::ValidateWorkSpec("fuzz", model, spec).ok());
  for (const weir::models::LayerWork& layer :
       weir::models::LayersOf(model, spec)) {
    Require(std::isfinite(layer.stash_bytes) && layer.stash_bytes >= 0);
    Require(std::isfinite(layer.parameters) && layer.parameters >= 0);
  }
  Require(!weir::models::DescribeModel(model, spec).empty());
  Require(!weir::models::ModelJson(model, spec).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto model = weir::models::ParseModel("fuzz", text);
  if (model.ok()) {
    Use(*model);
  } else {
    Require(!model.status().message().empty());
  }
  return 0;
}
