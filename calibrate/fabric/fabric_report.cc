// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/units.h"
#include "calibrate/fabric/fabric_profile.h"
#include "calibrate/fabric/fit_transfer.h"

namespace weir::calibrate {
namespace {

// Returns true for every second power of two, to keep the tables short.
bool IsShown(double bytes, double largest) {
  if (bytes == largest) return true;
  const int power = std::ilogb(bytes / kLeastBytes);
  return power % 2 == 0 && std::ldexp(kLeastBytes, power) == bytes;
}

std::string Rate(double bytes_per_second) {
  return absl::StrFormat("%.3g GB/s", bytes_per_second * 1e-9);
}

void AddLinkHeader(const LinkClass& link, std::string* text) {
  absl::StrAppendFormat(text,
                        "  %s, latency %s, %d piece%s, residual %s, slowdown "
                        "%.2f x when bidirectional",
                        Rate(link.figure().value()),
                        FormatSeconds(link.pieces(0).latency_seconds()),
                        link.pieces_size(), link.pieces_size() == 1 ? "" : "s",
                        FormatPercent(link.residual()),
                        link.bidirectional_slowdown());
  absl::StrAppendFormat(text, ", slowest pair %.2f x the fastest\n",
                        link.pair_spread());
}

struct Sums {
  int num_pairs = 0;
  double one_way = 0, both_ways = 0, message = 0;
};

// Warns of a line below the time of the largest message: bandwidth and latency
// are then both too high.
void AddConvexity(const LinkClass& link, double bytes, double seconds,
                  std::string* text) {
  const std::vector<TransferPiece> pieces(link.pieces().begin(),
                                          link.pieces().end());
  const double fitted = TransferSeconds(pieces, bytes);
  if (fitted > 0.85 * seconds) return;
  absl::StrAppend(text, "  the fit is ", FormatPercent(1 - fitted / seconds),
                  " below the largest message: the times of smaller ones are "
                  "those of their launches\n");
}

void AddClass(const NetworkMeasurements& measured, LinkClass::Distance distance,
              const LinkClass* link, std::string* text) {
  std::map<double, Sums> by_size;
  int num_pairs = 0;
  double first_seconds = 0;
  for (const PairTimes& pair : measured.pairs) {
    if (pair.distance != distance) continue;
    ++num_pairs;
    first_seconds = std::max(first_seconds, pair.first_seconds);
    for (const PairTimes::Row& row : pair.rows) {
      Sums& sums = by_size[row.bytes];
      ++sums.num_pairs;
      sums.one_way += row.one_way_seconds;
      sums.both_ways += row.both_ways_seconds;
      sums.message += row.message_seconds;
    }
  }
  absl::StrAppend(text, "\n", NameOf(distance), ": ", num_pairs,
                  num_pairs == 1 ? " pair" : " pairs", ", first message ",
                  FormatSeconds(first_seconds), "\n");
  if (link != nullptr) AddLinkHeader(*link, text);
  if (by_size.empty()) return;
  absl::StrAppendFormat(text, "  %10s %10s %10s %10s %10s\n", "size", "one way",
                        "bidirectional", "message", "fitted");
  for (const auto& [bytes, sums] : by_size) {
    if (!IsShown(bytes, by_size.rbegin()->first)) continue;
    const double n = sums.num_pairs;
    std::string fitted = "-";
    if (link != nullptr) {
      const std::vector<TransferPiece> pieces(link->pieces().begin(),
                                              link->pieces().end());
      fitted = FormatSeconds(TransferSeconds(pieces, bytes));
    }
    absl::StrAppendFormat(text, "  %10s %10s %10s %10s %10s\n",
                          FormatBytes(bytes), FormatSeconds(sums.one_way / n),
                          FormatSeconds(sums.both_ways / n),
                          FormatSeconds(sums.message / n), fitted);
  }
  if (link != nullptr) {
    const auto& [bytes, sums] = *by_size.rbegin();
    AddConvexity(*link, bytes, sums.message / sums.num_pairs, text);
  }
}

void AddCollective(const CollectiveTimes& times, std::string* text) {
  absl::StrAppend(text, "\n", Name(times.kind), ": ", times.group.text, ", ",
                  NameOf(times.distance), ", first ",
                  FormatSeconds(times.first_seconds), "\n");
  if (times.rows.empty()) return;
  absl::StrAppendFormat(text, "  %10s %10s %12s\n", "size", "time",
                        "size/time");
  for (const CollectiveTimes::Row& row : times.rows) {
    if (!IsShown(row.bytes, times.rows.back().bytes)) continue;
    absl::StrAppendFormat(text, "  %10s %10s %12s\n", FormatBytes(row.bytes),
                          FormatSeconds(row.seconds),
                          Rate(row.bytes / row.seconds));
  }
}

void AddMemory(const NetworkMeasurements& measured, std::string* text) {
  for (const GroupMemory& memory : measured.memory) {
    absl::StrAppend(text, "  ", memory.group.text, ": ",
                    FormatBytes(memory.collective.init_bytes), " to join, ",
                    FormatBytes(memory.collective.first_use_bytes),
                    " at the first all-reduce, ",
                    FormatBytes(memory.first_pair_bytes),
                    " at the first message to a peer\n");
  }
  std::map<LinkClass::Distance, bool> seen;
  for (const PairTimes& pair : measured.pairs) {
    if (std::exchange(seen[pair.distance], true)) continue;
    absl::StrAppend(text, "  a pair, ", NameOf(pair.distance), ": ",
                    FormatBytes(pair.memory.init_bytes), " to join, ",
                    FormatBytes(pair.memory.first_use_bytes),
                    " at the first message\n");
  }
}

}  // namespace

std::string ReportNetwork(const NetworkMeasurements& measured,
                          const DeviceProfile* profile) {
  std::string text;
  std::map<LinkClass::Distance, const LinkClass*> classes;
  for (const PairTimes& pair : measured.pairs) classes[pair.distance] = nullptr;
  if (profile != nullptr) {
    for (const LinkClass& link : profile->links()) {
      const auto found = classes.find(link.distance());
      if (found != classes.end()) found->second = &link;
    }
  }
  for (const auto& [distance, link] : classes) {
    AddClass(measured, distance, link, &text);
  }
  for (const CollectiveTimes& times : measured.collectives) {
    AddCollective(times, &text);
  }
  absl::StrAppend(&text, "\nmemory of communicators\n");
  AddMemory(measured, &text);
  return text;
}

NetworkRecord RecordOf(const NetworkMeasurements& measured,
                       const Provenance& provenance) {
  NetworkRecord record;
  *record.mutable_provenance() = provenance;
  for (const CollectiveTimes& times : measured.collectives) {
    NetworkRecord::Collective& added = *record.add_collectives();
    added.set_kind(Name(times.kind));
    added.mutable_ranks()->Add(times.group.ranks.begin(),
                               times.group.ranks.end());
    added.set_ranks_per_node(times.group.ranks_per_node);
    added.set_first_seconds(times.first_seconds);
    for (const CollectiveTimes::Row& row : times.rows) {
      NetworkRecord::Collective::Row& to = *added.add_rows();
      to.set_bytes(row.bytes);
      to.set_seconds(row.seconds);
    }
  }
  for (const PairTimes& pair : measured.pairs) {
    NetworkRecord::Pair& added = *record.add_pairs();
    added.set_distance(pair.distance);
    added.set_from(pair.from);
    added.set_to(pair.to);
    added.set_first_seconds(pair.first_seconds);
    for (const PairTimes::Row& row : pair.rows) {
      NetworkRecord::Pair::Row& to = *added.add_rows();
      to.set_bytes(row.bytes);
      to.set_one_way_seconds(row.one_way_seconds);
      to.set_both_ways_seconds(row.both_ways_seconds);
      to.set_message_seconds(row.message_seconds);
    }
  }
  return record;
}

}  // namespace weir::calibrate
