// SPDX-License-Identifier: Apache-2.0
// Ranked figures are those of the full simulation.
#include "sim/rank.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "base/textproto.h"
#include "results/result.pb.h"
#include "scenarios/cluster.h"
#include "schedules/registry.h"
#include "schedules/source.h"
#include "sim/simulate.h"

namespace weir {
namespace {

// A run that a planner may ask for: everything drawn, small.
class Draw {
 public:
  explicit Draw(int seed) : random_(seed) {}

  int Int(int low, int high) {
    return std::uniform_int_distribution<>(low, high)(random_);
  }
  bool OneIn(int n) { return Int(1, n) == 1; }
  template <typename T>
  T Of(std::vector<T> choices) {
    return choices[Int(0, static_cast<int>(choices.size()) - 1)];
  }

  Scenario DrawScenario() {
    Scenario scenario;
    const auto& kinds = AllScheduleKinds();
    scenario.set_schedule(std::string(
        OneIn(3) ? "1f1b" : kinds[Int(0, std::ssize(kinds) - 1)].name));
    Parallelism* parallelism = scenario.mutable_parallelism();
    parallelism->set_pipeline(Of<int>({1, 2, 2, 3, 4, 4}));
    parallelism->set_tensor(Of<int>({1, 1, 2, 4, 8}));
    parallelism->set_data(Of<int>({1, 2, 2, 3, 4, 8}));
    const auto& schedule = scenario.schedule();
    const auto is_one_of = [&](std::vector<std::string> names) {
      return std::find(names.begin(), names.end(), schedule) != names.end();
    };
    parallelism->set_chunks(
        is_one_of({"interleaved", "interleaved-zb", "breadth-first", "hanayo",
                   "zb-v", "v-half", "v-min", "dualpipe-v", "bitpipe"})
            ? 2
            : 1);
    parallelism->set_order(Of<std::string>({"tp-dp-pp", "tp-pp-dp"}));
    parallelism->set_sequence_parallel(parallelism->tensor() > 1 && OneIn(3));
    if (OneIn(6) && parallelism->data() % 2 == 0) {
      parallelism->set_expert(2);
      parallelism->set_sequence_parallel(parallelism->tensor() > 1);
    }
    const int m = Of<int>({1, 2, 4, 6, 8, 12, 24});
    scenario.mutable_batch()->set_microbatch_size(Int(1, 2));
    scenario.mutable_batch()->set_global_batch_size(
        m * scenario.batch().microbatch_size() * parallelism->data());
    scenario.mutable_batch()->set_sequence_length(256);
    scenario.set_cluster(Of<std::string>(
        {"p3-16xlarge", "nc24rs-v3", "dgx-h100", "selene", "dgx-1-v100"}));
    scenario.set_num_nodes(32);
    Transformer* model = scenario.mutable_transformer();
    model->set_num_layers(parallelism->pipeline() * parallelism->chunks() *
                          Int(1, 2));
    model->set_hidden_size(256 * Of<int>({1, 2, 8}));
    model->set_num_heads(8);
    model->set_vocabulary_size(8192);
    model->set_num_positions(256);
    model->set_causal(true);
    model->set_tied_embeddings(OneIn(2));
    if (parallelism->expert() > 1) {
      model->set_num_experts(4);
      model->set_experts_per_token(2);
    }
    Training* training = scenario.mutable_training();
    training->set_precision(Of<Precision>({FP32, MIXED_FP16}));
    training->set_recompute(
        Of<RecomputeMode>({RECOMPUTE_NONE, RECOMPUTE_FULL}));
    if (OneIn(5)) {
      training->set_distributed_optimizer(true);
    } else if (OneIn(5) && parallelism->expert() < 2) {
      training->set_fully_sharded(true);
    }
    Communication* communication = scenario.mutable_communication();
    communication->set_transfers(Of<TransferMode>({OVERLAPPED, BLOCKING}));
    communication->set_gradient_reduction(
        Of<ReductionMode>({REDUCTION_OVERLAPPED, REDUCTION_BLOCKING}));
    communication->set_bucket_bytes(Of<double>({0, 1e6, 1e7}));
    const auto flushes = ScheduleFlushes(schedule);
    if (OneIn(2) && !*flushes) scenario.set_num_batches(Int(1, 4));
    return scenario;
  }

  // What no preset has.
  void Change(ResolvedScenario* resolved) {
    Fabric* fabric = resolved->cluster.mutable_fabric();
    if (OneIn(3)) {
      fabric->set_nodes_per_leaf(Int(1, 4));
      fabric->set_oversubscription(Of<double>({1.5, 4}));
      fabric->set_hop_latency_seconds(1e-6);
    }
    if (OneIn(4)) fabric->set_rail_optimized(!fabric->rail_optimized());
    if (OneIn(6)) {
      resolved->device.mutable_collective_slowdown()->set_value(1.25);
      resolved->device.mutable_copy_slowdown()->set_value(1.1);
    }
    if (OneIn(4)) resolved->cluster.set_plain_links(true);
    if (OneIn(12)) {  // an odd placement
      std::shuffle(resolved->placement.gpus.begin(),
                   resolved->placement.gpus.end(), random_);
    } else if (OneIn(12)) {
      std::reverse(resolved->placement.gpus.begin(),
                   resolved->placement.gpus.end());
    }
    if (OneIn(6)) SlowOneGpu(resolved);
    if (OneIn(6)) SlowOneNode(&resolved->cluster);
    if (OneIn(6)) DropLatencies(&resolved->cluster);
  }

 private:
  void SlowOneGpu(ResolvedScenario* resolved) {
    if (resolved->textbook || !resolved->other_devices.empty()) return;
    DeviceProfile slow = resolved->device;
    slow.mutable_kernel_seconds()->set_value(3e-5);
    slow.mutable_memory_bytes_per_second()->set_value(
        0.5 * slow.memory_bytes_per_second().value());
    resolved->other_devices = {slow};
    const std::vector<int>& gpus = resolved->placement.gpus;
    resolved->gpu_device.assign(*std::max_element(gpus.begin(), gpus.end()) + 1,
                                0);
    resolved->gpu_device[Of(gpus)] = 1;
  }

  // Its adapters.
  void SlowOneNode(Cluster* cluster) {
    const NodeGroup whole = cluster->groups(0);
    const int before = Int(0, std::min<int>(whole.count() - 1, 8));
    cluster->clear_groups();
    const auto add = [&](int count) {
      NodeGroup group = whole;
      group.set_count(count);
      if (count > 0) *cluster->add_groups() = group;
    };
    add(before);
    add(1);
    for (Nic& nic :
         *cluster->mutable_groups()->rbegin()->mutable_node()->mutable_nics()) {
      nic.set_bytes_per_second(0.5 * nic.bytes_per_second());
    }
    add(static_cast<int>(whole.count()) - before - 1);
  }

  static void DropLatencies(Cluster* cluster) {
    cluster->mutable_fabric()->set_latency_seconds(0);
    cluster->mutable_fabric()->set_hop_latency_seconds(0);
    for (NodeGroup& group : *cluster->mutable_groups()) {
      Node* node = group.mutable_node();
      if (node->has_nv_switch()) {
        node->mutable_nv_switch()->set_latency_seconds(0);
      }
      if (node->has_nv_link_mesh()) {
        node->mutable_nv_link_mesh()->set_latency_seconds(0);
      }
      if (node->has_pcie()) node->mutable_pcie()->set_latency_seconds(0);
    }
  }

  std::mt19937 random_;
};

struct Case {
  int seed = 0;
  ResolvedScenario scenario;
};

std::vector<Case> DrawCases(int num_seeds) {
  std::vector<Case> cases;
  for (int seed = 0; seed < num_seeds; ++seed) {
    Draw draw(seed);
    auto resolved = ResolveScenario("test", draw.DrawScenario());
    if (!resolved.ok()) continue;
    draw.Change(&*resolved);
    cases.push_back({seed, *std::move(resolved)});
  }
  return cases;
}

constexpr int kMostRanks = 4;

struct Answer {
  absl::StatusCode code = absl::StatusCode::kUnknown;
  double batch_seconds = 0, makespan_seconds = 0;
  double peak_bytes[kMostRanks] = {};
  bool fits_memory = false, folded = false, extrapolated = false,
       shared_links = false;
};

Answer AnswerOf(const absl::StatusOr<RankedRun>& run) {
  Answer answer;
  answer.code = run.status().code();
  if (!run.ok()) return answer;
  answer.batch_seconds = run->batch_seconds;
  answer.makespan_seconds = run->makespan_seconds;
  std::copy(run->peak_bytes.begin(), run->peak_bytes.end(), answer.peak_bytes);
  answer.fits_memory = run->fits_memory;
  answer.folded = run->folded;
  answer.extrapolated = run->extrapolated;
  answer.shared_links = run->shared_links;
  return answer;
}

Answer AnswerOf(const absl::StatusOr<Result>& result) {
  Answer answer;
  answer.code = result.status().code();
  if (!result.ok()) return answer;
  answer.batch_seconds = result->batch_seconds();
  answer.makespan_seconds = result->makespan_seconds();
  for (const RankResult& rank : result->ranks()) {
    double& peak = answer.peak_bytes[rank.rank()];
    peak = std::max(peak, rank.peak_memory_bytes());
  }
  answer.fits_memory = result->fits_memory();
  return answer;
}

bool AreEqual(const Answer& a, const Answer& b, double tolerance) {
  const auto near = [tolerance](double x, double y) {
    return std::fabs(x - y) <= tolerance * std::fabs(y);
  };
  return a.code == b.code && near(a.batch_seconds, b.batch_seconds) &&
         near(a.makespan_seconds, b.makespan_seconds) &&
         std::equal(a.peak_bytes, a.peak_bytes + kMostRanks, b.peak_bytes,
                    near) &&
         a.fits_memory == b.fits_memory;
}

// In a process of its own: one that has run SimGrid may not be forked, as
// Simulate does.
std::vector<Answer> RankAll(const std::vector<Case>& cases) {
  const size_t bytes = cases.size() * sizeof(Answer);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* answers = new (memory) Answer[cases.size()];
  const pid_t child = fork();
  if (child == 0) {
    Ranker ranker;
    for (size_t i = 0; i < cases.size(); ++i) {
      answers[i] = AnswerOf(ranker.Rank(cases[i].scenario));
    }
    // Whatever was ranked before, the answer is the same, to the last bit.
    int num_others = 0;
    for (size_t i = std::min<size_t>(cases.size(), 400); i-- > 0;) {
      num_others +=
          !AreEqual(AnswerOf(ranker.Rank(cases[i].scenario)), answers[i], 0);
    }
    _exit(num_others > 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const std::vector<Answer> all(answers, answers + cases.size());
  munmap(memory, bytes);
  return all;
}

// Where flows of many sizes share many links, rounding grows along the run:
// there the simulation itself has no answer to nine digits. Such is one that
// the thirteenth digit of a figure moves as far.
bool IsWellConditioned(const Case& one, const Answer& simulated) {
  std::mt19937 random(1);
  for (int i = 0; i < 8; ++i) {
    const auto nudge = [&random](double x) {
      return x * (1 + 1e-13 * std::uniform_real_distribution<>(-1, 1)(random));
    };
    ResolvedScenario other = one.scenario;
    for (NodeGroup& group : *other.cluster.mutable_groups()) {
      Node* node = group.mutable_node();
      for (Nic& nic : *node->mutable_nics()) {
        nic.set_bytes_per_second(nudge(nic.bytes_per_second()));
      }
      if (!node->has_pcie()) continue;
      PcieTree* pcie = node->mutable_pcie();
      pcie->set_uplink_bytes_per_second(nudge(pcie->uplink_bytes_per_second()));
      pcie->set_gpu_bytes_per_second(nudge(pcie->gpu_bytes_per_second()));
      pcie->set_socket_bytes_per_second(nudge(pcie->socket_bytes_per_second()));
      pcie->set_latency_seconds(nudge(pcie->latency_seconds()));
    }
    Fabric* fabric = other.cluster.mutable_fabric();
    fabric->set_latency_seconds(nudge(fabric->latency_seconds()));
    if (!AreEqual(AnswerOf(Simulate(other)), simulated, 1e-10)) return false;
  }
  return true;
}

TEST(RankTest, EqualsTheFullSimulationWhateverIsAsked) {
  const char* more = std::getenv("WEIR_RANK_TEST_SEEDS");
  const std::vector<Case> cases =
      DrawCases(more != nullptr ? std::atoi(more) : 1000);
  const std::vector<Answer> answers = RankAll(cases);
  int num_folded = 0, num_declined = 0, num_extrapolated = 0, num_shared = 0,
      num_alone = 0, num_errors = 0, num_ill_conditioned = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Answer& ranked = answers[i];
    const Placement& place = cases[i].scenario.placement;
    const Answer simulated = AnswerOf(Simulate(cases[i].scenario));
    if (!AreEqual(ranked, simulated, 1e-9)) {
      if (!IsWellConditioned(cases[i], simulated)) {
        ++num_ill_conditioned;
        continue;
      }
      ADD_FAILURE() << "seed " << cases[i].seed << ": ranked "
                    << ranked.batch_seconds << ", simulated "
                    << simulated.batch_seconds << ", peak "
                    << ranked.peak_bytes[0] << ", " << simulated.peak_bytes[0]
                    << ", folded " << ranked.folded << ", extrapolated "
                    << ranked.extrapolated << ", shared " << ranked.shared_links
                    << "\n"
                    << PrintTextProto(cases[i].scenario.scenario);
      continue;
    }
    num_errors += ranked.code != absl::StatusCode::kOk;
    if (ranked.code != absl::StatusCode::kOk) continue;
    num_folded += ranked.folded;
    num_declined += place.data * place.tensor > 1 && !ranked.folded;
    num_extrapolated += ranked.extrapolated;
    num_shared += ranked.shared_links;
    num_alone += !ranked.shared_links;
  }
  std::cout << cases.size() << " cases: folded " << num_folded << ", declined "
            << num_declined << ", extrapolated " << num_extrapolated
            << ", links shared " << num_shared << ", not shared " << num_alone
            << ", errors " << num_errors << ", ill conditioned "
            << num_ill_conditioned << "\n";
  EXPECT_GT(num_folded, 200);
  EXPECT_GT(num_declined, 20);
  EXPECT_GT(num_extrapolated, 50);
  EXPECT_GT(num_shared, 200);
  EXPECT_GT(num_alone, 100);
  EXPECT_LT(num_ill_conditioned, 10);
}

}  // namespace
}  // namespace weir
