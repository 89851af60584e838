// SPDX-License-Identifier: Apache-2.0
#include "models/block_limits.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/block_spec.h"

namespace weir::models {
namespace {

constexpr double kMaxWidth = 1e7;
constexpr double kMaxHeads = 1e5;
constexpr double kMaxKinds = 60;

// Checks ranges of fields of one message.
class Ranges {
 public:
  Ranges(std::string prefix, const FieldName& name, Problems* problems)
      : prefix_(std::move(prefix)), name_(name), problems_(*problems) {}

  void Check(absl::string_view field, double value, double low, double high) {
    problems_.CheckRange(name_(absl::StrCat(prefix_, field)), value, low, high);
  }

  void Divides(absl::string_view field, uint32_t value, absl::string_view of,
               uint32_t whole) {
    if (value == 0 || whole % value == 0) return;
    problems_.Add(name_(absl::StrCat(prefix_, field)),
                  absl::StrFormat("is %d, expected a divisor of %s (%d)", value,
                                  name_(of), whole));
  }

 private:
  std::string prefix_;
  const FieldName& name_;
  Problems& problems_;
};

void CheckLatent(const Transformer& transformer, const std::string& prefix,
                 const FieldName& name, Problems* problems) {
  const LatentAttention& latent = transformer.latent_attention();
  Ranges ranges(prefix + "latent_attention.", name, problems);
  ranges.Check("query_rank", latent.query_rank(), 0, kMaxWidth);
  ranges.Check("key_value_rank", latent.key_value_rank(), 1, kMaxWidth);
  ranges.Check("plain_head_size", latent.plain_head_size(), 1, kMaxHeads);
  ranges.Check("rotary_head_size", latent.rotary_head_size(), 0, kMaxHeads);
  ranges.Check("value_head_size", latent.value_head_size(), 1, kMaxHeads);
}

void CheckCompressed(const Transformer& transformer, const std::string& prefix,
                     const FieldName& name, Problems* problems) {
  const CompressedAttention& compressed = transformer.compressed_attention();
  Ranges ranges(prefix + "compressed_attention.", name, problems);
  ranges.Check("query_rank", compressed.query_rank(), 1, kMaxWidth);
  ranges.Check("output_groups", compressed.output_groups(), 1, kMaxHeads);
  ranges.Check("output_rank", compressed.output_rank(), 1, kMaxWidth);
  ranges.Check("ratio", compressed.ratio(), 0, 1e6);
  ranges.Divides("output_groups", compressed.output_groups(), "num_heads",
                 transformer.num_heads());
  Ranges(prefix, name, problems)
      .Check("sliding_window", transformer.sliding_window(), 1, 1e9);
}

void CheckMamba2(const Mamba2& mamba, const std::string& prefix,
                 const FieldName& name, Problems* problems) {
  Ranges ranges(prefix + "mamba2.", name, problems);
  ranges.Check("num_heads", mamba.num_heads(), 1, kMaxHeads);
  ranges.Check("head_size", mamba.head_size(), 1, kMaxHeads);
  ranges.Check("state_size", mamba.state_size(), 1, kMaxHeads);
  ranges.Check("num_groups", mamba.num_groups(), 1, kMaxHeads);
  ranges.Check("convolution_size", mamba.convolution_size(), 0, 1e3);
  ranges.Check("chunk_size", mamba.chunk_size(), 0, 1e6);
  ranges.Divides("num_groups", mamba.num_groups(), "mamba2.num_heads",
                 mamba.num_heads());
}

void CheckDeltaNet(const DeltaNet& net, const std::string& prefix,
                   const FieldName& name, Problems* problems) {
  Ranges ranges(prefix + "delta_net.", name, problems);
  ranges.Check("num_key_heads", net.num_key_heads(), 1, kMaxHeads);
  ranges.Check("num_value_heads", net.num_value_heads(), 0, kMaxHeads);
  ranges.Check("key_head_size", net.key_head_size(), 1, kMaxHeads);
  ranges.Check("value_head_size", net.value_head_size(), 0, kMaxHeads);
  ranges.Check("convolution_size", net.convolution_size(), 0, 1e3);
  ranges.Check("gate_rank", net.gate_rank(), 0, kMaxWidth);
  ranges.Divides("num_key_heads", net.num_key_heads(),
                 "delta_net.num_value_heads", net.num_value_heads());
}

void CheckIndex(const SparseIndex& index, const std::string& prefix,
                const FieldName& name, Problems* problems) {
  Ranges ranges(prefix + "sparse_index.", name, problems);
  const double least = index.shared() ? 0 : 1;
  ranges.Check("num_heads", index.num_heads(), least, kMaxHeads);
  ranges.Check("head_size", index.head_size(), least, kMaxHeads);
  ranges.Check("num_keys", index.num_keys(), 1, 1e9);
}

// Checks what may differ between blocks. `prefix` names the message.
void CheckBlock(const Transformer& transformer, const std::string& prefix,
                const FieldName& name, Problems* problems) {
  Ranges ranges(prefix, name, problems);
  ranges.Check("value_head_size", transformer.value_head_size(), 0, kMaxHeads);
  ranges.Check("shared_feed_forward_size",
               transformer.shared_feed_forward_size(), 0, kMaxWidth);
  ranges.Check("expert_hidden_size", transformer.expert_hidden_size(), 0,
               kMaxWidth);
  ranges.Check("extra_norms", transformer.extra_norms(), 0, 16);
  if (transformer.sliding_window() > 0 && transformer.attention_chunk() > 0) {
    problems->Add(name(prefix + "attention_chunk"),
                  absl::StrFormat("is %d, expected 0: %s is %d",
                                  transformer.attention_chunk(),
                                  name(prefix + "sliding_window"),
                                  transformer.sliding_window()));
  }
  switch (transformer.mixer_case()) {
    case Transformer::kLatentAttention:
      CheckLatent(transformer, prefix, name, problems);
      break;
    case Transformer::kCompressedAttention:
      CheckCompressed(transformer, prefix, name, problems);
      break;
    case Transformer::kMamba2:
      CheckMamba2(transformer.mamba2(), prefix, name, problems);
      break;
    case Transformer::kDeltaNet:
      CheckDeltaNet(transformer.delta_net(), prefix, name, problems);
      break;
    case Transformer::kLightningAttention:
    case Transformer::MIXER_NOT_SET:
      break;
  }
  if (transformer.has_sparse_index()) {
    CheckIndex(transformer.sparse_index(), prefix, name, problems);
  }
}

// Returns the fields of a kind's `block` that all blocks share.
std::vector<std::string> SharedFields(const Transformer& block) {
  static const auto& shared =
      *new std::set<std::string>{"num_layers",
                                 "hidden_size",
                                 "vocabulary_size",
                                 "num_positions",
                                 "num_token_types",
                                 "tied_embeddings",
                                 "post_norm",
                                 "embedding_norm",
                                 "mlm_head",
                                 "pooler",
                                 "head_bias",
                                 "default_sequence_length",
                                 "num_experts",
                                 "experts_per_token",
                                 "next_sentence_head",
                                 "num_dense_blocks",
                                 "expert_block_interval",
                                 "kinds",
                                 "pattern",
                                 "num_mtp_modules",
                                 "mtp_pattern",
                                 "encoder",
                                 "residual_streams",
                                 "residual_block"};
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  block.GetReflection()->ListFields(block, &fields);
  std::vector<std::string> found;
  for (const google::protobuf::FieldDescriptor* field : fields) {
    std::string field_name(field->name());
    if (shared.contains(field_name)) found.push_back(std::move(field_name));
  }
  return found;
}

// Reports letters of a pattern that no kind has.
void CheckPattern(const std::string& pattern, const std::string& letters,
                  absl::string_view field, const FieldName& name,
                  Problems* problems) {
  const size_t at = pattern.find_first_not_of(letters);
  if (at == std::string::npos) return;
  problems->Add(name(field),
                absl::StrFormat("has '%s' at position %d, expected letters of "
                                "kinds (%s)",
                                absl::CHexEscape(pattern.substr(at, 1)), at + 1,
                                letters.empty() ? "there are none" : letters));
}

void CheckKinds(const Transformer& transformer, const FieldName& name,
                Problems* problems) {
  const int num_kinds = transformer.kinds_size();
  if (num_kinds > kMaxKinds) {
    problems->CheckRange(name("kinds"), num_kinds, 0, kMaxKinds);
    return;
  }
  std::string letters;
  std::set<std::string> names;
  bool valid = true;
  const auto refuse = [&](const std::string& field, const std::string& what) {
    problems->Add(name(field), what);
    valid = false;
  };
  for (int i = 0; i < num_kinds; ++i) {
    const BlockKind& kind = transformer.kinds(i);
    const std::string where = absl::StrCat("kinds[", i, "].");
    if (kind.letter().size() != 1 ||
        letters.find(kind.letter()) != std::string::npos) {
      refuse(where + "letter",
             absl::StrCat("is \"", absl::CHexEscape(kind.letter().substr(0, 8)),
                          "\", expected one character of its own"));
    }
    letters += kind.letter();
    if (!names.insert(kind.name()).second) {
      refuse(where + "name",
             absl::StrCat("is \"", absl::CHexEscape(kind.name().substr(0, 40)),
                          "\", expected another name than other kinds"));
    }
    if (kind.no_mixer() && kind.feed_forward() == FEED_FORWARD_NONE) {
      refuse(where + "feed_forward",
             "is FEED_FORWARD_NONE, expected another: no_mixer is true");
    }
    if (kind.feed_forward() == FEED_FORWARD_EXPERTS &&
        transformer.num_experts() == 0) {
      refuse(where + "feed_forward",
             absl::StrCat("is FEED_FORWARD_EXPERTS, expected another: ",
                          name("num_experts"), " is 0"));
    }
    for (const std::string& field : SharedFields(kind.block())) {
      refuse(absl::StrCat(where, "block.", field),
             "is given, expected nothing: all blocks share it");
    }
  }
  if (transformer.pattern().empty() != (num_kinds == 0)) {
    refuse("pattern", num_kinds == 0 ? "is given, expected kinds"
                                     : "is empty, expected letters of kinds");
  }
  CheckPattern(transformer.pattern(), letters, "pattern", name, problems);
  CheckPattern(transformer.mtp_pattern(), letters, "mtp_pattern", name,
               problems);
  if (!valid) return;
  for (int i = 0; i < num_kinds; ++i) {
    Transformer block = transformer;
    block.clear_kinds();
    block.MergeFrom(transformer.kinds(i).block());
    const std::string where = absl::StrCat("kinds[", i, "].block.");
    CheckBlock(block, where, name, problems);
    CheckHeads(
        block,
        [&](absl::string_view field) {
          return name(absl::StrCat(where, field));
        },
        problems);
  }
}

}  // namespace

void CheckBlocks(const Transformer& transformer, const FieldName& name,
                 Problems* problems) {
  CheckBlock(transformer, "", name, problems);
  CheckKinds(transformer, name, problems);
  Ranges ranges("", name, problems);
  ranges.Check("residual_streams", transformer.residual_streams(), 0, 64);
  ranges.Check("residual_block", transformer.residual_block(), 0, kMaxLayers);
  ranges.Check("num_mtp_modules", transformer.num_mtp_modules(), 0, 100);
  ranges.Check("mtp_pattern", transformer.mtp_pattern().size(), 0, 100);
}

void CheckEncoder(const Encoder& encoder, const FieldName& name,
                  Problems* problems) {
  const Transformer& blocks = encoder.blocks();
  const FieldName of_blocks = [&](absl::string_view field) {
    return name(absl::StrCat("encoder.blocks.", field));
  };
  Ranges inner("encoder.blocks.", name, problems);
  inner.Check("num_layers", blocks.num_layers(), 1, kMaxLayers);
  inner.Check("hidden_size", blocks.hidden_size(), 1, 1e6);
  inner.Check("num_heads", blocks.num_heads(), 1, kMaxHeads);
  inner.Check("head_size", blocks.head_size(), 0, kMaxHeads);
  inner.Check("feed_forward_size", blocks.feed_forward_size(), 0, kMaxWidth);
  inner.Check("num_positions", blocks.num_positions(), 0, 1e8);
  inner.Check("num_experts", blocks.num_experts(), 0, 0);
  inner.Check("num_mtp_modules", blocks.num_mtp_modules(), 0, 0);
  CheckHeads(blocks, of_blocks, problems);
  CheckBlock(blocks, "encoder.blocks.", name, problems);
  if (blocks.kinds_size() > 0 || blocks.has_encoder() ||
      !blocks.pattern().empty()) {
    problems->Add(of_blocks("kinds"),
                  "or pattern or encoder is given, expected none");
  }
  Ranges ranges("encoder.", name, problems);
  ranges.Check("patch_elements", encoder.patch_elements(), 1, 1e7);
  ranges.Check("patches_per_image", encoder.patches_per_image(), 1, 1e7);
  ranges.Check("images_per_sequence", encoder.images_per_sequence(), 0, 1e4);
  ranges.Check("patches_per_token", encoder.patches_per_token(), 0, 1e4);
  ranges.Check("projector_size", encoder.projector_size(), 0, kMaxWidth);
  ranges.Check("num_projectors", encoder.num_projectors(), 0, 100);
}

}  // namespace weir::models
