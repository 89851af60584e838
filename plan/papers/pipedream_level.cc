// SPDX-License-Identifier: Apache-2.0
#include "plan/papers/pipedream_level.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir::plan {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

double Difference(const AntichainDag& dag, int first, int last,
                  double AntichainState::*sum) {
  return dag.states[last].*sum - (first > 0 ? dag.states[first - 1].*sum : 0);
}

}  // namespace

double ComputeSeconds(const AntichainDag& dag, int first, int last) {
  return Difference(dag, first, last, &AntichainState::compute_seconds);
}

double ParameterBytes(const AntichainDag& dag, int first, int last) {
  return Difference(dag, first, last, &AntichainState::parameter_bytes);
}

double StateBytes(const AntichainDag& dag, int first, int last) {
  return Difference(dag, first, last, &AntichainState::activation_bytes) +
         ParameterBytes(dag, first, last);
}

PipeDreamLevel::PipeDreamLevel(const AntichainDag& dag,
                               const PipeDreamOptions& options, int level,
                               const StateSeconds* below, PipeDreamGoal goal)
    : dag_(dag),
      options_(options),
      below_(below),
      num_states_(static_cast<int>(dag.states.size())),
      num_machines_(options.num_machines[level]),
      machines_below_(level > 0 ? options.num_machines[level - 1] : 1),
      max_replicas_(options.straight ? 1 : num_machines_),
      is_highest_(level + 1 == std::ssize(options.num_machines)),
      goal_(goal),
      bytes_per_second_(options.bytes_per_second[level]) {}

double PipeDreamLevel::Compute(int first, int last) const {
  return below_ != nullptr ? (*below_)[last][first]
                           : ComputeSeconds(dag_, first, last);
}

double PipeDreamLevel::HeldBytes(int first, int last, int machines_left,
                                 int replicas) const {
  const double minibatches =
      std::ceil(static_cast<double>(machines_left) / replicas);
  // Stages above the lowest level are cut further and need not hold a
  // minibatch.
  const bool has_one = below_ == nullptr && !options_.published_memory;
  return (has_one ? std::max(minibatches, 1.0) : minibatches) *
         StateBytes(dag_, first, last);
}

double PipeDreamLevel::Cost(double seconds, int first, int last,
                            int machines_left, int replicas) const {
  if (goal_ == PipeDreamGoal::kBytes) {
    const double held = HeldBytes(first, last, machines_left, replicas);
    return below_ != nullptr ? std::max(held, Compute(first, last)) : held;
  }
  if (!options_.memory_limit_bytes.has_value()) return seconds;
  return HeldBytes(first, last, machines_left, replicas) <=
                 *options_.memory_limit_bytes
             ? seconds
             : kImpossible;
}

// Returns the cost of a single stage on all the machines.
double PipeDreamLevel::Whole(int first, int last, int machines) const {
  if (machines > max_replicas_) return kImpossible;
  const double compute = Compute(first, last);
  const double parameters = ParameterBytes(dag_, first, last);
  const double seconds =
      options_.paper_formula
          ? std::max(compute,
                     2 * (machines - 1) * parameters / bytes_per_second_)
          : compute + 4 * (machines - 1) * parameters /
                          (bytes_per_second_ * machines) / machines_below_;
  return Cost(seconds / machines, first, last, num_machines_ - machines,
              machines);
}

// Returns the time of a stage after `split`, with the transfers on both sides.
double PipeDreamLevel::LastStage(int split, int last, int replicas) const {
  const double compute = Compute(split + 1, last);
  if (compute == kImpossible) return kImpossible;
  const double parameters = ParameterBytes(dag_, split + 1, last);
  const double ratio = options_.activation_compression_ratio.value_or(1);
  const double input =
      2 * dag_.states[split].output_bytes / bytes_per_second_ / ratio;
  if (options_.paper_formula) {
    return std::max(input, std::max(compute, 2 * (replicas - 1) * parameters /
                                                 bytes_per_second_) /
                               replicas);
  }
  double seconds = (compute + 4 * (replicas - 1) * parameters /
                                  (bytes_per_second_ * replicas)) /
                   replicas;
  if (!options_.activation_compression_ratio.has_value()) return seconds;
  seconds = std::max(seconds, input / replicas);
  if (last + 1 == num_states_) return seconds;
  return std::max(seconds, 2 * dag_.states[last].output_bytes /
                               bytes_per_second_ / ratio / replicas);
}

// Uses a last stage after `split` where that is better. worst[m] is the maximum
// of the best values of all [first, last] with m + 1 machines: a last stage
// that is as slow improves none.
void PipeDreamLevel::Improve(int split, int last, std::vector<double>* worst) {
  const int num_firsts = is_highest_ ? 1 : split + 1;
  std::vector<bool> is_improved(num_machines_, false);
  const int max_replicas = std::min(max_replicas_, num_machines_ - 1);
  for (int replicas = 1; replicas <= max_replicas; ++replicas) {
    const double alone = LastStage(split, last, replicas);
    for (int m = replicas; m < num_machines_; ++m) {
      const double seconds =
          Cost(alone, split + 1, last, num_machines_ - (m + 1), replicas);
      if (seconds >= (*worst)[m]) continue;
      const double* front = best_[m - replicas][split].data();
      double* best = best_[m][last].data();
      for (int first = 0; first < num_firsts; ++first) {
        const double slowest = front[first] > seconds ? front[first] : seconds;
        best[first] = slowest < best[first] ? slowest : best[first];
      }
      is_improved[m] = true;
    }
  }
  for (int m = 1; m < num_machines_; ++m) {
    if (!is_improved[m]) continue;
    const double* best = best_[m][last].data();
    (*worst)[m] = *std::max_element(best, best + num_firsts);
  }
}

bool PipeDreamLevel::Solve() {
  best_.assign(num_machines_, StateSeconds(num_states_));
  for (int last = 0; last < num_states_; ++last) {
    // The work grows with the square or the cube of the states.
    if (options_.progress) {
      options_.progress(std::pow(1.0 * last / num_states_, 3));
    }
    const int num_firsts = is_highest_ ? 1 : last + 1;
    for (int m = 0; m < num_machines_; ++m) {
      std::vector<double>& best = best_[m][last];
      best.resize(num_firsts);
      for (int first = 0; first < num_firsts; ++first) {
        best[first] = Whole(first, last, m + 1);
      }
    }
    // Tries long last stages last, as they rarely improve anything by then.
    std::vector<double> worst(num_machines_, kImpossible);
    const std::vector<int>& splits = dag_.predecessors[last];
    for (auto split = splits.rbegin(); split != splits.rend(); ++split) {
      if (options_.stop && options_.stop()) return false;
      Improve(*split, last, &worst);
    }
    if (!options_.fewer_machines) continue;
    for (int m = 1; m < num_machines_; ++m) {
      for (int first = 0; first < std::min(num_firsts, last); ++first) {
        best_[m][last][first] =
            std::min(best_[m][last][first], best_[m - 1][last][first]);
      }
    }
  }
  return true;
}

std::vector<PipeDreamStage> PipeDreamLevel::Stages(int first, int end) const {
  std::vector<PipeDreamStage> stages;
  int last = end - 1, m = num_machines_ - 1;
  while (true) {
    double least = Whole(first, last, m + 1);
    int split = first - 1, replicas = m + 1;
    if (options_.fewer_machines && m > 0 && first < last &&
        best_[m - 1][last][first] < least) {
      least = best_[m - 1][last][first];
      replicas = 0;
    }
    for (int at : dag_.predecessors[last]) {
      if (at < first) continue;
      for (int r = 1; r <= std::min(max_replicas_, m); ++r) {
        const double seconds = std::max(
            best_[m - r][at][first], Cost(LastStage(at, last, r), at + 1, last,
                                          num_machines_ - (m + 1), r));
        if (seconds >= least) continue;
        least = seconds;
        split = at;
        replicas = r;
      }
    }
    if (replicas == 0) {
      --m;
      continue;
    }
    stages.push_back(
        {split + 1, last + 1, ComputeSeconds(dag_, split + 1, last), replicas});
    if (split < first) break;
    last = split;
    m -= replicas;
  }
  std::reverse(stages.begin(), stages.end());
  return stages;
}

}  // namespace weir::plan
