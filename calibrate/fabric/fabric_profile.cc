// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/fabric_profile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error_statistics.h"
#include "base/status_macros.h"
#include "calibrate/fabric/fit_transfer.h"
#include "calibrate/fit/collective_residual.h"
#include "calibrate/profile/device_profile.h"
#include "calibrate/profile/figures.h"
#include "calibrate/profile/software.h"

namespace weir::calibrate {
namespace {

// Mean absolute error of a fit above which a remark is added.
constexpr double kMistrust = 0.15;
constexpr int kGuessedChannels = 16;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half]
                                : (values[half - 1] + values[half]) / 2;
}

void Set(double value, Figure::Kind kind, absl::string_view source,
         Figure* figure) {
  figure->Clear();
  figure->set_value(value);
  figure->set_kind(kind);
  figure->set_source(std::string(source));
}

std::vector<const PairTimes*> PairsOf(const NetworkMeasurements& measured,
                                      LinkClass::Distance distance) {
  std::vector<const PairTimes*> pairs;
  for (const PairTimes& pair : measured.pairs) {
    if (pair.distance == distance && !pair.rows.empty()) pairs.push_back(&pair);
  }
  return pairs;
}

// Returns the times of each message size for all pairs.
std::map<double, std::vector<double>> SecondsBySize(
    const std::vector<const PairTimes*>& pairs) {
  std::map<double, std::vector<double>> seconds;
  for (const PairTimes* pair : pairs) {
    for (const PairTimes::Row& row : pair->rows) {
      seconds[row.bytes].push_back(row.message_seconds);
    }
  }
  return seconds;
}

// Returns the datasheet rate of a rank's adapters implied by the fitted links.
double AdapterRate(const DeviceProfile& profile) {
  double fastest = 0;
  for (const LinkClass& link : profile.links()) {
    if (link.distance() >= LinkClass::SAME_LEAF) {
      fastest = std::max(fastest, link.figure().value());
    }
  }
  const double efficiency = profile.collectives().net_efficiency().value();
  return efficiency > 0 ? fastest / efficiency : fastest;
}

// Returns the rate of links in a node without NVLink.
double PciRate(const DeviceProfile& profile) {
  for (const LinkClass& link : profile.links()) {
    if (link.distance() == LinkClass::SAME_NODE) {
      return link.figure().value() /
             profile.collectives().link_efficiency().value();
    }
  }
  return profile.collectives().link_bytes_per_second().value();
}

// Returns the largest distance between two ranks of a group's first node.
LinkClass::Distance WithinNode(const NetworkMeasurements& measured,
                               const GroupPlan& group) {
  LinkClass::Distance farthest = LinkClass::SAME_SWITCH;
  for (int i = 0; i < group.ranks_per_node; ++i) {
    for (int j = 0; j < i; ++j) {
      farthest =
          std::max(farthest, DistanceOf(measured.positions[group.ranks[i]],
                                        measured.positions[group.ranks[j]]));
    }
  }
  return farthest;
}

// Leaves out samples between nodes if the rate of the adapters is unknown.
std::vector<CollectiveSample> SamplesOf(const NetworkMeasurements& measured,
                                        const DeviceProfile& profile,
                                        bool* left_out) {
  const CollectiveModel& model = profile.collectives();
  std::vector<CollectiveSample> samples;
  for (const CollectiveTimes& times : measured.collectives) {
    CollectiveGroup group;
    group.num_ranks = static_cast<int>(times.group.ranks.size());
    group.ranks_per_node = times.group.ranks_per_node;
    group.pci = WithinNode(measured, times.group) == LinkClass::SAME_NODE;
    group.intra_bytes_per_second =
        group.pci ? PciRate(profile) : model.link_bytes_per_second().value();
    group.inter_bytes_per_second = AdapterRate(profile);
    group.nvls = !group.pci && model.has_nvls_efficiency();
    if (group.num_ranks > group.ranks_per_node &&
        group.inter_bytes_per_second <= 0) {
      *left_out = true;
      continue;
    }
    for (const CollectiveTimes::Row& row : times.rows) {
      samples.push_back({times.kind, row.bytes, group, row.seconds});
    }
  }
  return samples;
}

absl::Status SetCollectives(const NetworkMeasurements& measured,
                            absl::string_view source, DeviceProfile* profile) {
  const auto remark = [&](absl::string_view what) {
    profile->mutable_provenance()->add_remarks(std::string(what));
  };
  if (!profile->collectives().has_link_bytes_per_second()) {
    remark(
        "collectives were not fitted: the start profile has no "
        "collectives.link_bytes_per_second");
    return absl::OkStatus();
  }
  bool left_out = false;
  const std::vector<CollectiveSample> samples =
      SamplesOf(measured, *profile, &left_out);
  if (left_out) {
    remark(
        "collectives between nodes were not fitted: no pair between nodes was "
        "measured");
  }
  if (samples.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      CollectiveFit fit,
      FitCollectives(profile->collectives(), samples,
                     absl::StrCat("fit to ", samples.size(),
                                  " collectives, measured on ", source)));
  ASSIGN_OR_RETURN(
      *profile->mutable_collective_residual(),
      CollectiveResidual(profile->collectives(), samples, fit,
                         absl::StrCat("collectives measured on ", source)));
  *profile->mutable_collectives() = std::move(fit.model);
  Coverage& coverage = *profile->mutable_coverage();
  coverage.clear_collective_bytes();
  coverage.clear_collective_ranks();
  coverage.set_between_nodes(false);
  for (const CollectiveSample& sample : samples) {
    Include(sample.bytes, coverage.mutable_collective_bytes());
    Include(sample.group.num_ranks, coverage.mutable_collective_ranks());
    if (sample.group.num_ranks > sample.group.ranks_per_node) {
      coverage.set_between_nodes(true);
    }
  }
  if (fit.errors.mean_absolute > kMistrust) {
    remark(absl::StrCat(
        "collectives: ", Describe(fit.errors),
        ": are the links of this machine those of the start profile?"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string SourceOf(const Provenance& provenance) {
  std::string source = absl::StrCat(
      provenance.num_nodes(),
      provenance.num_nodes() == 1 ? " node, " : " nodes, ",
      provenance.num_ranks(), provenance.num_ranks() == 1 ? " rank" : " ranks");
  if (!provenance.gpu_name().empty()) {
    absl::StrAppend(&source, ", ", provenance.gpu_name());
  }
  if (!provenance.software().nccl().empty()) {
    absl::StrAppend(&source, ", NCCL ", provenance.software().nccl());
  }
  return absl::StrCat(source, ", ", provenance.measured_on());
}

absl::StatusOr<LinkClass> FitLinkClass(const NetworkMeasurements& measured,
                                       LinkClass::Distance distance,
                                       int num_channels,
                                       absl::string_view source) {
  const std::vector<const PairTimes*> pairs = PairsOf(measured, distance);
  std::vector<TransferSample> medians;
  double largest = 0;
  double spread = 1;
  const auto by_size = SecondsBySize(pairs);
  for (const auto& [bytes, seconds] : by_size) {
    medians.push_back({bytes, Median(seconds)});
    const auto [fastest, slowest] =
        std::minmax_element(seconds.begin(), seconds.end());
    if (seconds.size() == pairs.size()) {
      largest = bytes;
      spread = *slowest / *fastest;
    }
  }
  ASSIGN_OR_RETURN(
      const TransferFit fit,
      FitTransfer(medians, TransferKnots(num_channels, 2 * largest + 2)));
  LinkClass link;
  link.set_distance(distance);
  std::vector<double> slowdowns;
  double squares = 0;
  double num_rows = 0;
  for (const PairTimes* pair : pairs) {
    for (const PairTimes::Row& row : pair->rows) {
      const double error = std::log(row.message_seconds /
                                    TransferSeconds(fit.pieces, row.bytes));
      squares += error * error;
      ++num_rows;
      if (row.bytes * 4 >= largest) {
        slowdowns.push_back(row.both_ways_seconds / row.one_way_seconds);
      }
    }
  }
  for (const TransferPiece& piece : fit.pieces) *link.add_pieces() = piece;
  link.set_bidirectional_slowdown(std::max(1.0, Median(slowdowns)));
  link.set_num_pairs(pairs.size());
  link.set_pair_spread(spread);
  link.set_residual(std::sqrt(squares / num_rows));
  Set(fit.pieces.back().bytes_per_second(), Figure::FITTED,
      absl::StrCat("fit to ", medians.size(), " sizes between ", pairs.size(),
                   pairs.size() == 1 ? " pair" : " pairs", " of GPUs (",
                   NameOf(distance), "), measured on ", source),
      link.mutable_figure());
  return link;
}

void SetCommunicatorMemory(const NetworkMeasurements& measured,
                           absl::string_view source, CollectiveModel* model) {
  CommunicatorMemory& memory = *model->mutable_memory();
  const double ll = memory.ll_buffer_bytes().value();
  const double simple = memory.simple_buffer_bytes().value();
  const double all = ll + simple + memory.ll128_buffer_bytes().value();
  const std::string from = absl::StrCat("device memory in use, ", source);
  const auto set = [&](double value, absl::string_view what, Figure* figure) {
    if (value > 0) {
      Set(value, Figure::MEASURED, absl::StrCat(what, ": ", from), figure);
    }
  };
  // The first communicator of a process also loads kernels.
  const GroupMemory* first = nullptr;
  const GroupMemory* later = nullptr;
  for (const GroupMemory& group : measured.memory) {
    const bool nodes =
        group.group.ranks_per_node < static_cast<int>(group.group.ranks.size());
    if (group.first) first = &group;
    if (!group.first && later == nullptr && !nodes) later = &group;
  }
  if (first == nullptr && !measured.pairs.empty() &&
      measured.positions.size() == 1) {
    set(measured.pairs[0].memory.Sum(), "communicator of one rank",
        memory.mutable_once_bytes());
  }
  if (later == nullptr || first == nullptr || all <= 0) return;
  const bool switches = later->distance == LinkClass::SAME_SWITCH;
  const double nvls = switches && model->has_nvls_efficiency()
                          ? memory.nvls_bytes().value()
                          : 0;
  set((later->collective.Sum() - nvls) / all,
      "bytes of a communicator divided by the buffers of a channel",
      memory.mutable_num_channels());
  set(later->first_pair_bytes / (ll + simple),
      "bytes of the first message to a peer divided by the buffers of a "
      "channel",
      memory.mutable_num_pair_channels());
  set(first->collective.Sum() - later->collective.Sum(),
      "first communicator of a process minus a later one",
      memory.mutable_once_bytes());
}

absl::StatusOr<DeviceProfile> ProfileOf(const DeviceProfile& start,
                                        const NetworkMeasurements& measured,
                                        const Provenance& provenance) {
  DeviceProfile profile = start;
  *profile.mutable_provenance() =
      BothProvenances(start.provenance(), provenance);
  for (const std::string& remark : measured.remarks) {
    profile.mutable_provenance()->add_remarks(remark);
  }
  const std::string source = SourceOf(provenance);
  double channels = start.collectives().memory().num_pair_channels().value();
  if (channels < 1) channels = kGuessedChannels;
  std::map<LinkClass::Distance, LinkClass> links;
  for (const LinkClass& link : start.links()) links[link.distance()] = link;
  std::set<LinkClass::Distance> distances;
  for (const PairTimes& pair : measured.pairs) distances.insert(pair.distance);
  for (const LinkClass::Distance distance : distances) {
    absl::StatusOr<LinkClass> link =
        PairsOf(measured, distance).empty()
            ? absl::InvalidArgumentError("no message size was measured")
            : FitLinkClass(measured, distance, static_cast<int>(channels),
                           source);
    if (link.ok()) {
      links[distance] = *std::move(link);
    } else {
      profile.mutable_provenance()->add_remarks(
          absl::StrCat(NameOf(distance), ": ", link.status().message()));
    }
  }
  profile.clear_links();
  for (const auto& [distance, link] : links) *profile.add_links() = link;
  RETURN_IF_ERROR(SetCollectives(measured, source, &profile));
  if (profile.has_collectives()) {
    SetCommunicatorMemory(measured, source, profile.mutable_collectives());
  }
  return profile;
}

}  // namespace weir::calibrate
