// SPDX-License-Identifier: Apache-2.0
#include "schedules/comm/streams.h"

#include <algorithm>

namespace weir::schedules {
namespace {

constexpr uint8_t kPosted = static_cast<uint8_t>(Streams::Event::kPosted);
constexpr uint8_t kDone = static_cast<uint8_t>(Streams::Event::kDone);

}  // namespace

void Streams::BeginStream() { begin_.push_back(num_items_); }

int32_t Streams::AddItem(double duration) {
  duration_.push_back(duration);
  return num_items_++;
}

void Streams::Add(int32_t item, Dependency dependency) {
  dependency_end_.resize(item + 1,
                         dependency_end_.empty() ? 0 : dependency_end_.back());
  dependencies_.push_back(dependency);
  dependency_end_[item] = static_cast<uint32_t>(dependencies_.size());
}

void Streams::AddPostDependency(int32_t item, int32_t other, Event event) {
  Add(item, {static_cast<uint32_t>(other), event == Event::kDone, 0});
}

void Streams::AddEndDependency(int32_t item, int32_t other, Event event) {
  Add(item, {static_cast<uint32_t>(other), event == Event::kDone, 1});
}

int Streams::StreamOf(int32_t item) const {
  return static_cast<int>(std::upper_bound(begin_.begin(), begin_.end(), item) -
                          begin_.begin()) -
         1;
}

int32_t Streams::StreamEnd(int stream) const {
  return stream + 1 < num_streams() ? begin_[stream + 1] : num_items_;
}

absl::Span<const Streams::Dependency> Streams::DependenciesOf(
    int32_t item) const {
  const auto end_of = [&](int32_t i) -> size_t {
    if (i < 0 || dependency_end_.empty()) return 0;
    return dependency_end_[std::min<size_t>(i, dependency_end_.size() - 1)];
  };
  const size_t begin = end_of(item - 1);
  return absl::MakeSpan(dependencies_).subspan(begin, end_of(item) - begin);
}

// Returns true if the dependency applies to the item's current state and has
// not happened.
bool Streams::IsUnmet(int32_t item, Dependency dependency,
                      const Outcome& outcome) {
  const bool posted = outcome.state[item] >= kPosted;
  return static_cast<bool>(dependency.to_end) == posted &&
         outcome.state[dependency.other] <
             (dependency.event != 0 ? kDone : kPosted);
}

Streams::Outcome Streams::Run(bool clock) const {
  Outcome outcome;
  outcome.state.assign(num_items_, 0);
  if (clock) {
    outcome.posted_at.assign(num_items_, 0);
    outcome.done_at.assign(num_items_, 0);
  }
  const int streams = num_streams();
  std::vector<int32_t> next(begin_.begin(), begin_.end());
  // Linked lists of streams whose first item waits for an item; each stream
  // waits for only one item.
  std::vector<int32_t> first_waiter(num_items_, -1);
  std::vector<int32_t> next_waiter(streams, -1);
  std::vector<int32_t> ready;
  for (int stream = streams; stream-- > 0;) ready.push_back(stream);
  const auto happened = [&](int32_t item) {
    for (int32_t waiter = first_waiter[item]; waiter >= 0;) {
      ready.push_back(waiter);
      const int32_t after = next_waiter[waiter];
      next_waiter[waiter] = -1;
      waiter = after;
    }
    first_waiter[item] = -1;
  };
  // Returns the time at which all these dependencies had happened.
  const auto dependencies_met_at = [&](int32_t item, bool to_end) {
    double at = 0;
    for (const Dependency dependency : DependenciesOf(item)) {
      if (static_cast<bool>(dependency.to_end) != to_end) continue;
      at = std::max(at, dependency.event != 0
                            ? outcome.done_at[dependency.other]
                            : outcome.posted_at[dependency.other]);
    }
    return at;
  };
  while (!ready.empty()) {
    const int32_t stream = ready.back();
    ready.pop_back();
    const int32_t end = StreamEnd(stream);
    while (next[stream] < end) {
      const int32_t item = next[stream];
      const absl::Span<const Dependency> dependencies = DependenciesOf(item);
      const auto unmet = std::find_if(
          dependencies.begin(), dependencies.end(), [&](Dependency dependency) {
            return IsUnmet(item, dependency, outcome);
          });
      if (unmet != dependencies.end()) {
        next_waiter[stream] = first_waiter[unmet->other];
        first_waiter[unmet->other] = stream;
        break;
      }
      if (outcome.state[item] == 0) {
        outcome.state[item] = kPosted;
        if (clock) {
          const double free =
              item > begin_[stream] ? outcome.done_at[item - 1] : 0;
          outcome.posted_at[item] =
              std::max(free, dependencies_met_at(item, false));
        }
        happened(item);
        continue;
      }
      outcome.state[item] = kDone;
      if (clock) {
        outcome.done_at[item] =
            std::max(outcome.posted_at[item], dependencies_met_at(item, true)) +
            duration_[item];
        outcome.end = std::max(outcome.end, outcome.done_at[item]);
      }
      ++next[stream];
      happened(item);
    }
  }
  for (int stream = 0; stream < streams; ++stream) {
    if (next[stream] < StreamEnd(stream)) outcome.deadlocked = true;
  }
  return outcome;
}

std::vector<std::vector<Streams::Edge>> Streams::EdgesOf(
    const Outcome& outcome) const {
  std::vector<std::vector<Edge>> edges(num_streams());
  for (int stream = 0; stream < num_streams(); ++stream) {
    int32_t item = begin_[stream];
    while (item < StreamEnd(stream) && outcome.state[item] == kDone) ++item;
    if (item == StreamEnd(stream)) continue;
    for (const Dependency dependency : DependenciesOf(item)) {
      if (!IsUnmet(item, dependency, outcome)) continue;
      const int32_t other = static_cast<int32_t>(dependency.other);
      edges[stream].push_back(
          {StreamOf(other),
           {item, other,
            dependency.event != 0 ? Event::kDone : Event::kPosted}});
    }
  }
  return edges;
}

// Searches breadth first from each stream back to itself, up to the length of
// the shortest cycle found so far.
std::vector<Streams::Wait> Streams::ShortestCycle(
    const Outcome& outcome) const {
  // Only extreme inputs exhaust it; then any cycle suffices.
  int64_t budget = 20'000'000;
  const std::vector<std::vector<Edge>> edges = EdgesOf(outcome);
  std::vector<Wait> shortest;
  std::vector<int> seen(num_streams(), -1), parent(num_streams(), -1),
      depth(num_streams(), 0);
  std::vector<const Wait*> by(num_streams(), nullptr);
  std::vector<int> queue;
  const auto search = [&](int start) {
    queue.assign(1, start);
    seen[start] = start;
    depth[start] = 0;
    for (size_t i = 0; i < queue.size(); ++i) {
      const int from = queue[i];
      if (!shortest.empty() && depth[from] + 1 >= std::ssize(shortest)) return;
      for (const Edge& edge : edges[from]) {
        --budget;
        if (edge.to == start) {
          shortest = {edge.wait};
          for (int at = from; at != start; at = parent[at]) {
            shortest.push_back(*by[at]);
          }
          std::reverse(shortest.begin(), shortest.end());
          return;
        }
        if (seen[edge.to] == start) continue;
        seen[edge.to] = start;
        parent[edge.to] = from;
        depth[edge.to] = depth[from] + 1;
        by[edge.to] = &edge.wait;
        queue.push_back(edge.to);
      }
    }
  };
  for (int start = 0; start < num_streams(); ++start) {
    if (budget <= 0 && !shortest.empty()) break;
    if (!edges[start].empty()) search(start);
  }
  return shortest;
}

}  // namespace weir::schedules
