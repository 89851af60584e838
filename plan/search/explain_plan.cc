// SPDX-License-Identifier: Apache-2.0
#include "plan/search/explain_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/units.h"

namespace weir::plan {
namespace {

// Returns the name of a part; "compute" for kernels of the passes.
std::string PartOf(const std::string& name) {
  static const auto& names = *new std::map<std::string, std::string>{
      {"tensor_collectives", "tensor collectives"},
      {"expert_collectives", "expert collectives"},
      {"context_exchange", "exchange of keys and values"},
      {"bubble", "bubble"},
      {"transfers", "exposed transfers"},
      {"reductions", "gradient reductions"},
      {"gathers", "weight all-gathers"},
      {"optimizer", "optimizer step"},
      {"update", "optimizer step"}};
  const auto found = names.find(name);
  return found == names.end() ? "compute" : found->second;
}

std::map<std::string, double> PartsOf(const Result& result) {
  std::map<std::string, double> parts;
  for (const PartSeconds& part : result.parts()) {
    parts[PartOf(part.name())] += part.seconds();
  }
  return parts;
}

// Returns for example "bubble +61.0 ms", largest first, at most `most` parts.
// Parts below a hundredth of the difference are noise.
std::string Differences(const Result& best, const Result& plan,
                        size_t most = std::numeric_limits<size_t>::max()) {
  std::map<std::string, double> more = PartsOf(plan);
  for (const auto& [name, seconds] : PartsOf(best)) more[name] -= seconds;
  std::vector<std::pair<std::string, double>> sorted(more.begin(), more.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) {
                     return std::abs(a.second) > std::abs(b.second);
                   });
  const double least =
      0.01 * std::abs(plan.batch_seconds() - best.batch_seconds());
  std::vector<std::string> words;
  for (const auto& [name, seconds] : sorted) {
    if (std::abs(seconds) <= least || seconds == 0) continue;
    if (words.size() == most) break;
    words.push_back(absl::StrCat(name, seconds > 0 ? " +" : " -",
                                 FormatSeconds(std::abs(seconds))));
  }
  return absl::StrJoin(words, ", ");
}

std::string Part(double more, double than) {
  return absl::StrFormat("%.1f %%", 100 * (more / than - 1));
}

std::string Time(const Confirmed& best, const Confirmed& plan) {
  const double seconds = plan.plan.batch_seconds();
  const double best_seconds = best.plan.batch_seconds();
  const std::string parts = Differences(best.result, plan.result);
  std::string text =
      seconds > best_seconds
          ? absl::StrCat(Part(seconds, best_seconds), " slower (",
                         FormatSeconds(seconds), ", best ",
                         FormatSeconds(best_seconds), ")")
          : absl::StrCat("as fast (", FormatSeconds(seconds), ")");
  if (seconds < best_seconds) {
    text = absl::StrCat(Part(best_seconds, seconds), " faster (",
                        FormatSeconds(seconds), ", best ",
                        FormatSeconds(best_seconds), ")");
  }
  return parts.empty() ? text : absl::StrCat(text, ": ", parts);
}

std::string Memory(const Confirmed& best, const Confirmed& plan) {
  const double bytes = plan.plan.peak_memory_bytes();
  const double best_bytes = best.plan.peak_memory_bytes();
  if (bytes == best_bytes) return "";
  return absl::StrCat(bytes > best_bytes ? "needs " : "saves ",
                      FormatBytes(std::abs(bytes - best_bytes)),
                      bytes > best_bytes ? " more (" : " (", FormatBytes(bytes),
                      ", best ", FormatBytes(best_bytes), ")");
}

std::string Energy(const Confirmed& best, const Confirmed& plan) {
  const double joules = plan.plan.joules_per_step();
  const double best_joules = best.plan.joules_per_step();
  if (!(joules > 0) || joules == best_joules) return "";
  return absl::StrCat("takes ",
                      joules > best_joules ? Part(joules, best_joules)
                                           : Part(best_joules, joules),
                      joules > best_joules ? " more energy" : " less energy");
}

}  // namespace

std::string ShortDifference(const Confirmed& best, const Confirmed& plan) {
  constexpr size_t kMostParts = 2;
  const double seconds = plan.plan.batch_seconds();
  const double best_seconds = best.plan.batch_seconds();
  std::string text = "as fast";
  if (seconds > best_seconds) {
    text = absl::StrCat(Part(seconds, best_seconds), " slower");
  } else if (seconds < best_seconds) {
    text = absl::StrCat(Part(best_seconds, seconds), " faster");
  }
  const std::string parts = Differences(best.result, plan.result, kMostParts);
  return parts.empty() ? text : absl::StrCat(text, ": ", parts);
}

std::string WhyNotBest(Objective objective, const Confirmed& best,
                       const Confirmed& plan) {
  std::vector<std::string> reasons = {Time(best, plan), Memory(best, plan)};
  if (objective == OBJECTIVE_MEMORY) std::swap(reasons[0], reasons[1]);
  reasons.insert(
      objective == OBJECTIVE_ENERGY ? reasons.begin() : reasons.end(),
      Energy(best, plan));
  if (plan.plan.num_gpus() != best.plan.num_gpus()) {
    reasons.push_back(absl::StrCat(plan.plan.num_gpus(), " GPUs, best ",
                                   best.plan.num_gpus()));
  }
  std::erase(reasons, "");
  return absl::StrJoin(reasons, "; ");
}

}  // namespace weir::plan
