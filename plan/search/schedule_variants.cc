// SPDX-License-Identifier: Apache-2.0
#include "plan/search/schedule_variants.h"

#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "schedules/options.h"
#include "schedules/registry.h"
#include "schedules/semantics.h"
#include "schedules/source.h"

namespace weir::plan {
namespace {

// Returns a small schedule of this name, of any shape that it accepts.
std::optional<schedules::Schedule> Sample(const schedules::ScheduleKind& kind,
                                          absl::string_view name) {
  for (const int chunks : {2, 1}) {
    for (const int microbatches : {8, 4, 16}) {
      schedules::ScheduleSpec spec;
      spec.num_ranks = 4;
      spec.num_chunks = chunks;
      spec.num_microbatches = microbatches;
      spec.num_batches = kind.flush ? 1 : 2;
      const auto full = schedules::WithOptionsOf(name, kind, spec);
      if (full.ok() && kind.check(*full).ok()) return kind.generate(*full);
    }
  }
  return {};
}

// Runtimes may run kinds that split backwards without a barrier at the
// optimizer step. A bound with it does not hold for them.
std::string KeyOfKind(const schedules::ScheduleKind& kind,
                      const schedules::Schedule& sample) {
  return absl::StrCat(BoundKey(sample), kind.splits_backward ? "/split" : "");
}

std::string SampledBoundKey(const schedules::ScheduleKind& kind,
                            absl::string_view name) {
  const std::optional<schedules::Schedule> sample = Sample(kind, name);
  return sample.has_value() ? KeyOfKind(kind, *sample) : "";
}

std::vector<std::string> MemoryLimits(const schedules::ScheduleKind& kind,
                                      int num_ranks) {
  const absl::string_view name = kind.name;
  std::set<int> limits;
  if (absl::StartsWith(name, "dapple")) {
    limits = {(num_ranks + 1) / 2, (3 * num_ranks + 3) / 4};
    limits.erase(num_ranks);
  } else if (name == "optpipe") {
    limits = {(num_ranks + 3) / 4, (num_ranks + 1) / 2, 3 * num_ranks / 2,
              2 * num_ranks};
    limits.erase(num_ranks);
  } else if (name == "zb-1p") {
    limits = {(5 * num_ranks + 3) / 4, (3 * num_ranks + 1) / 2};
  } else {
    limits = {(3 * num_ranks + 1) / 2};
  }
  std::vector<std::string> texts;
  for (const int limit : limits) {
    texts.push_back(absl::StrCat("memory-limit=", limit));
  }
  return texts;
}

// Returns nondefault values of an option to try, each on its own.
std::vector<std::string> CandidateOptions(
    const schedules::ScheduleKind& kind,
    const schedules::ScheduleOption& option, int num_ranks) {
  if (option.name == "memory-limit") return MemoryLimits(kind, num_ranks);
  if (option.name == "backward-order") {
    return {"backward-order=forward"};
  }
  if (option.name == "concatenation") {
    return {"concatenation=forward-doubling", "concatenation=backward-halving"};
  }
  if (option.name == "pipelines" && num_ranks % 4 == 0) return {"pipelines=4"};
  return {};
}

void Append(const schedules::ScheduleKind& kind, const PlannedSchedule& plain,
            const std::string& name, int num_ranks,
            std::vector<PlannedSchedule>* schedules) {
  PlannedSchedule planned = plain;
  planned.name = schedules::WithOwnName(name, kind);
  planned.own_stages = absl::StrContains(name, "replicas");
  const bool is_plain = schedules::WithoutOptions(name) == name;
  const auto set_places = [&](bool sampled) {
    planned.bound_key =
        sampled ? SampledBoundKey(kind, planned.name) : plain.bound_key;
    planned.bound_proxy =
        planned.bound_key == plain.bound_key ? plain.bound_proxy : "";
  };
  set_places(!is_plain);
  schedules->push_back(planned);
  if (!is_plain) return;
  for (const schedules::ScheduleOption& option : kind.options) {
    for (const std::string& text : CandidateOptions(kind, option, num_ranks)) {
      planned.name = absl::StrCat(kind.name, ":", text);
      set_places(option.name != "memory-limit");
      schedules->push_back(planned);
    }
  }
}

absl::StatusOr<std::set<const schedules::ScheduleKind*>> KindsOf(
    const std::string& label, const Runtime& runtime) {
  std::set<const schedules::ScheduleKind*> kinds;
  for (const std::string& name : runtime.schedules()) {
    const auto kind = schedules::FindScheduleKind(name);
    if (!kind.ok()) {
      return absl::NotFoundError(absl::StrCat(
          label, ": runtime ", runtime.name(), ": ", kind.status().message()));
    }
    kinds.insert(*kind);
  }
  return kinds;
}

}  // namespace

bool IsLegal(const PlannedSchedule& schedule, const Shape& shape,
             int num_microbatches) {
  if ((!schedule.flush && shape.sharding != Sharding::kNone) ||
      (schedule.own_stages && shape.cut != Cut::kEven) ||
      (schedule.single_samples && shape.microbatch_size > 1) ||
      (shape.vocabulary != VOCABULARY_PARALLEL_UNSPECIFIED &&
       schedule.name != "1f1b") ||
      !Interleaves(schedule, shape)) {
    return false;
  }
  const auto kind = schedules::FindScheduleKind(schedule.name);
  if (!kind.ok()) return false;
  schedules::ScheduleSpec spec;
  spec.num_ranks = shape.pipeline;
  spec.num_chunks = shape.chunks;
  spec.num_microbatches = num_microbatches;
  const auto full = schedules::WithOptionsOf(schedule.name, **kind, spec);
  return full.ok() && (*kind)->check(*full).ok();
}

std::string BoundKey(const schedules::Schedule& schedule) {
  // All fields have to be named here: a new one does not compile until it is in
  // the key or left out. Left out are the name, the numbers of ranks (it
  // follows from the routes), microbatches and batches, and the limit of
  // activations, which only restricts the order.
  const auto& [name, num_ranks, num_stages, num_microbatches, num_batches,
               flush, forward_only, routes, microbatches_per_route_turn,
               rank_actions, weights, resident_activations,
               compressed_transfers] = schedule;
  bool has_pairs = false;
  std::set<int> spans;
  for (const std::vector<schedules::Action>& actions : rank_actions) {
    for (const schedules::Action& action : actions) {
      has_pairs |= action.overlaps_next;
      spans.insert(action.num_microbatches);
    }
  }
  const auto& [microbatches_per_update, times_replicas, forward, delay_updates,
               backward, prediction, forward_distance, backward_distance,
               estimate_buffers, predicted_copies] = weights;
  std::string text =
      absl::StrCat(flush, forward_only, compressed_transfers, has_pairs,
                   static_cast<int>(prediction), "/", absl::StrJoin(spans, ","),
                   "/", num_stages, "/", microbatches_per_route_turn);
  // Without a flush, a batch includes all costs of weights: updates, saved
  // versions (which depend on the order) and estimates.
  if (!flush) {
    absl::StrAppend(&text, "/", microbatches_per_update, "/", times_replicas,
                    static_cast<int>(forward), static_cast<int>(backward), "/",
                    delay_updates, "/", estimate_buffers, "/", predicted_copies,
                    "/", absl::StrJoin(forward_distance, ","), "/",
                    absl::StrJoin(backward_distance, ","));
    const auto semantics = schedules::InterpretSchedule(schedule);
    absl::StrAppend(&text, "/",
                    semantics.ok()
                        ? absl::StrJoin(semantics->max_live_versions, ",")
                        : name);
  }
  for (const auto& route : routes) {
    absl::StrAppend(&text, "/", absl::StrJoin(route, "-"));
  }
  return text;
}

absl::StatusOr<std::vector<PlannedSchedule>> SchedulesToPlan(
    const std::string& label, const PlanSpace& space, int num_ranks,
    const Runtime& runtime) {
  struct Properties {
    PlannedSchedule plain;
    bool lossy = false;
  };
  static const std::vector<schedules::ScheduleKind>& kinds =
      schedules::AllScheduleKinds();
  static const auto& known = *new std::vector<Properties>([] {
    std::vector<Properties> all;
    for (const schedules::ScheduleKind& kind : kinds) {
      Properties properties;
      properties.plain.flush = kind.flush;
      properties.plain.single_samples = kind.single_samples;
      const std::optional<schedules::Schedule> sample = Sample(kind, kind.name);
      if (sample.has_value()) {
        properties.plain.forward_only = sample->forward_only;
        properties.lossy = sample->compressed_transfers;
        properties.plain.bound_key = KeyOfKind(kind, *sample);
      }
      all.push_back(properties);
    }
    for (size_t i = 0; i < all.size(); ++i) {
      PlannedSchedule& plain = all[i].plain;
      if (!kinds[i].uses_costs || plain.bound_key.empty()) continue;
      for (size_t k = 0; k < all.size() && plain.bound_proxy.empty(); ++k) {
        if (!kinds[k].uses_costs && all[k].plain.bound_key == plain.bound_key) {
          plain.bound_proxy = std::string(kinds[k].name);
        }
      }
    }
    return all;
  }());
  std::vector<PlannedSchedule> schedules;
  if (space.schedules().empty()) {
    ASSIGN_OR_RETURN(const std::set<const schedules::ScheduleKind*> executed,
                     KindsOf(label, runtime));
    const bool any = space.any_runtime() || executed.empty();
    for (size_t i = 0; i < kinds.size(); ++i) {
      const Properties& properties = known[i];
      if (properties.plain.forward_only || properties.lossy) continue;
      if (!kinds[i].flush && !space.asynchronous()) continue;
      if (kinds[i].flush && !any && !executed.contains(&kinds[i])) continue;
      Append(kinds[i], properties.plain, std::string(kinds[i].name), num_ranks,
             &schedules);
    }
    return schedules;
  }
  std::set<std::string> seen;
  for (std::string name : space.schedules()) {
    if (schedules::IsScheduleFile(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat(label, ": space.schedules has the file ", name,
                       ", expected names (weir schedule list), as a file has "
                       "only one shape"));
    }
    const auto kind = schedules::FindScheduleKind(name);
    if (!kind.ok()) {
      return absl::NotFoundError(
          absl::StrCat(label, ": ", kind.status().message()));
    }
    ASSIGN_OR_RETURN(const int chunks, schedules::TakeChunks(&name));
    RETURN_IF_ERROR(schedules::WithOptionsOf(name, **kind, {}).status());
    if (!seen.insert(absl::StrCat(schedules::WithOwnName(name, **kind), ":",
                                  chunks))
             .second) {
      continue;
    }
    PlannedSchedule plain = known[*kind - kinds.data()].plain;
    plain.chunks = chunks;
    Append(**kind, plain, name, num_ranks, &schedules);
  }
  return schedules;
}

}  // namespace weir::plan
