// SPDX-License-Identifier: Apache-2.0
#include "tests/results/sample.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace weir::results {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

template <typename Columns>
void AddTimes(double start_seconds, double end_seconds, Columns* columns) {
  columns->add_start_seconds(start_seconds);
  columns->add_end_seconds(end_seconds);
}

void AddRank(int replica, int rank, int tensor_rank, Result* result) {
  RankResult* gpu = result->add_ranks();
  gpu->set_rank(rank);
  gpu->set_replica(replica);
  gpu->set_tensor_rank(tensor_rank);
  gpu->set_gpu(result->ranks_size() - 1 + 8);
  gpu->set_busy_seconds(1.0 + 0.125 * replica);
  gpu->set_idle_seconds(0.25 - 0.125 * replica);
  gpu->set_span_seconds(1.25 - 0.03125 * rank);
  gpu->set_exposed_communication_seconds(0.015625 * rank);
  gpu->set_peak_memory_bytes((12 - 2 * rank) * kGiB);
  gpu->set_peak_memory_at_seconds(0.32);
  const double activation_bytes = (4 - rank) * kGiB;
  const auto add_class = [&](const char* name, double bytes) {
    MemoryClass* memory = gpu->add_peak_memory_classes();
    memory->set_name(name);
    memory->set_bytes(bytes);
  };
  add_class("weights", 2 * kGiB);
  add_class("activations", activation_bytes);
  add_class("reserved", gpu->peak_memory_bytes() - 2 * kGiB - activation_bytes);
  gpu->set_peak_activation_microbatches(4 - rank);
  gpu->set_weight_versions(1);
}

}  // namespace

Result SampleRow(absl::string_view schedule, double batch_seconds,
                 double peak_memory_bytes) {
  Result result;
  result.set_name("gpt-1b on two nodes");
  result.set_schedule(std::string(schedule));
  result.set_method("full");
  result.mutable_provenance()->set_weir_version("0.1.0");
  result.mutable_provenance()->set_git_revision("abc1234");
  result.mutable_provenance()->set_simgrid_version("3.32");
  result.mutable_provenance()->set_scenario("name: \"gpt-1b\"\nmodel: \"x\"\n");
  result.set_tensor_parallel(2);
  result.set_pipeline_parallel(4);
  result.set_data_parallel(2);
  result.set_chunks(1);
  result.set_microbatch_size(2);
  result.set_global_batch_size(32);
  result.set_sequence_length(1024);
  result.set_num_microbatches(8);
  result.set_num_batches(1);
  result.set_makespan_seconds(batch_seconds);
  result.set_batch_seconds(batch_seconds);
  result.set_batch_seconds_low(0.75 * batch_seconds);
  result.set_batch_seconds_high(1.25 * batch_seconds);
  result.mutable_uncertainty()->set_figures(0.125);
  result.mutable_uncertainty()->set_step(0.0625);
  result.set_samples_per_second(32 / batch_seconds);
  result.set_tokens_per_second(32 * 1024 / batch_seconds);
  result.set_model_flops_utilization(0.5 / batch_seconds);
  result.set_idle_ratio(0.125);
  StepBreakdown* breakdown = result.mutable_breakdown();
  breakdown->set_compute_seconds(0.75 * batch_seconds);
  breakdown->set_tensor_communication_seconds(0.0625 * batch_seconds);
  breakdown->set_pipeline_transfer_seconds(0.015625 * batch_seconds);
  breakdown->set_data_communication_seconds(0.015625 * batch_seconds);
  breakdown->set_optimizer_seconds(0.0625 * batch_seconds);
  breakdown->set_bubble_seconds(0.09375 * batch_seconds);
  result.set_exposed_communication_ratio(0.09375);
  result.set_weight_versions(1);
  result.set_semantics("equal to minibatch SGD");
  result.set_peak_memory_bytes(peak_memory_bytes);
  result.set_memory_capacity_bytes(15.75 * kGiB);
  result.set_fits_memory(peak_memory_bytes <= 15.75 * kGiB);
  result.set_limit("compute of rank 3, 80.0 % of the time");
  return result;
}

Result SampleResult() {
  Result result = SampleRow("1f1b", 1.25, 12 * kGiB);
  result.add_warnings("the cluster profile is nominal");
  for (int replica = 0; replica < 2; ++replica) {
    for (int rank = 0; rank < 4; ++rank) {
      for (int t = 0; t < 2; ++t) AddRank(replica, rank, t, &result);
    }
  }
  return result;
}

Explanation SampleExplanation() {
  Explanation explanation;
  explanation.result = SampleResult();
  const auto add_part = [&](const char* name, double seconds, double forward) {
    PartSeconds* part = explanation.result.add_parts();
    part->set_name(name);
    part->set_seconds(seconds);
    part->set_forward_seconds(forward);
    part->set_backward_seconds(forward > 0 ? seconds - forward : 0);
  };
  add_part("feed_forward_gemm", 1, 0.25);
  add_part("bubble", 0.25, 0);
  explanation.figures = {
      {"A100", "memory_efficiency", 0.8, "fitted", "a table", -0.125, ""},
      {"A100", "gemm.matrix_rate", 0.9, "fitted",
       "a long source that says where each of the many products was measured",
       -0.75, ""},
      {"megatron-lm", "update_seconds", 0.005, "assumed", "a guess", 0.0001,
       ""}};
  explanation.num_without_influence = 42;
  return explanation;
}

Result GivenCostsResult() {
  Result result;
  result.set_schedule("1f1b");
  result.set_method("full");
  result.set_tensor_parallel(1);
  result.set_pipeline_parallel(40);
  result.set_data_parallel(1);
  result.set_chunks(1);
  result.set_num_microbatches(8);
  result.set_num_batches(1);
  result.set_makespan_seconds(141);
  result.set_batch_seconds(141);
  result.set_idle_ratio(39.0 / 47);
  result.set_weight_versions(1);
  result.set_fits_memory(true);
  for (int rank = 0; rank < 40; ++rank) {
    RankResult* gpu = result.add_ranks();
    gpu->set_rank(rank);
    gpu->set_gpu(rank);
    gpu->set_busy_seconds(24);
    gpu->set_idle_seconds(117);
    gpu->set_peak_activation_microbatches(std::min(8, 40 - rank));
    gpu->set_weight_versions(1);
  }
  return result;
}

Result PipelineTimeline(int num_ranks, int num_microbatches) {
  constexpr double kTransfer = 0.1;
  Result result;
  result.set_schedule("gpipe");
  result.set_pipeline_parallel(num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) {
    RankResult* gpu = result.add_ranks();
    gpu->set_rank(rank);
    gpu->set_gpu(8 + rank);
  }
  Timeline* timeline = result.mutable_timeline();
  std::vector<double> free(num_ranks, 0);
  const auto act = [&](int rank, Timeline::Actions::Op op, int k, double ready,
                       double seconds) {
    auto* actions = timeline->mutable_actions();
    const double start = std::max(ready, free[rank]);
    actions->add_gpu(rank);
    actions->add_op(op);
    actions->add_stage(rank);
    actions->add_microbatch(k);
    AddTimes(start, start + seconds, actions);
    free[rank] = start + seconds;
    timeline->mutable_memory()->add_gpu(rank);
    timeline->mutable_memory()->add_seconds(start);
    timeline->mutable_memory()->add_bytes(1e9 * (k + 1) +
                                          0.5 * static_cast<int>(op));
    return free[rank];
  };
  const auto send = [&](int from, int to, int k, double start) {
    auto* transfers = timeline->mutable_transfers();
    transfers->add_from_gpu(from);
    transfers->add_to_gpu(to);
    transfers->add_kind(from < to ? Timeline::Transfers::ACTIVATION
                                  : Timeline::Transfers::GRADIENT);
    transfers->add_stage(from);
    transfers->add_microbatch(k);
    transfers->add_bytes(1048576);
    AddTimes(start, start + kTransfer, transfers);
    return start + kTransfer;
  };
  for (int k = 0; k < num_microbatches; ++k) {
    double ready = 0;
    for (int rank = 0; rank < num_ranks; ++rank) {
      ready = act(rank, Timeline::Actions::FORWARD, k, ready, 1);
      if (rank + 1 < num_ranks) ready = send(rank, rank + 1, k, ready);
    }
  }
  for (int k = 0; k < num_microbatches; ++k) {
    double ready = 0;
    for (int rank = num_ranks - 1; rank >= 0; --rank) {
      // Odd stages split their backward.
      const double done = act(rank,
                              rank % 2 ? Timeline::Actions::BACKWARD_INPUT
                                       : Timeline::Actions::BACKWARD,
                              k, ready, 1);
      if (rank > 0) ready = send(rank, rank - 1, k, done);
      if (rank % 2) act(rank, Timeline::Actions::BACKWARD_WEIGHT, k, done, 1);
    }
  }
  for (int rank = 0; rank < num_ranks; ++rank) {
    for (const auto kind : {Timeline::Collectives::TENSOR,
                            Timeline::Collectives::GRADIENT_REDUCTION}) {
      auto* collectives = timeline->mutable_collectives();
      collectives->add_gpu(rank);
      collectives->add_kind(kind);
      collectives->add_stage(rank);
      collectives->add_microbatch(0);
      collectives->add_bytes(4096);
      AddTimes(free[rank], free[rank] + 0.5, collectives);
    }
    act(rank, Timeline::Actions::OPTIMIZER_STEP, 0, free[rank] + 0.5, 0.25);
  }
  return result;
}

Result RandomTimeline(uint32_t seed, int num_events) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return static_cast<int>(random() % n); };
  Result result;
  result.set_schedule("random");
  const int num_gpus = 1 + below(5);
  for (int i = 0; i < num_gpus; ++i) result.add_ranks()->set_gpu(i);
  Timeline* timeline = result.mutable_timeline();
  const auto add_times = [&](auto* columns) {
    // Multiples of a quarter nanosecond, so many events coincide, some only
    // after rounding.
    const double start = below(80) * 0.25e-9;
    AddTimes(start, start + below(20) * 0.25e-9, columns);
  };
  for (int i = 0; i < num_events; ++i) {
    auto* actions = timeline->mutable_actions();
    actions->add_gpu(below(num_gpus));
    actions->add_op(static_cast<Timeline::Actions::Op>(below(5)));
    actions->add_stage(below(6));
    actions->add_microbatch(below(4));
    add_times(actions);

    auto* transfers = timeline->mutable_transfers();
    transfers->add_from_gpu(below(num_gpus));
    transfers->add_to_gpu(below(num_gpus));
    transfers->add_kind(static_cast<Timeline::Transfers::Kind>(below(2)));
    transfers->add_stage(below(6));
    transfers->add_microbatch(below(4));
    transfers->add_bytes(below(1000));
    add_times(transfers);

    auto* collectives = timeline->mutable_collectives();
    collectives->add_gpu(below(num_gpus));
    collectives->add_kind(static_cast<Timeline::Collectives::Kind>(below(2)));
    collectives->add_stage(below(6));
    collectives->add_microbatch(below(4));
    collectives->add_bytes(below(1000));
    add_times(collectives);

    timeline->mutable_memory()->add_gpu(below(num_gpus));
    timeline->mutable_memory()->add_seconds(below(100) * 0.25e-9);
    timeline->mutable_memory()->add_bytes(below(1000));
  }
  return result;
}

}  // namespace weir::results
