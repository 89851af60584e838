// SPDX-License-Identifier: Apache-2.0
#include "scenarios/uneven_split.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/layout.h"

namespace weir::scenarios {
namespace {

constexpr char kFirst[] = "parallelism.decoder_first_pipeline_num_layers";
constexpr char kLast[] = "parallelism.decoder_last_pipeline_num_layers";
constexpr char kEmbedding[] =
    "parallelism.account_for_embedding_in_pipeline_split";
constexpr char kLoss[] = "parallelism.account_for_loss_in_pipeline_split";

int64_t RanksOrOne(uint32_t n) { return std::max<int64_t>(n, 1); }

bool Accounts(const Parallelism& parallelism) {
  return parallelism.account_for_embedding_in_pipeline_split() ||
         parallelism.account_for_loss_in_pipeline_split();
}

const char* FieldOf(const Parallelism& parallelism) {
  if (parallelism.decoder_first_pipeline_num_layers() > 0) return kFirst;
  if (parallelism.decoder_last_pipeline_num_layers() > 0) return kLast;
  return parallelism.account_for_embedding_in_pipeline_split() ? kEmbedding
                                                               : kLoss;
}

// Returns the blocks of every pipeline rank. Counts the ends as blocks if they
// are accounted for.
std::optional<std::vector<int64_t>> BlocksOfRanks(
    Problems& problems, const Parallelism& parallelism, int64_t num_blocks) {
  const int64_t ranks = RanksOrOne(parallelism.pipeline());
  const int64_t first = parallelism.decoder_first_pipeline_num_layers();
  const int64_t last = parallelism.decoder_last_pipeline_num_layers();
  const int64_t ends = (parallelism.account_for_embedding_in_pipeline_split() +
                        parallelism.account_for_loss_in_pipeline_split());
  const int64_t others = ranks - (first > 0) - (last > 0);
  const int64_t left = num_blocks + ends - first - last;
  const bool fits =
      others > 0 ? left > 0 && left % others == 0 : others == 0 && left == 0;
  if (!fits) {
    problems.Add(
        FieldOf(parallelism),
        absl::StrCat("leaves ", left,
                     Accounts(parallelism) ? " layers (with " : "",
                     Accounts(parallelism) ? absl::StrCat(ends, " of the ends)")
                                           : " blocks",
                     " of the model's ", num_blocks, " blocks for ",
                     std::max<int64_t>(others, 0), " of parallelism.pipeline ",
                     ranks, " ranks, expected a positive multiple of these"));
    return {};
  }
  std::vector<int64_t> blocks(ranks, others > 0 ? left / others : 0);
  if (first > 0) blocks.front() = first;
  if (last > 0) blocks.back() = last;
  return blocks;
}

}  // namespace

bool SplitsUnevenly(const Parallelism& parallelism) {
  return parallelism.decoder_first_pipeline_num_layers() > 0 ||
         parallelism.decoder_last_pipeline_num_layers() > 0 ||
         Accounts(parallelism);
}

void ClearUnevenSplit(Parallelism* parallelism) {
  parallelism->clear_decoder_first_pipeline_num_layers();
  parallelism->clear_decoder_last_pipeline_num_layers();
  parallelism->clear_account_for_embedding_in_pipeline_split();
  parallelism->clear_account_for_loss_in_pipeline_split();
}

void CheckUnevenSplit(Problems& problems, const Parallelism& parallelism) {
  if (!SplitsUnevenly(parallelism)) return;
  const auto refuse = [&](bool given, const char* other) {
    if (!given) return;
    problems.Add(FieldOf(parallelism),
                 absl::StrCat("cannot be combined with ", other));
  };
  refuse(!parallelism.layout().empty(), "parallelism.layout");
  refuse(!parallelism.blocks_per_stage().empty(),
         "parallelism.blocks_per_stage");
  const bool sets_counts =
      parallelism.decoder_first_pipeline_num_layers() > 0 ||
      parallelism.decoder_last_pipeline_num_layers() > 0;
  refuse(sets_counts && parallelism.account_for_embedding_in_pipeline_split(),
         kEmbedding);
  refuse(sets_counts && parallelism.account_for_loss_in_pipeline_split(),
         kLoss);
}

void FillUnevenSplit(Problems& problems, const Model& model,
                     Parallelism* parallelism) {
  if (!SplitsUnevenly(*parallelism)) return;
  const bool measured = model.has_measured();
  const auto of_ranks = BlocksOfRanks(
      problems, *parallelism,
      measured ? model.measured().layers_size()
               : static_cast<int64_t>(model.transformer().num_layers()));
  if (!of_ranks.has_value()) return;
  const int64_t chunks = RanksOrOne(parallelism->chunks());
  std::vector<int> blocks;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    for (size_t rank = 0; rank < of_ranks->size(); ++rank) {
      const int64_t of_rank = (*of_ranks)[rank];
      if (of_rank % chunks != 0) {
        problems.Add(FieldOf(*parallelism),
                     absl::StrCat("gives rank ", rank, " ", of_rank,
                                  " blocks, expected a multiple of "
                                  "parallelism.chunks ",
                                  chunks));
        return;
      }
      blocks.push_back(static_cast<int>(of_rank / chunks));
    }
  }
  blocks.front() -= parallelism->account_for_embedding_in_pipeline_split();
  blocks.back() -= parallelism->account_for_loss_in_pipeline_split();
  if (std::count(blocks.begin(), blocks.end(), 0) > 0) {
    parallelism->set_layout(models::LayoutText(
        blocks, static_cast<int>(model.transformer().num_mtp_modules())));
  } else {
    parallelism->mutable_blocks_per_stage()->Assign(blocks.begin(),
                                                    blocks.end());
  }
  ClearUnevenSplit(parallelism);
}

}  // namespace weir::scenarios
