// SPDX-License-Identifier: Apache-2.0
// Scenarios of measured models on small clusters, given by numbers.
#ifndef WEIR_TESTS_SIM_MEASURED_H_
#define WEIR_TESTS_SIM_MEASURED_H_

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scenarios/scenario.h"

namespace weir::sim {

// A measured model with one layer per stage.
struct Measured {
  std::string schedule = "gpipe";
  int num_ranks = 1;
  int num_microbatches = 1;
  int num_batches = 1;
  int num_replicas = 1;
  bool overlapped_reduction = false;
  std::vector<double> forward_seconds, backward_seconds;  // [stage]
  std::vector<double> activation_bytes;                   // [stage]
  std::vector<double> parameter_bytes;  // [stage]; empty: none
};

// Returns a GPU on which only the measured layers take time.
inline DeviceProfile FreeDevice() {
  DeviceProfile device;
  MatrixRate* rate = device.add_matrix_rates();
  rate->set_format("fp32");
  rate->mutable_peak_flops()->set_value(1e15);
  device.mutable_num_multiprocessors()->set_value(1);
  GemmModel& gemm = *device.mutable_gemm();
  gemm.mutable_matrix_rate()->set_value(1);
  gemm.mutable_cache_bytes_per_second()->set_value(1e300);
  gemm.mutable_cache_shares()->set_value(1);
  gemm.mutable_output_bytes_per_second()->set_value(1e300);
  gemm.mutable_memory_rate()->set_value(1);
  gemm.mutable_sustained_rate()->set_value(1);
  device.mutable_memory_bytes_per_second()->set_value(1e300);
  device.mutable_memory_efficiency()->set_value(1);
  device.mutable_memory_bytes()->set_value(1e12);
  return device;
}

inline scenarios::ResolvedScenario Resolve(const Measured& measured,
                                           const Cluster& cluster) {
  scenarios::ResolvedScenario resolved;
  resolved.label = "test";
  resolved.num_microbatches = measured.num_microbatches;
  resolved.placement.pipeline = measured.num_ranks;
  resolved.placement.data = measured.num_replicas;
  for (int i = 0; i < measured.num_ranks * measured.num_replicas; ++i) {
    resolved.placement.gpus.push_back(i);
  }
  resolved.cluster = cluster;
  resolved.device = FreeDevice();
  auto* model = resolved.model.mutable_measured();
  model->set_microbatch_size(1);
  for (int s = 0; s < measured.num_ranks; ++s) {
    MeasuredLayer* layer = model->add_layers();
    layer->set_name(absl::StrCat("layer", s));
    layer->set_forward_seconds(measured.forward_seconds[s]);
    layer->set_backward_seconds(measured.backward_seconds[s]);
    layer->set_activation_bytes(measured.activation_bytes[s]);
    if (!measured.parameter_bytes.empty()) {
      layer->set_parameter_bytes(measured.parameter_bytes[s]);
    }
  }
  Scenario& scenario = resolved.scenario;
  scenario.set_schedule(measured.schedule);
  scenario.mutable_parallelism()->set_tensor(1);
  scenario.mutable_parallelism()->set_pipeline(measured.num_ranks);
  scenario.mutable_parallelism()->set_data(measured.num_replicas);
  scenario.mutable_parallelism()->set_chunks(1);
  for (int s = 0; s < measured.num_ranks; ++s) {
    scenario.mutable_parallelism()->add_blocks_per_stage(1);
  }
  scenario.mutable_batch()->set_microbatch_size(1);
  scenario.mutable_batch()->set_global_batch_size(measured.num_microbatches *
                                                  measured.num_replicas);
  scenario.mutable_training()->set_precision(FP32);
  scenario.mutable_communication()->set_gradient_reduction(
      measured.overlapped_reduction ? REDUCTION_OVERLAPPED
                                    : REDUCTION_BLOCKING);
  scenario.set_num_batches(measured.num_batches);
  return resolved;
}

// Neighbors are connected by an exclusive link in each direction.
inline Cluster ChainOfLinks(int num_gpus, double bytes_per_second,
                            double latency_seconds) {
  Cluster cluster;
  NodeGroup* group = cluster.add_groups();
  group->set_count(1);
  group->mutable_node()->set_num_gpus(num_gpus);
  NvLinkMesh* mesh = group->mutable_node()->mutable_nv_link_mesh();
  mesh->set_bytes_per_second_per_link(bytes_per_second);
  mesh->set_latency_seconds(latency_seconds);
  for (int gpu = 0; gpu + 1 < num_gpus; ++gpu) {
    NvLinkMesh::Edge* edge = mesh->add_edges();
    edge->set_a(gpu);
    edge->set_b(gpu + 1);
    edge->set_num_links(1);
  }
  return cluster;
}

inline Cluster OneSwitch(int num_gpus, double bytes_per_second,
                         double latency_seconds) {
  Cluster cluster;
  NodeGroup* group = cluster.add_groups();
  group->set_count(1);
  group->mutable_node()->set_num_gpus(num_gpus);
  NvSwitch* nv_switch = group->mutable_node()->mutable_nv_switch();
  nv_switch->set_bytes_per_second(bytes_per_second);
  nv_switch->set_latency_seconds(latency_seconds);
  return cluster;
}

// One GPU and one NIC per node: transfers of a GPU to both neighbors share its
// NIC.
inline Cluster SharedNics(int num_gpus, double bytes_per_second,
                          double latency_seconds) {
  Cluster cluster;
  NodeGroup* group = cluster.add_groups();
  group->set_count(num_gpus);
  group->mutable_node()->set_num_gpus(1);
  group->mutable_node()->add_nics()->set_bytes_per_second(bytes_per_second);
  cluster.mutable_fabric()->set_latency_seconds(latency_seconds);
  return cluster;
}

}  // namespace weir::sim

#endif  // WEIR_TESTS_SIM_MEASURED_H_
