// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrate/fabric/fake_transport.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "calibrate/fabric/fit_transfer.h"
#include "calibrate/fabric/launch.h"
#include "calibrate/fabric/topology.h"
#include "calibrate/fit/fit_collectives.h"

namespace weir::calibrate {
namespace {

constexpr double kLink = 450e9;

TransferPiece Piece(double from, double latency, double rate) {
  TransferPiece piece;
  piece.set_from_bytes(from);
  piece.set_latency_seconds(latency);
  piece.set_bytes_per_second(rate);
  return piece;
}

// Returns two lines that meet at `at` bytes.
std::vector<TransferPiece> TwoPieces(double latency, double slow, double at,
                                     double fast) {
  return {Piece(0, latency, slow),
          Piece(at, latency + at / slow - at / fast, fast)};
}

// A failure of a rank at a given operation.
struct Trouble {
  std::string what;
  int rank = -1;
  int operation = 0;
};

Trouble ParseTrouble(const std::string& text) {
  Trouble trouble;
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[1], &trouble.rank) ||
      !absl::SimpleAtoi(parts[2], &trouble.operation)) {
    return Trouble();
  }
  trouble.what = parts[0];
  return trouble;
}

// Shared by the transport and its communicators.
struct World {
  FakeTransportOptions options;
  TransportRequest request;
  Trouble trouble;
  int num_operations = 0;
  double memory_bytes = 1e9;
  bool first_communicator = true;
  std::mt19937_64 random;

  absl::Status Operate() {
    ++num_operations;
    if (trouble.rank != request.rank || trouble.operation != num_operations) {
      return absl::OkStatus();
    }
    if (trouble.what == "die") raise(SIGKILL);
    if (trouble.what == "stop") raise(SIGSTOP);
    if (trouble.what == "hang") absl::SleepFor(absl::InfiniteDuration());
    if (trouble.what == "late") {
      absl::SleepFor(absl::Seconds(request.timeout_seconds));
      return absl::DeadlineExceededError("the transfer was aborted");
    }
    if (trouble.what == "error") return absl::AbortedError("a cable broke");
    return absl::OkStatus();
  }

  double Disturbed(double seconds) {
    std::normal_distribution<double> error(0, options.noise);
    return seconds * std::exp(error(random));
  }
};

class FakeCommunicator : public Communicator {
 public:
  FakeCommunicator(World* world, int rank, std::vector<RankPlace> places)
      : world_(world), rank_(rank), places_(std::move(places)) {
    memory_before_ = world_->memory_bytes;
    if (std::exchange(world_->first_communicator, false)) {
      world_->memory_bytes += 100e6;
      memory_before_ = world_->memory_bytes;  // never freed
    }
    world_->memory_bytes += 10e6;
  }
  ~FakeCommunicator() override { world_->memory_bytes = memory_before_; }

  absl::StatusOr<double> TimeCollective(models::CollectiveKind kind,
                                        double bytes,
                                        int num_repeats) override {
    RETURN_IF_ERROR(world_->Operate());
    if (!std::exchange(has_collective_, true)) world_->memory_bytes += 200e6;
    (void)num_repeats;
    static const CollectiveModel& model =
        *new CollectiveModel(FakeCollectives());
    return world_->Disturbed(
        CheapestCollective(model, kind, bytes, Group()).Seconds());
  }

  absl::StatusOr<double> TimePair(PairMode mode, int from, int to, double bytes,
                                  int num_repeats) override {
    if (rank_ != from && rank_ != to) return 0;
    RETURN_IF_ERROR(world_->Operate());
    if (!std::exchange(has_pair_, true)) world_->memory_bytes += 40e6;
    (void)num_repeats;
    const LinkClass::Distance distance =
        from == to ? LinkClass::SAME_GPU
                   : DistanceOf(places_[from], places_[to]);
    const double seconds = TransferSeconds(FakePieces(distance), bytes);
    const double factor = mode == PairMode::kPingPong   ? 2
                          : mode == PairMode::kBothWays ? 1.1
                                                        : 1;
    return world_->Disturbed(factor * seconds);
  }

 private:
  CollectiveGroup Group() const {
    CollectiveGroup group;
    group.num_ranks = static_cast<int>(places_.size());
    int num_nodes = 0;
    for (const RankPlace& place : places_) {
      num_nodes = std::max(num_nodes, place.node + 1);
      group.pci |= DistanceOf(places_[0], place) == LinkClass::SAME_NODE &&
                   place.gpu_address != places_[0].gpu_address;
    }
    group.ranks_per_node = group.num_ranks / num_nodes;
    group.intra_bytes_per_second = group.pci ? 20e9 : kLink;
    group.inter_bytes_per_second = kFakeAdapter;
    group.nvls = !group.pci;
    return group;
  }

  World* const world_;
  const int rank_;
  const std::vector<RankPlace> places_;
  double memory_before_ = 0;
  bool has_collective_ = false;
  bool has_pair_ = false;
};

class FakeTransport : public Transport {
 public:
  explicit FakeTransport(World world) : world_(std::move(world)) {
    provenance_.set_gpu_name("Fake GPU");
    provenance_.mutable_software()->set_nccl("0.0.0");
  }

  const Provenance& provenance() const override { return provenance_; }
  std::string gpu_address() const override {
    const int index = world_.request.one_gpu ? 0 : world_.request.local_rank;
    return absl::StrCat("0000:0", index, ":00.0");
  }
  // There are two GPUs per switch.
  std::vector<std::string> switch_addresses() const override {
    return {absl::StrCat("nvswitch ", world_.request.local_rank / 2)};
  }
  double memory_in_use_bytes() override { return world_.memory_bytes; }

  absl::StatusOr<std::string> MakeId() override {
    return absl::StrCat(getpid(), "-", world_.request.rank, "-", ++num_ids_);
  }

  absl::StatusOr<std::unique_ptr<Communicator>> Join(absl::string_view id,
                                                     int num_ranks,
                                                     int rank) override {
    RETURN_IF_ERROR(world_.Operate());
    const auto file = [&](int of) {
      return absl::StrCat(world_.options.folder, "/", id, ".", of);
    };
    RETURN_IF_ERROR(WriteFile(file(rank), PrintTextProto(Self())));
    const absl::Time deadline =
        absl::Now() + absl::Seconds(world_.request.timeout_seconds);
    std::vector<Presence> presences(num_ranks);
    for (int other = 0; other < num_ranks; ++other) {
      while (access(file(other).c_str(), R_OK) != 0) {
        if (absl::Now() > deadline) {
          return absl::DeadlineExceededError(
              absl::StrCat("rank ", other, " of the group did not join"));
        }
        absl::SleepFor(absl::Milliseconds(1));
      }
      ASSIGN_OR_RETURN(const std::string text, ReadFile(file(other)));
      RETURN_IF_ERROR(ParseTextProto(file(other), text, &presences[other]));
    }
    ASSIGN_OR_RETURN(std::vector<RankPlace> places,
                     PositionsOf(presences, nullptr));
    return std::make_unique<FakeCommunicator>(&world_, rank, std::move(places));
  }

 private:
  Presence Self() const {
    const absl::StatusOr<RankLaunch> launch =
        ReadLaunch([](const char* name) { return getenv(name); });
    Presence presence;
    presence.set_node(launch->node);
    presence.set_topology_address(launch->topology_address);
    presence.set_topology_pattern(launch->topology_pattern);
    if (!world_.options.leaf.empty()) {
      presence.set_topology_address(world_.options.leaf + "." + launch->node);
      presence.set_topology_pattern("switch.node");
    }
    presence.set_gpu_address(gpu_address());
    for (const std::string& address : switch_addresses()) {
      presence.add_switch_addresses(address);
    }
    return presence;
  }

  World world_;
  Provenance provenance_;
  int num_ids_ = 0;
};

}  // namespace

std::vector<TransferPiece> FakePieces(LinkClass::Distance distance) {
  switch (distance) {
    case LinkClass::SAME_GPU:
      return TwoPieces(5e-6, 200e9, 0x1p18, 1000e9);
    case LinkClass::SAME_SWITCH:
      return TwoPieces(8e-6, 40e9, 0x1p18, 370e9);
    case LinkClass::SAME_NODE:
      return TwoPieces(12e-6, 8e9, 0x1p18, 20e9);
    case LinkClass::SAME_LEAF:
      return TwoPieces(16e-6, 9e9, 0x1p20, 25e9);
    default:
      return TwoPieces(22e-6, 6e9, 0x1p20, 20e9);
  }
}

CollectiveModel FakeCollectives() {
  CollectiveModel model = CollectiveStart(NcclGeneration::kHopper);
  model.mutable_net_efficiency()->set_value(0.8);
  model.mutable_link_efficiency()->set_value(0.75);
  return model;
}

TransportFactory FakeNetwork(FakeTransportOptions options) {
  return [options = std::move(options)](const TransportRequest& request)
             -> absl::StatusOr<std::unique_ptr<Transport>> {
    World world;
    world.options = options;
    world.request = request;
    world.trouble = ParseTrouble(options.trouble);
    world.random.seed(17 + request.rank);
    if (world.trouble.what == "nogpu" && world.trouble.rank == request.rank) {
      return absl::UnavailableError("no GPU is found (it is a fake)");
    }
    return std::make_unique<FakeTransport>(std::move(world));
  };
}

}  // namespace weir::calibrate
