// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/fit_collectives.h"

#include <ceres/ceres.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weir::calibrate {
namespace {

constexpr double kCollectiveOutlier = 0.1;  // in units of the logarithm
constexpr double kPriorWeight =
    0.02;  // residual per unit change of a logarithm
constexpr int kNumStarts = 6;

// Parameters within one node first. Those between nodes only matter if samples
// span several nodes.
constexpr absl::string_view kFree[] = {
    "ll.base_seconds",
    "ll.nvlink_hop_seconds",
    "ll.pci_hop_seconds",
    "ll.max_bytes_per_second",
    "ll128.base_seconds",
    "ll128.nvlink_hop_seconds",
    "ll128.max_bytes_per_second",
    "simple.base_seconds",
    "simple.nvlink_hop_seconds",
    "simple.pci_hop_seconds",
    "link_efficiency",
    "chunk_seconds",
    "local_bytes_per_second",
    "pairs.ll_base_seconds",
    "pairs.ll_max_bytes_per_second",
    "pairs.simple_base_seconds",
    "pairs.peer_seconds",
    "pairs.link_efficiency",
    "nvls_base_seconds",
    "nvls_efficiency",
    "nvls_chunk_seconds",
    "ll.net_ring_hop_seconds",
    "ll.net_tree_hop_seconds",
    "ll128.net_ring_hop_seconds",
    "ll128.net_tree_hop_seconds",
    "simple.net_ring_hop_seconds",
    "simple.net_tree_hop_seconds",
    "net_efficiency",
};

using Figures = std::vector<const CollectiveFigure*>;

// A model whose parameters are changed in place, since copying a model for
// every residual would cost more than evaluating it.
struct MovingModel {
  MovingModel(const CollectiveModel& start, const Figures& figures)
      : model(start) {
    for (const CollectiveFigure* figure : figures) {
      values.push_back(figure->mutate(&model));
    }
  }

  void Move(const double* logs) {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i]->set_value(std::exp(logs[i]));
    }
  }

  CollectiveModel model;
  std::vector<Figure*> values;
};

// Returns the free parameters that affect the samples: a change by a tenth
// changes some prediction.
Figures FiguresThatMatter(const CollectiveModel& model,
                          absl::Span<const CollectiveSample> samples) {
  const std::vector<double> before = PredictCollectives(model, samples);
  Figures matter;
  for (const CollectiveFigure& figure : CollectiveFigures()) {
    if (!figure.has(model) || std::find(std::begin(kFree), std::end(kFree),
                                        figure.name) == std::end(kFree)) {
      continue;
    }
    double change = 0;
    for (const double factor : {0.9, 1.1}) {
      CollectiveModel moved = model;
      Figure* const value = figure.mutate(&moved);
      value->set_value(value->value() * factor);
      const std::vector<double> after = PredictCollectives(moved, samples);
      for (size_t i = 0; i < after.size(); ++i) {
        change = std::max(change, std::abs(after[i] / before[i] - 1));
      }
    }
    if (change > 1e-4) matter.push_back(&figure);
  }
  return matter;
}

struct Residual {
  MovingModel* moving;
  const CollectiveSample& sample;

  bool operator()(double const* const* logs, double* residual) const {
    moving->Move(logs[0]);
    const double seconds = CheapestCollective(moving->model, sample.kind,
                                              sample.bytes, sample.group)
                               .Seconds();
    *residual = std::log(seconds / sample.seconds);
    return true;
  }
};

struct PriorResidual {
  size_t num_logs;
  const std::vector<double>& start;
  bool operator()(double const* const* logs, double* residuals) const {
    for (size_t i = 0; i < num_logs; ++i) {
      residuals[i] = kPriorWeight * (logs[0][i] - start[i]);
    }
    return true;
  }
};

using Difference = ceres::DynamicNumericDiffCostFunction<Residual>;

// Minimizes from `logs` to the nearest local minimum and returns its cost.
double Descend(const CollectiveModel& start, const Figures& figures,
               absl::Span<const CollectiveSample> samples,
               const std::vector<double>& held, std::vector<double>* logs) {
  ceres::Problem problem;
  MovingModel moving(start, figures);
  const int size = static_cast<int>(figures.size());
  for (const CollectiveSample& sample : samples) {
    auto* cost = new Difference(new Residual{&moving, sample});
    cost->AddParameterBlock(size);
    cost->SetNumResiduals(1);
    problem.AddResidualBlock(cost, new ceres::SoftLOneLoss(kCollectiveOutlier),
                             logs->data());
  }
  auto* hold = new ceres::DynamicNumericDiffCostFunction<PriorResidual>(
      new PriorResidual{figures.size(), held});
  hold->AddParameterBlock(size);
  hold->SetNumResiduals(size);
  problem.AddResidualBlock(hold, nullptr, logs->data());
  for (int i = 0; i < size; ++i) {
    problem.SetParameterLowerBound(logs->data(), i,
                                   std::log(std::max(figures[i]->low, 1e-9)));
    problem.SetParameterUpperBound(logs->data(), i, std::log(figures[i]->high));
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.max_num_iterations = 100;
  options.logging_type = ceres::SILENT;
  options.num_threads = 1;  // fixed order of summation
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  return summary.final_cost;
}

// Returns the best of several descents, since the choice of the cheapest
// protocol creates many local minima. The golden ratio spreads the starts
// evenly.
std::vector<double> BestLogs(const CollectiveModel& start,
                             const Figures& figures,
                             absl::Span<const CollectiveSample> samples) {
  std::vector<double> begin;
  for (const CollectiveFigure* figure : figures) {
    begin.push_back(std::log(std::max(figure->get(start).value(), 1e-9)));
  }
  std::vector<double> best;
  double best_cost = 0;
  for (int attempt = 0; attempt < kNumStarts; ++attempt) {
    std::vector<double> logs = begin;
    for (size_t i = 0; i < logs.size(); ++i) {
      const double turn = attempt * (i + 1) * 0.6180339887498949;
      logs[i] += turn - std::floor(turn + 0.5);
      logs[i] = std::clamp(logs[i], std::log(std::max(figures[i]->low, 1e-9)),
                           std::log(figures[i]->high));
    }
    const double cost = Descend(start, figures, samples, begin, &logs);
    if (best.empty() || cost < best_cost) {
      best = std::move(logs);
      best_cost = cost;
    }
  }
  return best;
}

// Rounds to four digits, since the samples do not justify more.
double Rounded(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 3);
  return unit < 1 ? std::round(value / unit) / std::round(1 / unit)
                  : std::round(value / unit) * unit;
}

absl::Status CheckSamples(absl::Span<const CollectiveSample> samples) {
  if (samples.empty()) {
    return absl::InvalidArgumentError(
        "collectives: no measurements, expected at least one");
  }
  for (const CollectiveSample& sample : samples) {
    const CollectiveGroup& group = sample.group;
    const bool many_nodes = group.num_ranks > group.ranks_per_node;
    if (!(sample.bytes > 0 && sample.seconds > 0 && group.num_ranks > 1 &&
          group.ranks_per_node >= 1 &&
          group.num_ranks % group.ranks_per_node == 0 &&
          (group.ranks_per_node == 1 || group.intra_bytes_per_second > 0) &&
          (!many_nodes || group.inter_bytes_per_second > 0))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "collectives: ", Name(sample.kind), " of ", sample.bytes,
          " bytes over ", group.num_ranks, " ranks in ", sample.seconds,
          " s, expected positive bytes, seconds and rates of links, and two "
          "ranks or more, as many in every node"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

CollectiveModel CollectiveStart(NcclGeneration generation) {
  CollectiveModel model = NcclDefaults(generation);
  const auto guess = [](double value, Figure* figure) {
    figure->set_value(value);
    figure->set_kind(Figure::ASSUMED);
    figure->set_source("guess, close to the fits of other devices");
  };
  // Small messages travel over one or two channels.
  guess(8e9, model.mutable_ll()->mutable_max_bytes_per_second());
  guess(8e9, model.mutable_pairs()->mutable_ll_max_bytes_per_second());
  constexpr double kMiddle[] = {50e9, 80e9, 150e9, 280e9};
  guess(kMiddle[static_cast<int>(generation)],
        model.mutable_ll128()->mutable_max_bytes_per_second());
  guess(11e-6, model.mutable_ll128()->mutable_base_seconds());
  guess(20e-6, model.mutable_simple()->mutable_base_seconds());
  guess(2e-6, model.mutable_simple()->mutable_nvlink_hop_seconds());
  guess(2e-6, model.mutable_chunk_seconds());
  guess(0.3e-6, model.mutable_pairs()->mutable_peer_seconds());
  if (model.has_nvls_efficiency()) {
    guess(4e-6, model.mutable_nvls_chunk_seconds());
  }
  // Volta's links are too slow for a rank's own block to be visible.
  if (generation != NcclGeneration::kVolta) {
    guess(900e9, model.mutable_local_bytes_per_second());
  }
  return model;
}

absl::StatusOr<CollectiveFit> FitCollectives(
    const CollectiveModel& start, absl::Span<const CollectiveSample> samples,
    absl::string_view source) {
  if (absl::Status status = CheckSamples(samples); !status.ok()) return status;
  const Figures figures = FiguresThatMatter(start, samples);
  const std::vector<double> logs = BestLogs(start, figures, samples);
  CollectiveFit fit;
  MovingModel moving(start, figures);
  moving.Move(logs.data());
  for (Figure* value : moving.values) value->set_value(Rounded(value->value()));
  fit.model = std::move(moving.model);
  for (const CollectiveFigure* figure : FiguresThatMatter(fit.model, samples)) {
    Figure* const value = figure->mutate(&fit.model);
    value->set_kind(Figure::FITTED);
    value->set_source(std::string(source));
    fit.fitted.push_back(figure->name);
  }
  std::vector<double> measured;
  for (const CollectiveSample& sample : samples) {
    measured.push_back(sample.seconds);
  }
  fit.errors =
      SummarizeErrors(PredictCollectives(fit.model, samples), measured);
  return fit;
}

std::vector<double> PredictCollectives(
    const CollectiveModel& model, absl::Span<const CollectiveSample> samples) {
  std::vector<double> seconds;
  seconds.reserve(samples.size());
  for (const CollectiveSample& sample : samples) {
    seconds.push_back(
        CheapestCollective(model, sample.kind, sample.bytes, sample.group)
            .Seconds());
  }
  return seconds;
}

}  // namespace weir::calibrate
