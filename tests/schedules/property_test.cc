// SPDX-License-Identifier: Apache-2.0
// Properties of every kind of schedule, on every small shape that it accepts.
#include <algorithm>
#include <cctype>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "schedules/registry.h"
#include "schedules/validate.h"
#include "schedules/walk.h"
#include "tests/oracle.h"

namespace weir::schedules::property_test {

constexpr double kRounding = 1e-9;

PassCosts UnequalCosts(int num_stages) {
  PassCosts costs;
  for (int s = 0; s < num_stages; ++s) {
    costs.stages.push_back({.forward = 1 + 0.1 * (s % 3),
                            .backward_input = 1.3 - 0.07 * (s % 4),
                            .backward_weight = 0.9 + 0.03 * (s % 5),
                            .offload = 1.7,
                            .weight_gradient_inputs = 0.4});
  }
  costs.hop = 0.2;
  return costs;
}

class ScheduleProperties : public testing::TestWithParam<std::string> {
 protected:
  static const ScheduleKind& Kind() { return **FindScheduleKind(GetParam()); }

  // Calls check(spec, schedule) for every legal shape of a grid.
  static void ForEveryShape(
      const std::function<void(const ScheduleSpec&, const Schedule&)>& check);
};

void ScheduleProperties::ForEveryShape(
    const std::function<void(const ScheduleSpec&, const Schedule&)>& check) {
  int num_shapes = 0;
  for (int p : {1, 2, 3, 4, 6}) {
    for (int m : {1, 2, 3, 4, 6, 8, 12}) {
      for (int v : {1, 2, 3, 4}) {
        for (int batches : {1, 3}) {
          const ScheduleSpec spec = {.num_ranks = p,
                                     .num_microbatches = m,
                                     .num_chunks = v,
                                     .num_batches = batches,
                                     .costs = UnequalCosts(p * v)};
          if (!Kind().check(spec).ok()) continue;
          SCOPED_TRACE(
              absl::StrCat("p ", p, " m ", m, " v ", v, " batches ", batches));
          check(spec, Kind().generate(spec));
          if (HasFatalFailure() || HasNonfatalFailure()) return;
          ++num_shapes;
        }
      }
    }
  }
  EXPECT_GE(num_shapes, 3);
}

// Returns the busy time of a rank. An overlapped pair counts once.
double Busy(const Schedule& schedule, const PassCosts& costs, int rank) {
  double busy = 0;
  const std::vector<Action>& actions = schedule.rank_actions[rank];
  for (size_t i = 0; i < actions.size(); ++i) {
    if (!IsCompute(actions[i].op)) continue;
    if (actions[i].overlaps_next) {
      busy += costs.overlapped(actions[i], actions[i + 1]);
      ++i;
    } else {
      busy += costs.duration(actions[i]);
    }
  }
  return busy;
}

// Returns the time of a single microbatch through all stages and back.
double CriticalPath(const Schedule& schedule, const PassCosts& costs,
                    int microbatch) {
  double path = 0;
  for (int s = 0; s < schedule.num_stages; ++s) {
    const StagePassCosts& stage = costs.of(s);
    path += stage.forward;
    if (!schedule.forward_only) path += stage.backward_input;
    if (s == 0) continue;
    const bool moves =
        schedule.rank_of(s, microbatch) != schedule.rank_of(s - 1, microbatch);
    if (moves) path += (schedule.forward_only ? 1 : 2) * costs.hop;
  }
  return path;
}

TEST_P(ScheduleProperties, ValidAndTheSameEveryTime) {
  ForEveryShape([](const ScheduleSpec& spec, const Schedule& schedule) {
    ASSERT_TRUE(ValidateSchedule(schedule).ok()) << ValidateSchedule(schedule);
    const Schedule again = Kind().generate(spec);
    EXPECT_EQ(schedule.rank_actions, again.rank_actions);
    EXPECT_EQ(schedule.routes, again.routes);
    EXPECT_EQ(schedule.weights, again.weights);
    EXPECT_EQ(schedule.resident_activations, again.resident_activations);
    EXPECT_EQ(schedule.name, Kind().name);
    EXPECT_EQ(schedule.flush, Kind().flush);
  });
}

TEST_P(ScheduleProperties, NotFasterThanItsWorkOrItsLongestPath) {
  ForEveryShape([](const ScheduleSpec& spec, const Schedule& schedule) {
    const WalkTimes times = TimedWalk(schedule, spec.costs);
    const double makespan = times.makespan() * (1 + kRounding);
    EXPECT_LE(times.span(), makespan);
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      EXPECT_GE(makespan, Busy(schedule, spec.costs, rank));
    }
    for (int k = 0; k < schedule.total_microbatches(); ++k) {
      EXPECT_GE(makespan, CriticalPath(schedule, spec.costs, k));
    }
  });
}

TEST_P(ScheduleProperties, EveryPassOfEveryMicrobatchIsDoneOnce) {
  ForEveryShape([](const ScheduleSpec& spec, const Schedule& schedule) {
    std::vector<double> expected(schedule.num_ranks);
    for (int s = 0; s < schedule.num_stages; ++s) {
      const StagePassCosts& stage = spec.costs.of(s);
      for (int k = 0; k < schedule.total_microbatches(); ++k) {
        double& work = expected[schedule.rank_of(s, k)];
        work += stage.forward;
        if (!schedule.forward_only) work += stage.fused_backward();
      }
    }
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      EXPECT_NEAR(Busy(schedule, spec.costs, rank), expected[rank],
                  kRounding * expected[rank]);
    }
  });
}

oracle::Costs OracleCosts(const PassCosts& costs) {
  oracle::Costs same;
  for (const StagePassCosts& stage : costs.stages) {
    same.forward_seconds.push_back(stage.forward);
    same.backward_seconds.push_back(stage.fused_backward());
    same.backward_input_seconds.push_back(stage.backward_input);
    same.backward_weight_seconds.push_back(stage.backward_weight);
    same.offload_seconds.push_back(stage.offload);
  }
  same.latency_seconds = costs.hop;
  return same;
}

TEST_P(ScheduleProperties, ReplayEqualsTheLongestPath) {
  ForEveryShape([](const ScheduleSpec& spec, const Schedule& schedule) {
    const WalkTimes times = TimedWalk(schedule, spec.costs);
    const absl::StatusOr<oracle::Timing> expected =
        oracle::Evaluate(schedule, OracleCosts(spec.costs));
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      for (size_t i = 0; i < times.start[rank].size(); ++i) {
        ASSERT_NEAR(times.start[rank][i], expected->start_seconds[rank][i],
                    kRounding * (1 + times.start[rank][i]))
            << "rank " << rank << " position " << i;
        ASSERT_NEAR(times.end[rank][i], expected->end_seconds[rank][i],
                    kRounding * (1 + times.end[rank][i]));
      }
    }
  });
}

// Returns the largest number of (stage, microbatch) activations on the rank in
// its order. An offload frees memory when Schedule::resident_activations
// requires it.
int PeakKeptActivations(const Schedule& schedule, int rank) {
  int held = 0, leaving = 0, peak = 0;
  for (const Action& action : schedule.rank_actions[rank]) {
    const int count = action.num_microbatches;
    if (action.op == Op::kForward || action.op == Op::kReload) held += count;
    if (action.op == Op::kOffload) leaving += count;
    while (leaving > 0 && held > schedule.resident_activations) {
      --held;
      --leaving;
    }
    peak = std::max(peak, held);
    if (MakesInputGradient(action.op)) held -= count;
  }
  return peak;
}

// Returns the largest number of (stage, microbatch) activations of a rank
// according to the kind's section in docs/schedules.md, limited by the number
// that there are.
int MostActivations(absl::string_view kind, const ScheduleSpec& spec,
                    const Schedule& schedule, int rank) {
  const int p = spec.num_ranks, v = spec.num_chunks;
  const int total = schedule.total_microbatches();
  const int m = spec.num_microbatches;
  const int left = p - rank;  // number of ranks from this one on
  const int from_end = std::min(rank, p - 1 - rank);
  const int per_round = m / std::max(1, m / p);
  const std::map<absl::string_view, int> most = {
      {"gpipe", m},
      {"breadth-first", m * v},
      {"2bp-gpipe", m},
      {"1f1b", left},
      {"dapple-pa", left},
      {"dapple-pb", 2 * left - 1},
      {"bapipe-as", left},
      {"bapipe-fbp-as", 2 * left},
      {"bapipe-sno", left},
      {"bapipe-so", 2 * left - 1},
      {"spp", m},
      {"interleaved-1f1b", m == p ? p * v : 2 * left - 1 + (v - 1) * p},
      {"interleaved-zb", left + (v - 1) * per_round},
      {"2bp-naive", 1},
      {"2bp-1f1b-1", left},
      {"2bp-1f1b-2", left},
      {"zb-h1", left},
      {"zb-h2", 2 * left - 1},
      {"zb-1p", p},
      {"zb-2p", 2 * p},
      {"zb-v", 2 * p},
      {"v-half", 2 * ((p + 2) / 2)},
      {"v-min", 2 * ((p + 4) / 3)},
      {"dualpipe", p + 1},
      {"dualpipe-v", 2 * p + 1},
      {"optpipe", p},
      {"pipedream", left},
      {"pipedream-2bw", left},
      {"spectrain", left},
      {"xpipe", left},
      {"pipemare", 2 * left},
      {"pipelined-backprop", 2 * left - 1},
      {"chimera", p / 2 + 1 + from_end},
      {"bitpipe", (v - 1) * p + p / 2 + 1 + from_end},
      {"hanayo", (v - 1) * p + rank + 1},
      {"timeprest", m + left - 1},
      {"accept", left},
  };
  const auto found = most.find(kind);
  EXPECT_NE(found, most.end()) << kind;
  return found == most.end() ? 0 : std::min(found->second, total * v);
}

// Checks that no rank exceeds the maximum, and that for some shape with several
// ranks every rank reaches it. For an order by costs, whose maximum is a limit,
// the first rank must reach it.
TEST_P(ScheduleProperties, KeepsAsManyActivationsAsItClaims) {
  bool is_reached = false;
  ForEveryShape([&](const ScheduleSpec& spec, const Schedule& schedule) {
    if (schedule.forward_only) {  // activations need not wait for a backward
      is_reached = true;
      return;
    }
    bool equal = spec.num_ranks >= 3 && spec.num_microbatches >= spec.num_ranks;
    for (int rank = 0; rank < schedule.num_ranks; ++rank) {
      const int peak = PeakKeptActivations(schedule, rank);
      const int most = MostActivations(Kind().name, spec, schedule, rank);
      EXPECT_LE(peak, most) << "rank " << rank;
      equal &= peak == most || (Kind().uses_costs && rank > 0);
    }
    is_reached |= equal;
  });
  EXPECT_TRUE(is_reached);
}

class RandomSpecs {
 public:
  explicit RandomSpecs(const ScheduleKind& kind) : kind_(kind), random_(7) {}

  ScheduleSpec Spec() {
    ScheduleSpec spec;
    spec.num_ranks = Count(9);
    spec.num_microbatches =
        One(2) ? Count(20) : std::clamp(spec.num_ranks, 1, 9) * Whole(1, 3);
    spec.num_chunks = One(2) ? 1 : Count(3);
    spec.num_batches = One(2) ? 1 : Count(3);
    if (One(3)) spec.costs = Costs(spec);
    return spec;
  }

  std::string Name() {
    std::string name(kind_.name);
    for (const ScheduleOption& option : kind_.options) {
      if (One(4)) absl::StrAppend(&name, ":", option.name, "=", Value(option));
    }
    if (One(30)) absl::StrAppend(&name, ":", Garbage(), "=", Garbage());
    if (One(30)) absl::StrAppend(&name, ":", Garbage());
    return name;
  }

 private:
  int Whole(int low, int high) {
    return std::uniform_int_distribution<>(low, high)(random_);
  }
  bool One(int in) { return Whole(1, in) == 1; }

  // Returns a mostly small number, never one that is legal but slow to
  // generate.
  int Count(int most) {
    if (One(40)) return std::numeric_limits<int>::max();
    if (One(40)) return std::numeric_limits<int>::min();
    return One(8) ? Whole(-1, 0) : Whole(1, most);
  }

  double Cost() {
    if (One(60)) return std::numeric_limits<double>::quiet_NaN();
    if (One(60)) return std::numeric_limits<double>::infinity();
    if (One(60)) return -1;
    if (One(30)) return 1e300;
    return One(6) ? 0 : std::uniform_real_distribution<>(0, 3)(random_);
  }

  PassCosts Costs(const ScheduleSpec& spec) {
    PassCosts costs;
    const int num_stages = One(8) ? Whole(0, 5)
                                  : std::clamp(spec.num_ranks, 0, 9) *
                                        std::clamp(spec.num_chunks, 0, 3);
    for (int s = 0; s < num_stages; ++s) {
      costs.stages.push_back({.forward = Cost(),
                              .backward_input = Cost(),
                              .backward_weight = Cost(),
                              .offload = Cost(),
                              .activation = Cost(),
                              .weight_gradient_inputs = Cost()});
    }
    if (One(2)) costs.hop = Cost();
    return costs;
  }

  std::string Value(const ScheduleOption& option) {
    switch (Whole(0, 6)) {
      case 0:
        return Garbage();
      case 1:
        return absl::StrCat(Whole(-2, 9));
      case 2:
        return absl::StrCat(Cost());
      case 3: {  // a word of the option's summary
        const std::vector<std::string> words = Words(option.summary);
        return words[Whole(0, static_cast<int>(words.size()) - 1)];
      }
      case 4:
        return absl::StrCat(Whole(1, 4), "-", Whole(1, 4));
      default:
        return std::string(option.standard);
    }
  }

  static std::vector<std::string> Words(absl::string_view text) {
    std::vector<std::string> words(1);
    for (char c : text) {
      const bool is_inside =
          std::isalnum(static_cast<unsigned char>(c)) || c == '-';
      if (is_inside) {
        words.back() += c;
      } else if (!words.back().empty()) {
        words.emplace_back();
      }
    }
    return words;
  }

  std::string Garbage() {
    std::string text;
    for (int i = Whole(0, 6); i > 0; --i) {
      text += static_cast<char>(Whole(0, 255));
    }
    return text;
  }

  const ScheduleKind& kind_;
  std::mt19937 random_;
};

// Every spec gives either a valid schedule or a refusal with a suggestion.
TEST_P(ScheduleProperties, RandomSpecsAreServedOrRefusedByName) {
  RandomSpecs specs(Kind());
  int num_served = 0;
  for (int i = 0; i < 1000; ++i) {
    const ScheduleSpec spec = specs.Spec();
    const std::string name = specs.Name();
    SCOPED_TRACE(absl::StrCat(absl::CHexEscape(name), " p ", spec.num_ranks,
                              " m ", spec.num_microbatches, " v ",
                              spec.num_chunks, " batches ", spec.num_batches));
    const absl::StatusOr<Schedule> schedule = GenerateSchedule(name, spec);
    if (schedule.ok()) {
      ++num_served;
      ASSERT_TRUE(ValidateSchedule(*schedule).ok())
          << ValidateSchedule(*schedule);
      continue;
    }
    ASSERT_EQ(schedule.status().code(), absl::StatusCode::kInvalidArgument);
    std::vector<std::string> fields = {
        "pipeline",     "num_microbatches", "chunks", "num_batches",
        "costs.stages", "costs.hop",        "option "};
    for (const ScheduleOption& option : Kind().options) {
      fields.emplace_back(option.name);
    }
    const std::string message(schedule.status().message());
    EXPECT_EQ(message.rfind(GetParam(), 0), 0u) << message;
    EXPECT_TRUE(std::any_of(fields.begin(), fields.end(),
                            [&](const std::string& field) {
                              return message.find(field) != std::string::npos;
                            }))
        << message;
  }
  EXPECT_GT(num_served, 10);
}

std::vector<std::string> KindNames() {
  std::vector<std::string> names;
  for (const ScheduleKind& kind : AllScheduleKinds()) {
    names.emplace_back(kind.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(AllKinds, ScheduleProperties,
                         testing::ValuesIn(KindNames()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return absl::StrReplaceAll(info.param, {{"-", "_"}});
                         });

}  // namespace weir::schedules::property_test
