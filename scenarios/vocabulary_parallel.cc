// SPDX-License-Identifier: Apache-2.0
#include "scenarios/vocabulary_parallel.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "models/parameters.h"
#include "schedules/options.h"
#include "schedules/registry.h"

namespace weir::scenarios {
namespace {

constexpr char kVocabularyField[] = "parallelism.vocabulary_parallel";
constexpr char kOneFOneB[] = "1f1b";

}  // namespace

int VocabularyBarriers(const Parallelism& parallelism) {
  switch (parallelism.vocabulary_parallel()) {
    case VOCABULARY_ONE_BARRIER:
      return 1;
    case VOCABULARY_TWO_BARRIERS:
      return 2;
    default:
      return 0;
  }
}

void FillVocabularySchedule(Scenario* scenario) {
  const int barriers = VocabularyBarriers(scenario->parallelism());
  if (barriers == 0 || scenario->schedule() != kOneFOneB) return;
  scenario->set_schedule(absl::StrCat(kOneFOneB, ":ahead=", barriers));
}

void CheckVocabularyParallel(Problems& problems, const Scenario& scenario) {
  const VocabularyParallel mode = scenario.parallelism().vocabulary_parallel();
  if (!VocabularyParallel_IsValid(mode)) {
    problems.Add(kVocabularyField,
                 absl::StrCat("is ", mode, ", which is unknown"));
  }
  const int barriers = VocabularyBarriers(scenario.parallelism());
  if (barriers == 0) return;
  if (scenario.has_costs()) {
    problems.Add(kVocabularyField, "cannot be combined with costs");
  }
  if (scenario.parallelism().pipeline() <= 1) {
    problems.Add(kVocabularyField,
                 absl::StrCat("is ", VocabularyParallel_Name(mode),
                              ", expected at least 2 pipeline ranks that share "
                              "the vocabulary, found 1"));
  }
  const auto kind = schedules::FindScheduleKind(scenario.schedule());
  int ahead = -1;
  if (kind.ok() && (*kind)->name == kOneFOneB) {
    const auto spec = schedules::WithOptionsOf(scenario.schedule(), **kind, {});
    if (spec.ok()) {
      const auto option = spec->options.find("ahead");
      if (option == spec->options.end() ||
          !absl::SimpleAtoi(option->second, &ahead)) {
        ahead = 0;
      }
    }
  }
  if (ahead < barriers) {
    problems.Add(kVocabularyField,
                 absl::StrCat("is ", VocabularyParallel_Name(mode),
                              ", expected the schedule 1f1b:ahead=", barriers,
                              " or more, found ", scenario.schedule()));
  }
}

void CheckVocabularyParallel(Problems& problems, const Scenario& scenario,
                             const Model& model) {
  if (VocabularyBarriers(scenario.parallelism()) == 0) return;
  const auto refuse = [&](bool has, const char* what) {
    if (!has) return;
    problems.Add(kVocabularyField,
                 absl::StrCat("is ",
                              VocabularyParallel_Name(
                                  scenario.parallelism().vocabulary_parallel()),
                              ", expected none: ", what));
  };
  const Transformer& transformer = model.transformer();
  refuse(model.has_measured(), "the layers of this model were measured whole");
  if (!model.has_transformer()) return;
  refuse(!models::HasLogits(transformer), "the model has no logits");
  refuse(transformer.mlm_head(), "the head of the model has further layers");
  refuse(transformer.num_mtp_modules() > 0,
         "MTP modules pass through the head again "
         "(training.mtp_num_layers: 0 leaves them out)");
}

}  // namespace weir::scenarios
