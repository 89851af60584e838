// SPDX-License-Identifier: Apache-2.0
#include "sim/fold.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "absl/container/flat_hash_set.h"

namespace weir {

// Begins with one class of replicas and one of tensor ranks, and splits them
// until all of a class do the same.
class FoldSearch {
 public:
  FoldSearch(const Network& network, const Placement& everybody,
             const Traffic& traffic)
      : network_(network),
        place_(everybody),
        traffic_(traffic),
        ways_(network, nullptr, nullptr, &hops_) {
    fold_.everybody_ = everybody;
    fold_.copies_ = traffic.copies;
    fold_.replica_class_.assign(everybody.data, 0);
    fold_.tensor_class_.assign(everybody.tensor, 0);
  }

  std::optional<Fold> Run() {
    AddUses();
    NumberLinks();
    while (true) {
      NameRoles();
      Refine();
      if (!IsEquitable() || !RolesAreApart()) return std::nullopt;
      SignInstances();
      if (InstancesAreAlike()) break;
      if (!SplitClasses()) return std::nullopt;
    }
    SetRepresentatives();
    if (fold_.representatives_.num_gpus() == place_.num_gpus()) {
      return std::nullopt;
    }
    NumberColours();
    if (traffic_.slows_passes && !TouchesAreAlike()) return std::nullopt;
    if (!AddLinks()) return std::nullopt;
    NameColours();
    return std::move(fold_);
  }

 private:
  // One hop that a flow can take.
  struct Use {
    int32_t from = 0, to = 0;  // GPUs of the cluster; below 0: a host's memory
    int32_t first_link = 0, end_link = 0;  // in use_links_
    double latency_seconds = 0;            // as far as it matters
    uint8_t kind = 0;                      // of hop: no two of a kind differ
    uint64_t colour = 0;
    int32_t number = -1;  // of its colour
  };
  // What is done once in the folded graph and here by several.
  struct Instance {
    FoldRole name;  // with replica and tensor rank instead of their classes
    int32_t role = 0;
    int32_t first_use = 0, end_use = 0;
    int32_t group = -1;  // index into groups_
    // Of a transfer: what it is priced by.
    Wire wire = Wire::kNone;
    bool same_leaf = false;
    double latency_seconds = 0;
    std::vector<uint64_t> colours = {};  // ascending, each once
    uint64_t signature = 0;              // of all that must be alike
  };
  struct Role {
    FoldRole name;
    int32_t first = 0;  // instance
  };

  static uint64_t Mix(uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  std::span<const int32_t> LinksOf(const Use& use) const {
    return {use_links_.data() + use.first_link,
            use_links_.data() + use.end_link};
  }
  std::span<const Use> UsesOf(const Instance& instance) const {
    return {uses_.data() + instance.first_use, uses_.data() + instance.end_use};
  }

  void AddUses() {
    const int d = place_.data, n = place_.tensor, e = traffic_.expert_parallel;
    using Kind = FoldRole::Kind;
    for (int r = 0; r < d; ++r) {
      for (int t = 0; t < n; ++t) AddUsesOf(r, t);
    }
    for (int rank = 0; rank < place_.pipeline; ++rank) {
      for (int r = 0; n > 1 && r < d; ++r) {
        AddGroup({Kind::kTensor, rank, 0, r, 0},
                 Members({rank}, r, r + 1, 1, 0, n));
      }
      for (int r = 0; e > 1 && r < d; r += e) {
        for (int t = 0; t < n; ++t) {
          AddGroup({Kind::kExperts, rank, 0, r, t},
                   Members({rank}, r, r + e, 1, t, t + 1));
        }
      }
    }
    for (int i = 0; i < static_cast<int>(traffic_.copies.size()); ++i) {
      const std::vector<int>& ranks = traffic_.copies[i];
      for (int t = 0; t < n; ++t) {
        AddGroup({Kind::kCopies, i, 0, 0, t},
                 Members(ranks, 0, d, 1, t, t + 1));
        for (int part = 0; e > 1 && part < e; ++part) {
          AddGroup({Kind::kExpertCopies, i, 0, part, t},
                   Members(ranks, part, d, e, t, t + 1));
        }
      }
    }
  }

  // Of one GPU of each rank.
  void AddUsesOf(int r, int t) {
    using Kind = FoldRole::Kind;
    for (const auto& [a, b] : traffic_.sends) {
      AddSend({Kind::kSend, a, b, r, t}, place_.gpu(r, a, t),
              place_.gpu(r, b, t));
    }
    for (int rank : traffic_.offloads) {
      const int gpu = place_.gpu(r, rank, t);
      instances_.push_back(InstanceOf({Kind::kToHost, rank, 0, r, t}));
      AddUse(gpu, -1, network_.RouteToHost(gpu), kHost);
      instances_.push_back(InstanceOf({Kind::kFromHost, rank, 0, r, t}));
      AddUse(gpu, -1, network_.RouteFromHost(gpu), kHost);
    }
    if (traffic_.tied.empty()) return;
    const int a = traffic_.tied[0], b = traffic_.tied[1];
    AddGroup({Kind::kTied, a, b, r, t},
             {place_.gpu(r, a, t), place_.gpu(r, b, t)});
  }

  std::vector<int> Members(const std::vector<int>& ranks, int first_replica,
                           int end_replica, int stride, int first_tensor_rank,
                           int end_tensor_rank) const {
    std::vector<int> gpus;
    for (int rank : ranks) {
      for (int r = first_replica; r < end_replica; r += stride) {
        for (int t = first_tensor_rank; t < end_tensor_rank; ++t) {
          gpus.push_back(place_.gpu(r, rank, t));
        }
      }
    }
    return gpus;
  }

  Instance InstanceOf(const FoldRole& name) const {
    Instance instance;
    instance.name = name;
    instance.first_use = instance.end_use = static_cast<int32_t>(uses_.size());
    return instance;
  }

  // Of the last instance. Nothing without links.
  void AddUse(int from, int to, const Route& route, uint8_t kind) {
    if (route.links.empty()) return;
    Use use;
    use.from = from;
    use.to = to;
    use.kind = kind;
    // A model of collectives knows the latencies of groups.
    if (kind != kIntra && kind != kInter) {
      use.latency_seconds = route.latency_seconds;
    } else if (!traffic_.models_collectives) {
      use.latency_seconds = route.latency_seconds;
    }
    use.first_link = static_cast<int32_t>(use_links_.size());
    use_links_.insert(use_links_.end(), route.links.begin(), route.links.end());
    use.end_link = static_cast<int32_t>(use_links_.size());
    uses_.push_back(use);
    instances_.back().end_use = static_cast<int32_t>(uses_.size());
  }

  void AddSend(const FoldRole& name, int from, int to) {
    Instance instance = InstanceOf(name);
    const Route route = network_.RouteBetween(from, to);
    instance.wire = network_.WireBetween(from, to);
    instance.same_leaf = network_.SameLeaf(from, to);
    instance.latency_seconds = route.latency_seconds;
    instances_.push_back(std::move(instance));
    AddUse(from, to, route, kLone);
  }

  void AddGroup(const FoldRole& name, const std::vector<int>& gpus) {
    Instance instance = InstanceOf(name);
    instance.group = static_cast<int32_t>(groups_.size());
    instances_.push_back(std::move(instance));
    groups_.push_back(ways_.GroupOf(gpus));
    const auto add = [&](const std::vector<int32_t>& hops, uint8_t kind) {
      for (int32_t hop : hops) {
        const GpuPair& pair = hops_.pairs[hop];
        AddUse(pair.from % network_.num_gpus(), pair.to % network_.num_gpus(),
               pair.route, kind);
      }
    };
    add(groups_.back().intra_hops, kIntra);
    add(groups_.back().inter_hops, kInter);
  }

  // By the classes of now.
  void NameRoles() {
    roles_.clear();
    absl::flat_hash_map<FoldRole, int32_t> index;
    for (size_t i = 0; i < instances_.size(); ++i) {
      Instance& instance = instances_[i];
      FoldRole name = instance.name;
      name.replica = fold_.replica_class_[name.replica];
      name.tensor_rank = fold_.tensor_class_[name.tensor_rank];
      const auto [at, added] =
          index.try_emplace(name, static_cast<int32_t>(roles_.size()));
      if (added) roles_.push_back({name, static_cast<int32_t>(i)});
      instance.role = at->second;
      for (int32_t u = instance.first_use; u < instance.end_use; ++u) {
        Use& use = uses_[u];
        use.colour = Mix(Mix(instance.role * 4 + use.kind) ^
                         std::bit_cast<uint64_t>(use.latency_seconds));
      }
    }
  }

  static bool PricedAlike(const Group& a, const Group& b) {
    const CollectiveGroup &one = a.links, &other = b.links;
    return a.num_rings == b.num_rings &&
           a.intra_seconds_per_byte == b.intra_seconds_per_byte &&
           a.inter_seconds_per_byte == b.inter_seconds_per_byte &&
           a.shares_links == b.shares_links && a.hop_seconds == b.hop_seconds &&
           one.num_ranks == other.num_ranks &&
           one.ranks_per_node == other.ranks_per_node &&
           one.intra_bytes_per_second == other.intra_bytes_per_second &&
           one.inter_bytes_per_second == other.inter_bytes_per_second &&
           one.pci == other.pci && one.nvls == other.nvls;
  }

  // Only links that somebody uses count.
  void NumberLinks() {
    std::vector<int32_t> number(network_.links().size(), -1);
    for (int32_t& link : use_links_) {
      if (number[link] < 0) {
        number[link] = static_cast<int32_t>(rates_.size());
        rates_.push_back(network_.links()[link].bytes_per_second);
      }
      link = number[link];
    }
    link_colours_.resize(rates_.size());
  }

  void Refine() {
    size_t num_colours = 0;
    absl::flat_hash_set<uint64_t> seen;
    while (true) {
      for (size_t link = 0; link < rates_.size(); ++link) {
        link_colours_[link] = std::bit_cast<uint64_t>(rates_[link]);
      }
      for (const Use& use : uses_) {
        const uint64_t mixed = Mix(use.colour);
        for (int32_t link : LinksOf(use)) link_colours_[link] += mixed;
      }
      for (uint64_t& colour : link_colours_) colour = Mix(colour);
      seen.clear();
      for (Use& use : uses_) {
        uint64_t sum = use.colour;
        for (int32_t link : LinksOf(use)) sum += Mix(link_colours_[link] + 1);
        use.colour = Mix(sum);
        seen.insert(use.colour);
      }
      if (seen.size() == num_colours) return;
      num_colours = seen.size();
    }
  }

  // What the hashes claim, checked without them: whatever colours are, these
  // counts are what the proof needs.
  bool IsEquitable() {
    std::vector<std::vector<uint64_t>> crossing(rates_.size());
    for (const Use& use : uses_) {
      for (int32_t link : LinksOf(use)) crossing[link].push_back(use.colour);
    }
    absl::flat_hash_map<uint64_t, size_t> first_link;
    for (size_t link = 0; link < rates_.size(); ++link) {
      std::sort(crossing[link].begin(), crossing[link].end());
      const size_t first =
          first_link.try_emplace(link_colours_[link], link).first->second;
      if (crossing[first] != crossing[link] || rates_[first] != rates_[link]) {
        return false;
      }
    }
    absl::flat_hash_map<uint64_t, size_t> first_use;
    for (size_t i = 0; i < uses_.size(); ++i) {
      const size_t first =
          first_use.try_emplace(uses_[i].colour, i).first->second;
      if (first == i) continue;
      if (SortedLinkColours(uses_[first]) != SortedLinkColours(uses_[i]) ||
          uses_[first].latency_seconds != uses_[i].latency_seconds) {
        return false;
      }
    }
    crossing_ = std::move(crossing);
    return true;
  }

  std::vector<uint64_t> SortedLinkColours(const Use& use) const {
    std::vector<uint64_t> colours;
    for (int32_t link : LinksOf(use)) colours.push_back(link_colours_[link]);
    std::sort(colours.begin(), colours.end());
    return colours;
  }

  // No colour is of two roles. (By hashes it cannot be.)
  bool RolesAreApart() {
    absl::flat_hash_map<uint64_t, int32_t> owner;
    for (Instance& instance : instances_) {
      instance.colours.clear();
      for (const Use& use : UsesOf(instance)) {
        instance.colours.push_back(use.colour);
        if (owner.try_emplace(use.colour, instance.role).first->second !=
            instance.role) {
          return false;
        }
      }
      std::sort(instance.colours.begin(), instance.colours.end());
      instance.colours.erase(
          std::unique(instance.colours.begin(), instance.colours.end()),
          instance.colours.end());
    }
    return true;
  }

  void SignInstances() {
    for (Instance& instance : instances_) {
      uint64_t& sum = instance.signature;
      sum = Mix(instance.role);
      const auto add = [&sum](uint64_t x) { sum = Mix(sum ^ x); };
      for (uint64_t colour : instance.colours) add(colour);
      add(static_cast<uint64_t>(instance.wire) * 2 + instance.same_leaf);
      add(std::bit_cast<uint64_t>(instance.latency_seconds));
      if (instance.group < 0) continue;
      const Group& group = groups_[instance.group];
      const CollectiveGroup& links = group.links;
      add(group.num_rings * 2 + group.shares_links);
      add(links.num_ranks * 4 + links.pci * 2 + links.nvls);
      add(links.ranks_per_node);
      for (double figure :
           {group.intra_seconds_per_byte, group.inter_seconds_per_byte,
            group.hop_seconds, links.intra_bytes_per_second,
            links.inter_bytes_per_second}) {
        add(std::bit_cast<uint64_t>(figure));
      }
    }
  }

  // All of a role have the same colours and prices.
  bool InstancesAreAlike() const {
    return std::all_of(
        instances_.begin(), instances_.end(), [&](const Instance& one) {
          const Instance& first = instances_[roles_[one.role].first];
          return one.colours == first.colours && one.wire == first.wire &&
                 one.same_leaf == first.same_leaf &&
                 one.latency_seconds == first.latency_seconds &&
                 (one.group < 0 ||
                  PricedAlike(groups_[one.group], groups_[first.group]));
        });
  }

  // Those that do not do the same. False: all do, as far as replicas and tensor
  // ranks can be told apart.
  bool SplitClasses() {
    std::vector<uint64_t> of_replica(place_.data), of_tensor(place_.tensor);
    using Kind = FoldRole::Kind;
    for (const Instance& instance : instances_) {
      const uint64_t mixed = Mix(instance.signature);
      const FoldRole& name = instance.name;
      if (name.kind != Kind::kCopies) of_replica[name.replica] += mixed;
      if (name.kind != Kind::kTensor) of_tensor[name.tensor_rank] += mixed;
    }
    if (traffic_.expert_parallel > 1) {
      // Replicas that share out experts stay together: all or none.
      std::iota(of_replica.begin(), of_replica.end(), 0);
    }
    const bool by_replica = Split(of_replica, &fold_.replica_class_);
    return Split(of_tensor, &fold_.tensor_class_) || by_replica;
  }

  static bool Split(const std::vector<uint64_t>& signatures,
                    std::vector<int32_t>* classes) {
    std::map<std::pair<int32_t, uint64_t>, int32_t> index;
    const std::vector<int32_t> before = *classes;
    for (size_t i = 0; i < signatures.size(); ++i) {
      const auto next = static_cast<int32_t>(index.size());
      (*classes)[i] =
          index.try_emplace({before[i], signatures[i]}, next).first->second;
    }
    return *classes != before;
  }

  void SetRepresentatives() {
    fold_.replicas_ = FirstOfEach(fold_.replica_class_);
    fold_.tensor_ranks_ = FirstOfEach(fold_.tensor_class_);
    Placement& rest = fold_.representatives_;
    rest.tensor = static_cast<int>(fold_.tensor_ranks_.size());
    rest.data = static_cast<int>(fold_.replicas_.size());
    rest.pipeline = place_.pipeline;
    for (int r : fold_.replicas_) {
      for (int rank = 0; rank < rest.pipeline; ++rank) {
        for (int t : fold_.tensor_ranks_) {
          rest.gpus.push_back(place_.gpu(r, rank, t));
        }
      }
    }
  }

  // Classes are numbered in the order of their first.
  static std::vector<int32_t> FirstOfEach(const std::vector<int32_t>& classes) {
    std::vector<int32_t> first;
    for (int32_t i = 0; i < std::ssize(classes); ++i) {
      if (classes[i] == std::ssize(first)) first.push_back(i);
    }
    return first;
  }

  void NumberColours() {
    for (const Role& role : roles_) {
      for (const Use& use : UsesOf(instances_[role.first])) {
        const auto [at, added] = colour_number_.try_emplace(
            use.colour, static_cast<int32_t>(colour_number_.size()));
        if (added) {
          fold_.colours_.emplace_back().route.latency_seconds =
              use.latency_seconds;
        }
      }
    }
    for (Use& use : uses_) use.number = colour_number_.at(use.colour);
  }

  // A GPU is touched by flows of the same colours as whom stands for it.
  bool TouchesAreAlike() {
    std::vector<std::vector<int32_t>> touching(network_.num_gpus());
    for (const Use& use : uses_) {
      for (int32_t gpu : {use.from, use.to}) {
        if (gpu >= 0) touching[gpu].push_back(use.number);
      }
      if (use.to < 0) {
        fold_.colours_[use.number].touch.mover = Mover::kCopies;
      }
    }
    for (std::vector<int32_t>& colours : touching) {
      std::sort(colours.begin(), colours.end());
      colours.erase(std::unique(colours.begin(), colours.end()), colours.end());
    }
    for (int i = 0; i < place_.num_gpus(); ++i) {
      const int gpu = fold_.representatives_.gpus[fold_.RepresentativeOf(i)];
      if (touching[place_.gpus[i]] != touching[gpu]) return false;
    }
    for (int gpu : fold_.representatives_.gpus) {
      for (int32_t colour : touching[gpu]) {
        fold_.colours_[colour].touch.gpus.push_back(gpu);
      }
    }
    return true;
  }

  // One link for all of a colour; and of links that carry the same, the one
  // with the least room for it.
  bool AddLinks() {
    using Counts = std::vector<std::pair<int32_t, int32_t>>;  // colour, flows
    std::map<Counts, double> rates;
    absl::flat_hash_set<uint64_t> seen;
    for (size_t link = 0; link < rates_.size(); ++link) {
      if (!seen.insert(link_colours_[link]).second) continue;
      std::map<int32_t, int32_t> counts;
      for (uint64_t colour : crossing_[link])
        ++counts[colour_number_.at(colour)];
      int32_t divisor = 0;
      for (const auto& [colour, count] : counts) {
        divisor = std::gcd(divisor, count);
      }
      Counts key;
      for (const auto& [colour, count] : counts) {
        key.push_back({colour, count / divisor});
      }
      const double rate = rates_[link] / divisor;
      const auto [at, added] = rates.try_emplace(std::move(key), rate);
      if (!added) at->second = std::min(at->second, rate);
    }
    for (const auto& [counts, rate] : rates) {
      const auto link = static_cast<int32_t>(fold_.links_.size());
      fold_.links_.push_back({"folded", rate});
      for (const auto& [colour, count] : counts) {
        if (counts.size() > 1) fold_.colours_[colour].has_own_links = false;
        std::vector<int32_t>& route = fold_.colours_[colour].route.links;
        if (route.size() + count > kMaxNames) return false;
        route.insert(route.end(), count, link);
      }
    }
    return true;
  }

  // Says which colours each role has.
  void NameColours() {
    for (const Role& role : roles_) {
      const Instance& first = instances_[role.first];
      const auto uses = UsesOf(first);
      if (first.group < 0) {
        fold_.sends_[role.name] = uses.empty() ? -1 : uses[0].number;
        continue;
      }
      Group& group = groups_[first.group];
      group.intra_hops.clear();
      group.inter_hops.clear();
      group.hop_set = -1;
      for (const Use& use : uses) {
        std::vector<int32_t>& hops =
            use.kind == kIntra ? group.intra_hops : group.inter_hops;
        if (std::find(hops.begin(), hops.end(), use.number) == hops.end()) {
          hops.push_back(use.number);
        }
      }
      fold_.groups_[role.name] = std::move(group);
    }
  }

  static constexpr uint8_t kLone = 0, kIntra = 1, kInter = 2, kHost = 3;
  // More would cost more than they save.
  static constexpr size_t kMaxNames = 4096;

  const Network& network_;
  const Placement& place_;
  const Traffic& traffic_;
  TaskGraph hops_;  // only its pairs
  Ways ways_;
  Fold fold_;
  std::vector<Use> uses_;
  std::vector<int32_t> use_links_;
  std::vector<Instance> instances_;
  std::vector<Role> roles_;
  std::vector<Group> groups_;
  std::vector<double> rates_;                    // [link]
  std::vector<uint64_t> link_colours_;           // [link]
  std::vector<std::vector<uint64_t>> crossing_;  // [link] colours, ascending
  absl::flat_hash_map<uint64_t, int32_t> colour_number_;
};

std::optional<Fold> Fold::Find(const Network& network,
                               const Placement& everybody,
                               const Traffic& traffic) {
  return FoldSearch(network, everybody, traffic).Run();
}

int Fold::RepresentativeOf(int index) const {
  const int n = everybody_.tensor;
  const int row = index / n;  // tensor group
  return representatives_.index(replica_class_[row / everybody_.pipeline],
                                row % everybody_.pipeline,
                                tensor_class_[index % n]);
}

int Fold::IndexOf(int representative) const {
  const int n = representatives_.tensor;
  const int row = representative / n;
  return everybody_.index(replicas_[row / everybody_.pipeline],
                          row % everybody_.pipeline,
                          tensor_ranks_[representative % n]);
}

int Fold::IndexOfCopies(const std::vector<int>& ranks) const {
  return static_cast<int>(std::find(copies_.begin(), copies_.end(), ranks) -
                          copies_.begin());
}

int32_t Fold::ColourOf(const FoldRole& role) const {
  const auto at = sends_.find(role);
  return at == sends_.end() ? -1 : at->second;
}

}  // namespace weir
