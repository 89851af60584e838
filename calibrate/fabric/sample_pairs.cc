// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "calibrate/fabric/topology.h"

namespace weir::calibrate {
namespace {

// Candidates of a class: all pairs of a small machine, a uniform sample of a
// large one.
constexpr size_t kMaxCandidates = 4000;

// Number of times that a pair's ranks, nodes and leaves were already used.
struct UseCounts {
  std::map<int, int> ranks, nodes, leaves;
  std::map<std::pair<int, int>, int> node_pairs;

  auto Score(const std::vector<RankPlace>& places, const RankPair& pair) const {
    const auto count = [](const std::map<int, int>& uses, int a, int b) {
      const auto of = [&](int key) {
        const auto found = uses.find(key);
        return found == uses.end() ? 0 : found->second;
      };
      return std::max(of(a), of(b)) * 2 + std::min(of(a), of(b));
    };
    const RankPlace& a = places[pair.from];
    const RankPlace& b = places[pair.to];
    const auto together = node_pairs.find(std::minmax(a.node, b.node));
    return std::make_tuple(count(ranks, pair.from, pair.to),
                           count(leaves, a.leaf, b.leaf),
                           count(nodes, a.node, b.node),
                           together == node_pairs.end() ? 0 : together->second);
  }

  void Add(const std::vector<RankPlace>& places, const RankPair& pair) {
    for (const int rank : {pair.from, pair.to}) {
      ++ranks[rank];
      ++nodes[places[rank].node];
      ++leaves[places[rank].leaf];
    }
    ++node_pairs[std::minmax(places[pair.from].node, places[pair.to].node)];
  }
};

std::vector<RankPair> Spread(const std::vector<RankPlace>& places,
                             std::vector<RankPair> candidates, int num_pairs) {
  UseCounts uses;
  std::vector<RankPair> chosen;
  while (static_cast<int>(chosen.size()) < num_pairs && !candidates.empty()) {
    const auto best =
        std::min_element(candidates.begin(), candidates.end(),
                         [&](const RankPair& a, const RankPair& b) {
                           return uses.Score(places, a) < uses.Score(places, b);
                         });
    uses.Add(places, *best);
    chosen.push_back(*best);
    candidates.erase(best);
  }
  return chosen;
}

}  // namespace

std::vector<std::pair<LinkClass::Distance, std::vector<RankPair>>> SamplePairs(
    const std::vector<RankPlace>& places, int num_pairs, uint64_t seed) {
  // Standard distributions differ between libraries; engines do not.
  std::mt19937_64 random(seed);
  std::map<LinkClass::Distance, std::vector<RankPair>> candidates;
  std::map<LinkClass::Distance, uint64_t> num_seen;
  const int num_ranks = static_cast<int>(places.size());
  for (int from = 0; from < num_ranks; ++from) {
    for (int to = from + 1; to < num_ranks; ++to) {
      const LinkClass::Distance distance = DistanceOf(places[from], places[to]);
      std::vector<RankPair>& kept = candidates[distance];
      const uint64_t seen = ++num_seen[distance];
      const uint64_t slot = random() % seen;
      if (kept.size() < kMaxCandidates) {
        kept.push_back({from, to});
        std::swap(kept.back(), kept[slot]);
      } else if (slot < kMaxCandidates) {
        kept[slot] = {from, to};
      }
    }
  }
  std::vector<std::pair<LinkClass::Distance, std::vector<RankPair>>> sampled;
  for (auto& [distance, pairs] : candidates) {
    sampled.emplace_back(distance, Spread(places, std::move(pairs), num_pairs));
  }
  return sampled;
}

}  // namespace weir::calibrate
