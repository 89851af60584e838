// SPDX-License-Identifier: Apache-2.0
#include "plan/synthesis/single_rank_bound.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace weir::plan {
namespace {

constexpr size_t kMaxLabels = 256;
constexpr double kBoundRounding = 1e-12;

// Numbers of forwards, gradients and weight gradients done.
using Done = std::tuple<int, int, int>;

// Times of one way to reach a state; smaller is better for each.
struct Label {
  double now = 0;
  // Times of the last forward, before `turnaround` is added: its start on the
  // last rank, its end there, and the end of the later rank's work.
  double turns = 0, turned = 0, worked = 0;
  double last = 0;  // when its gradient can start, ignoring `now`
  std::vector<double> ready = {};  // same for the others in flight

  bool IsNoWorse(const Label& other) const {
    if (now > other.now || last > other.last || turns > other.turns ||
        turned > other.turned || worked > other.worked) {
      return false;
    }
    for (size_t i = 0; i < ready.size(); ++i) {
      if (ready[i] > other.ready[i]) return false;
    }
    return true;
  }
  void TakeBest(const Label& other) {
    now = std::min(now, other.now);
    turns = std::min(turns, other.turns);
    turned = std::min(turned, other.turned);
    worked = std::min(worked, other.worked);
    last = std::min(last, other.last);
    for (size_t i = 0; i < ready.size(); ++i) {
      ready[i] = std::min(ready[i], other.ready[i]);
    }
  }
};

class Alone {
 public:
  explicit Alone(const SingleRankProblem& in)
      : in_(in),
        m_(in.num_microbatches),
        least_input_(in.can_split ? std::min(in.input, in.fused) : in.fused),
        least_weight_(in.may_fuse || !in.can_split ? 0 : in.weight) {
    if (in.may_fuse) least_input_ = std::min(least_input_, in.fused);
    best_ = in.cutoff;
  }

  double Run() {
    // Layers by number of passes done: every pass leads to the next layer, a
    // whole backward to the one after that.
    std::vector<std::map<Done, std::vector<Label>>> layers(3 * m_ + 3);
    layers_ = &layers;
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    layers[0][{0, 0, 0}] = {{0, kNever, kNever, kNever, kNever, {}}};
    for (auto& layer : layers) {
      for (auto& [done, labels] : layer) {
        Thin(&labels);
        for (const Label& label : labels) Extend(done, label);
      }
      layer.clear();
    }
    return best_;
  }

 private:
  bool Fits(int activations, int weights) const {
    return in_.activation * activations + in_.weight_inputs * weights <=
           in_.limit;
  }

  void Extend(const Done& done, const Label& label) {
    const auto [forwards, inputs, weights] = done;
    const int held = forwards - inputs, pending = inputs - weights;
    if (forwards < m_ && Fits(held + 1, pending)) Forward(done, label);
    if (held > 0) {
      if (in_.can_split && Fits(held - 1, pending + 1)) {
        Input(done, label, in_.input, 0);
      }
      if (in_.may_fuse || !in_.can_split) Input(done, label, in_.fused, 1);
    }
    if (pending > 0) {
      Label next = label;
      next.now += in_.weight;
      Add({forwards, inputs, weights + 1}, std::move(next));
    }
  }

  void Forward(const Done& done, const Label& label) {
    const auto [forwards, inputs, weights] = done;
    Label next = label;
    next.now =
        std::max(label.now, forwards * in_.between_arrivals) + in_.forward;
    if (forwards > inputs) next.ready.push_back(label.last);
    next.turns = std::max(next.now, label.turns + in_.forwards_apart);
    next.turned = std::max(next.turns, label.turned + in_.turn);
    next.worked = std::max(next.now, label.worked + in_.work);
    next.last = std::max({next.turned + in_.turnaround,
                          next.worked - in_.work_left + in_.turnaround,
                          label.last + in_.gradients_apart});
    Add({forwards + 1, inputs, weights}, std::move(next));
  }

  void Input(const Done& done, const Label& label, double seconds, int whole) {
    const auto [forwards, inputs, weights] = done;
    Label next = label;
    double ready = label.last;
    if (!label.ready.empty()) {
      ready = label.ready.front();
      next.ready.erase(next.ready.begin());
    }
    next.now = std::max(label.now, ready) + seconds;
    Add({forwards, inputs + 1, weights + whole}, std::move(next));
  }

  void Add(Done done, Label label) {
    const auto [forwards, inputs, weights] = done;
    double end = label.now;
    if (in_.until_all_is_done) {
      end += (m_ - forwards) * in_.forward +
             (m_ - inputs) * (least_input_ + least_weight_) +
             (inputs - weights) * in_.weight;
    }
    const double last = inputs == m_ ? label.now + in_.tail : 0;
    if (inputs < m_) {
      // The last gradient is that of a forward in flight or still to run.
      double gradient = std::max(label.now, label.last);
      if (forwards < m_) {
        gradient = std::max(
            label.now + (m_ - forwards) * in_.forward + in_.turnaround,
            label.turned + (m_ - forwards) * in_.turn + in_.turnaround);
      }
      gradient = std::max(gradient, label.now + (m_ - forwards) * in_.forward +
                                        (m_ - inputs - 1) * least_input_);
      const double all = gradient + least_input_ + in_.tail;
      if (all >= best_ * (1 - kBoundRounding)) return;
    }
    if (std::max(end, last) >= best_ * (1 - kBoundRounding)) return;
    if (inputs == m_) {
      best_ = std::max(end, last);  // only weight gradients are left
      return;
    }
    for (double& ready : label.ready) ready = std::max(ready, label.now);
    (*layers_)[forwards + inputs + weights][done].push_back(std::move(label));
  }

  // Removes dominated labels and merges the others into at most kMaxLabels.
  static void Thin(std::vector<Label>* labels) {
    std::sort(labels->begin(), labels->end(),
              [](const Label& one, const Label& other) {
                return std::tie(one.now, one.last, one.turns, one.turned,
                                one.worked, one.ready) <
                       std::tie(other.now, other.last, other.turns,
                                other.turned, other.worked, other.ready);
              });
    std::vector<Label> kept;
    for (Label& label : *labels) {
      const bool is_worse = std::any_of(
          kept.begin(), kept.end(),
          [&](const Label& other) { return other.IsNoWorse(label); });
      if (!is_worse) kept.push_back(std::move(label));
    }
    const size_t group = (kept.size() + kMaxLabels - 1) / kMaxLabels;
    labels->clear();
    for (size_t i = 0; i < kept.size(); ++i) {
      if (i % group == 0) {
        labels->push_back(std::move(kept[i]));
      } else {
        labels->back().TakeBest(kept[i]);
      }
    }
  }

  const SingleRankProblem& in_;
  int m_;
  double least_input_, least_weight_;
  double best_;
  std::vector<std::map<Done, std::vector<Label>>>* layers_ = nullptr;
};

}  // namespace

double SingleRankBound(const SingleRankProblem& rank) {
  return Alone(rank).Run();
}

double SituationsOf(const SingleRankProblem& rank) {
  const double m = rank.num_microbatches;
  const auto most = [&](double each) {
    return each > 0 ? std::min(std::floor(rank.limit / each), m) : m;
  };
  return m * (most(rank.activation) + 1) *
         (rank.can_split ? most(rank.weight_inputs) + 1 : 1);
}

}  // namespace weir::plan
