// SPDX-License-Identifier: Apache-2.0
#include "tests/toy_profile.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "calibrate/pricing/kernel_seconds.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/figures.h"
#include "models/layer_work.h"
#include "models/model.h"

namespace weir {
namespace {

template <typename Value>
Value Checked(absl::StatusOr<Value> value) {
  if (!value.ok()) std::abort();
  return *std::move(value);
}

void Set(Figure* figure, double value) {
  figure->set_value(value);
  figure->set_kind(Figure::MEASURED);
  figure->set_source("made up for tests");
}

std::vector<models::Kernel> DistinctKernels(const models::WorkSpec& spec) {
  std::vector<models::Kernel> distinct;
  for (const models::LayerWork& layer :
       models::LayersOf(Checked(models::LoadModel("gpt2")), spec)) {
    for (const auto* kernels :
         {&layer.forward, &layer.backward_input, &layer.backward_weight}) {
      for (const models::Kernel& kernel : *kernels) {
        if (std::find(distinct.begin(), distinct.end(), kernel) ==
            distinct.end()) {
          distinct.push_back(kernel);
        }
      }
    }
  }
  return distinct;
}

void AddKernels(int microbatch_size, double ratio, DeviceProfile* profile) {
  const double peak = Checked(calibrate::PeakFlops(*profile, "bf16"));
  for (const models::Kernel& kernel :
       DistinctKernels(ToyWork(microbatch_size, 1024))) {
    *profile->add_kernels() = Measure(
        kernel, ratio * calibrate::KernelSeconds(*profile, peak, kernel));
  }
}

void AddStage(const char* pass, double seconds, double sum_of_kernels,
              DeviceProfile* profile) {
  MeasuredStage* stage = profile->add_stages();
  stage->set_model("gpt2");
  stage->set_pass(pass);
  stage->set_num_blocks(3);
  stage->set_microbatch_size(1);
  stage->set_sequence_length(1024);
  stage->set_tensor_parallel(1);
  stage->set_num_kernels(30);
  *stage->mutable_seconds() = QuantilesAround(seconds);
  stage->set_sum_of_kernels_seconds(sum_of_kernels);
}

void AddMemory(DeviceProfile* profile) {
  MeasuredMemory* memory = profile->add_memory();
  memory->set_model("gpt2");
  memory->set_num_blocks(3);
  memory->set_microbatch_size(1);
  memory->set_sequence_length(1024);
  memory->set_tensor_parallel(1);
  memory->set_num_microbatches(4);
  memory->set_predicted_bytes(1e9);
  memory->set_used_high_bytes(1.002e9);
  memory->set_reserved_high_bytes(1.05e9);
}

// Adds a link with a latency of 10 us and `rate` / 2 bytes per second, and
// `rate` from 1 MB on. The two pieces meet at 1 MB.
void AddLink(LinkClass::Distance distance, double rate,
             DeviceProfile* profile) {
  LinkClass* link = profile->add_links();
  link->set_distance(distance);
  TransferPiece* small = link->add_pieces();
  small->set_latency_seconds(1e-5);
  small->set_bytes_per_second(rate / 2);
  TransferPiece* large = link->add_pieces();
  large->set_from_bytes(1e6);
  large->set_latency_seconds(1e-5 + 1e6 / rate);
  large->set_bytes_per_second(rate);
  link->set_bidirectional_slowdown(1.1);
  link->set_num_pairs(3);
  link->set_pair_spread(1.02);
  Set(link->mutable_figure(), rate);
  link->set_residual(0.03);
}

void AddProvenance(DeviceProfile* profile) {
  Provenance* provenance = profile->mutable_provenance();
  provenance->set_gpu_name("Toy-1");
  provenance->set_gpu_hash("0123abcd");
  provenance->set_num_multiprocessors(108);
  provenance->set_memory_bytes(80ull << 30);
  provenance->mutable_software()->set_driver("1.0");
  provenance->mutable_software()->set_cuda("13.0");
  provenance->mutable_software()->set_nccl("2.28.9");
  provenance->set_weir_version("0.0.0");
  provenance->set_measured_on("2020-01-01");
  provenance->set_command("made up for tests");
  provenance->set_clocks("default");
  provenance->set_num_ranks(1);
  provenance->set_num_nodes(1);
}

}  // namespace

Quantiles QuantilesAround(double seconds) {
  Quantiles quantiles;
  quantiles.set_num_samples(100);
  quantiles.set_min(0.98 * seconds);
  quantiles.set_p10(0.99 * seconds);
  quantiles.set_p50(seconds);
  quantiles.set_p90(1.01 * seconds);
  quantiles.set_p99(1.02 * seconds);
  quantiles.set_mean(seconds);
  quantiles.set_deviation(0.01 * seconds);
  quantiles.set_relative_ci(0.002);
  return quantiles;
}

MeasuredKernel Measure(const models::Kernel& kernel, double seconds) {
  MeasuredKernel measured;
  measured.set_part(models::Name(kernel.part));
  measured.set_format("bf16");
  measured.set_batch(kernel.batch);
  measured.set_m(kernel.m);
  measured.set_n(kernel.n);
  measured.set_k(kernel.k);
  measured.set_bytes(kernel.bytes);
  measured.set_performed_flops(
      kernel.performed_flops > 0 ? kernel.performed_flops : kernel.flops);
  switch (kernel.kind) {
    case models::Kernel::Kind::kGemm:
      measured.set_kind(MeasuredKernel::GEMM);
      break;
    case models::Kernel::Kind::kAttention:
      measured.set_kind(MeasuredKernel::ATTENTION);
      measured.set_num_gemms(kernel.num_gemms);
      measured.set_causal(true);
      break;
    case models::Kernel::Kind::kMemory:
      measured.set_kind(MeasuredKernel::MEMORY);
      break;
  }
  *measured.mutable_seconds() = QuantilesAround(seconds);
  return measured;
}

models::WorkSpec ToyWork(int microbatch_size, int sequence_length) {
  models::WorkSpec spec;
  spec.microbatch_size = microbatch_size;
  spec.sequence_length = sequence_length;
  spec.flash_attention = true;
  spec.tensor_async = true;
  spec.vocabulary_multiple = 128;
  return spec;
}

DeviceProfile ToyProfile() {
  DeviceProfile profile =
      Checked(calibrate::LoadDeviceProfile("a100-sxm-80gb"));
  for (const calibrate::NamedFigure& named : calibrate::FiguresOf(&profile)) {
    named.figure->set_source("made up for tests");
  }
  profile.set_name("Toy-1");
  Set(profile.mutable_context_bytes(), 4e8);
  Set(profile.mutable_library_bytes(), 1e8);
  Set(profile.mutable_workspace_bytes(), 64 << 20);
  profile.clear_reserved_bytes();
  profile.clear_training_slowdown();  // kernels take their ratios exactly
  AddKernels(1, kToyRatioOf1, &profile);
  AddKernels(4, kToyRatioOf4, &profile);
  Set(profile.mutable_kernel_gap_seconds(), 1e-6);
  Set(profile.mutable_copy_slowdown(), 1.05);
  Set(profile.mutable_collective_slowdown(), 1.2);
  AddStage("forward", 1.03e-3, 1e-3, &profile);
  AddStage("backward_input", 1.25e-3, 1.2e-3, &profile);
  AddStage("backward_weight", 0.97e-3, 1e-3, &profile);
  AddMemory(&profile);
  AddLink(LinkClass::SAME_SWITCH, 2e11, &profile);
  AddLink(LinkClass::SAME_LEAF, 2e10, &profile);
  AddProvenance(&profile);
  return profile;
}

}  // namespace weir
