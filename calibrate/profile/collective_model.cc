// SPDX-License-Identifier: Apache-2.0
#include "calibrate/profile/collective_model.h"

namespace weir::calibrate {
namespace {

// A parameter of the model itself, and one of a message inside it.
#define WEIR_FIGURE(field, low, high, optional)                         \
  {                                                                     \
#field, [](const CollectiveModel& m) -> const Figure& {               \
      return m.field();                                                   \
    },                                                                    \
    [](CollectiveModel* m) { return m->mutable_##field(); },              \
    [](const CollectiveModel& m) { return m.has_##field(); }, low, high,  \
    optional \
  }
#define WEIR_FIGURE_OF(part, field, low, high, optional)                \
  {                                                                     \
#part "." #field, [](const CollectiveModel& m) -> const Figure& {     \
      return m.part().field();                                            \
    },                                                                    \
    [](CollectiveModel* m) { return m->mutable_##part()->mutable_##field(); }, \
    [](const CollectiveModel& m) { return m.part().has_##field(); }, low, \
    high, optional \
  }
#define WEIR_PROTOCOL(part)                                    \
  WEIR_FIGURE_OF(part, base_seconds, 0, 1, false),             \
      WEIR_FIGURE_OF(part, nvlink_hop_seconds, 0, 1, false),   \
      WEIR_FIGURE_OF(part, pci_hop_seconds, 0, 1, false),      \
      WEIR_FIGURE_OF(part, net_ring_hop_seconds, 0, 1, false), \
      WEIR_FIGURE_OF(part, net_tree_hop_seconds, 0, 1, false), \
      WEIR_FIGURE_OF(part, link_part, 1e-3, 1, false),         \
      WEIR_FIGURE_OF(part, max_bytes_per_second, 1e6, 1e16, true)

#define WEIR_EXCHANGE(part)                                                   \
  WEIR_FIGURE_OF(part, base_seconds, 0, 1, true),                             \
      WEIR_FIGURE_OF(part, token_seconds, 0, 1, true),                        \
      WEIR_FIGURE_OF(part, copy_seconds, 0, 1, true),                         \
      WEIR_FIGURE_OF(part, multiprocessor_bytes_per_second, 1e6, 1e16, true), \
      WEIR_FIGURE_OF(part, forward_bytes_per_second, 1e6, 1e16, true),        \
      WEIR_FIGURE_OF(part, link_efficiency, 1e-3, 1, true),                   \
      WEIR_FIGURE_OF(part, net_efficiency, 1e-3, 1, true),                    \
      WEIR_FIGURE_OF(part, net_base_seconds, 0, 1, true)

Figure Constant(double value, const char* what) {
  Figure figure;
  figure.set_value(value);
  figure.set_kind(Figure::ASSUMED);
  figure.set_source(what);
  return figure;
}

constexpr char kTuning[] = "NCCL v2.28.9 src/graph/tuning.cc";

// Sets the parameters from microseconds of base, NVLink, PCIe, network ring and
// network tree hop.
void SetProtocol(const double (&us)[5], double part, double max_rate,
                 ProtocolCosts* costs) {
  Figure* figures[] = {
      costs->mutable_base_seconds(), costs->mutable_nvlink_hop_seconds(),
      costs->mutable_pci_hop_seconds(), costs->mutable_net_ring_hop_seconds(),
      costs->mutable_net_tree_hop_seconds()};
  for (int i = 0; i < 5; ++i) *figures[i] = Constant(us[i] / 1e6, kTuning);
  *costs->mutable_link_part() = Constant(part, kTuning);
  if (max_rate > 0) {
    *costs->mutable_max_bytes_per_second() = Constant(max_rate, kTuning);
  }
}

void SetMemory(CommunicatorMemory* memory) {
  constexpr char kObserved[] =
      "chosen so that a communicator takes 342 MiB with 2 GPUs and 392 MiB "
      "with 4 or 8, the values of github.com/ai-dynamo/aiconfigurator, "
      "commit 095f58a5";
  constexpr char kBuffers[] =
      "NCCL v2.28.9, default buffer of a channel and peer";
  constexpr double kMiB = 1 << 20;
  constexpr double kLl = 0.5 * kMiB, kLl128 = 4.6875 * kMiB, kSimple = 4 * kMiB;
  *memory->mutable_once_bytes() =
      Constant(342 * kMiB - 24 * (kLl + kLl128 + kSimple), kObserved);
  *memory->mutable_num_channels() =
      Constant(24, "two rings for each of 12 NVLinks of an A100");
  *memory->mutable_num_pair_channels() = Constant(
      16, "guess: NCCL picks a power of two that depends on the links");
  *memory->mutable_ll_buffer_bytes() = Constant(kLl, kBuffers);
  *memory->mutable_ll128_buffer_bytes() = Constant(kLl128, kBuffers);
  *memory->mutable_simple_buffer_bytes() = Constant(kSimple, kBuffers);
  *memory->mutable_nvls_bytes() = Constant(50 * kMiB, kObserved);
}

}  // namespace

const std::vector<CollectiveFigure>& CollectiveFigures() {
  static const auto* const figures = new std::vector<CollectiveFigure>{
      WEIR_PROTOCOL(ll),
      WEIR_PROTOCOL(ll128),
      WEIR_PROTOCOL(simple),
      WEIR_FIGURE(link_efficiency, 1e-3, 1, false),
      WEIR_FIGURE(chunk_seconds, 0, 1, true),
      WEIR_FIGURE(local_bytes_per_second, 1e6, 1e16, true),
      WEIR_FIGURE_OF(pairs, ll_base_seconds, 0, 1, false),
      WEIR_FIGURE_OF(pairs, ll_max_bytes_per_second, 1e6, 1e16, false),
      WEIR_FIGURE_OF(pairs, simple_base_seconds, 0, 1, false),
      WEIR_FIGURE_OF(pairs, peer_seconds, 0, 1, false),
      WEIR_FIGURE_OF(pairs, link_efficiency, 1e-3, 1, false),
      WEIR_FIGURE(nvls_base_seconds, 0, 1, true),
      WEIR_FIGURE(nvls_efficiency, 1e-3, 1, true),
      WEIR_FIGURE(nvls_chunk_seconds, 0, 1, true),
      WEIR_FIGURE(net_efficiency, 1e-3, 1, false),
      WEIR_FIGURE(net_overhead_seconds, 0, 1, false),
      WEIR_FIGURE(net_plateau, 1, 10, true),
      WEIR_FIGURE(link_bytes_per_second, 1e6, 1e16, true),
      WEIR_FIGURE_OF(memory, once_bytes, 0, 1e12, false),
      WEIR_FIGURE_OF(memory, num_channels, 1, 64, false),
      WEIR_FIGURE_OF(memory, num_pair_channels, 1, 64, false),
      WEIR_FIGURE_OF(memory, ll_buffer_bytes, 0, 1e9, false),
      WEIR_FIGURE_OF(memory, ll128_buffer_bytes, 0, 1e9, false),
      WEIR_FIGURE_OF(memory, simple_buffer_bytes, 0, 1e9, false),
      WEIR_FIGURE_OF(memory, nvls_bytes, 0, 1e12, false),
      WEIR_EXCHANGE(dispatch),
      WEIR_EXCHANGE(combine),
      WEIR_EXCHANGE(hybrid_dispatch),
      WEIR_EXCHANGE(hybrid_combine),
  };
  return *figures;
}

CollectiveModel NcclDefaults(NcclGeneration generation) {
  const int g = static_cast<int>(generation);
  // NCCL assumes 20, 20, 20.6 and 40.1 GB/s for an NVLink of 25, 25, 25 and 50
  // GB/s (src/graph/topo.h).
  constexpr double kEfficiency[] = {0.8, 0.8, 0.824, 0.802};
  constexpr double kLlMax[] = {39e9, 87.7e9, 141e9, 282e9};
  constexpr double kNumChannels[] = {12, 24, 16, 16};
  constexpr double kLl128PerChannel[] = {20e9, 20e9, 36.7e9, 73.4e9};
  CollectiveModel model;
  SetProtocol({6.6, 0.6, 1.0, 2.7, 5.0}, 0.5, kLlMax[g], model.mutable_ll());
  SetProtocol({14.0, 1.9, 2.5, 4.0, 8.5}, 0.92,
              kNumChannels[g] * kLl128PerChannel[g], model.mutable_ll128());
  SetProtocol({8.4, 3.4, 5.7, 14.0, 14.0}, 1, 0, model.mutable_simple());
  *model.mutable_link_efficiency() =
      Constant(kEfficiency[g], "NCCL v2.28.9 src/graph/topo.h, NVLink rates");
  constexpr double kLinks[] = {150e9, 300e9, 450e9, 900e9};
  Figure& links = *model.mutable_link_bytes_per_second();
  links = Constant(kLinks[g], "NVLink, datasheet, one direction");
  links.set_kind(Figure::DATASHEET);
  PairCosts& pairs = *model.mutable_pairs();
  constexpr char kPairs[] =
      "as a ring's first hop, NCCL v2.28.9 src/graph/tuning.cc";
  *pairs.mutable_ll_base_seconds() = Constant(7.2e-6, kPairs);
  *pairs.mutable_ll_max_bytes_per_second() = Constant(kLlMax[g], kPairs);
  *pairs.mutable_simple_base_seconds() = Constant(11.8e-6, kPairs);
  *pairs.mutable_peer_seconds() = Constant(0, "not in NCCL's model");
  *pairs.mutable_link_efficiency() = Constant(kEfficiency[g], kPairs);
  if (generation >= NcclGeneration::kHopper) {
    *model.mutable_nvls_base_seconds() = Constant(25e-6, kTuning);
    *model.mutable_nvls_efficiency() = Constant(0.85 * kEfficiency[g], kTuning);
  }
  *model.mutable_net_efficiency() =
      Constant(0.92,
               "46 to 48 of 50 GB/s, github.com/NVIDIA/nccl-tests issue 290: "
               "the lower end is used");
  *model.mutable_net_overhead_seconds() =
      Constant(1e-6, "NCCL v2.28.9 src/graph/tuning.cc, Intel hosts");
  *model.mutable_net_plateau() =
      Constant(generation < NcclGeneration::kAmpere ? 1.9 : 1.4,
               "NCCL v2.28.9 src/graph/tuning.cc, \"Plateau effect of ring\"");
  SetMemory(model.mutable_memory());
  return model;
}

}  // namespace weir::calibrate
