// SPDX-License-Identifier: Apache-2.0
#include "plan/goodput/investments.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "plan/goodput/estimate_runs.h"

namespace weir::plan {
namespace {

constexpr double kSmallChange = 1.1;
// Savings below this part of the wall time are noise or none.
constexpr double kNothing = 1e-7;

using Change = std::function<void(double factor, GoodputRequest* request)>;

// A figure and how to multiply it. `larger`: more of it is better.
struct FigureChange {
  std::string what;
  bool larger;
  Change change;
};

void ScaleClass(int index, double factor, GoodputRequest* request) {
  FailureClass* each = request->reliability.mutable_classes(index);
  if (each->failures() > 0) {
    each->set_failures(each->failures() / factor);
  } else {
    each->set_mean_hours_between_failures(each->mean_hours_between_failures() *
                                          factor);
  }
}

// A repair time of 0 stands for the usual one, which FailuresOfJob knows.
void ScaleRepairs(double factor, GoodputRequest* request) {
  const std::vector<JobFailures> failures =
      FailuresOfJob(request->reliability, request->job);
  for (size_t i = 0; i < failures.size(); ++i) {
    request->reliability.mutable_classes(static_cast<int>(i))
        ->set_repair_hours(failures[i].repair_seconds / 3600 * factor);
  }
}

std::vector<FigureChange> FigureChanges(const GoodputRequest& request) {
  std::vector<FigureChange> changes;
  for (int i = 0; i < request.reliability.classes_size(); ++i) {
    changes.push_back({absl::StrCat("time between failures: ",
                                    request.reliability.classes(i).name()),
                       true, [i](double factor, GoodputRequest* changed) {
                         ScaleClass(i, factor, changed);
                       }});
  }
  changes.push_back({"detection", false, [](double factor, GoodputRequest* r) {
                       r->reliability.set_detection_seconds(
                           r->reliability.detection_seconds() * factor);
                     }});
  changes.push_back({"restart", false, [](double factor, GoodputRequest* r) {
                       r->reliability.set_restart_seconds(
                           r->reliability.restart_seconds() * factor);
                     }});
  changes.push_back(
      {"checkpoint bandwidth", true, [](double factor, GoodputRequest* r) {
         r->checkpoint.storage_bytes_per_second *= factor;
       }});
  changes.push_back(
      {"snapshot bandwidth", true, [](double factor, GoodputRequest* r) {
         r->checkpoint.snapshot_bytes_per_second *= factor;
       }});
  changes.push_back(
      {"bandwidth between hosts", true, [](double factor, GoodputRequest* r) {
         r->checkpoint.peer_bytes_per_second *= factor;
       }});
  changes.push_back({"repair time", false, ScaleRepairs});
  return changes;
}

// Returns the interval of the report for a changed request.
double ScaledSteps(const GoodputReport& report, const GoodputRequest& changed) {
  const auto scale = [](const GoodputRequest& request) {
    return std::sqrt(TimesOfCheckpoint(request.checkpoint, request.job)
                         .stall_seconds *
                     MeanSecondsBetween(
                         FailuresOfJob(request.reliability, request.job))) /
           request.step.seconds;
  };
  return std::max(std::round(report.estimate.interval_steps * scale(changed) /
                             scale(report.request)),
                  LeastIntervalSteps(changed));
}

class Investing {
 public:
  explicit Investing(const GoodputReport& report) : report_(report) {}

  std::vector<Investment> List() {
    for (const FigureChange& figure : FigureChanges(report_.request)) {
      AddFigure(figure);
    }
    AddSpare();
    AddModes();
    std::erase_if(investments_, [&](const Investment& each) {
      return each.saved_seconds < kNothing * seconds();
    });
    std::stable_sort(investments_.begin(), investments_.end(),
                     [](const Investment& a, const Investment& b) {
                       return a.saved_seconds > b.saved_seconds;
                     });
    return std::move(investments_);
  }

 private:
  double seconds() const { return report_.estimate.wall_seconds.mean; }

  static GoodputEstimate EstimateOf(const GoodputRequest& request,
                                    double steps) {
    return EstimateRuns(request, std::max(steps, LeastIntervalSteps(request)));
  }
  double SecondsWith(const GoodputRequest& request, double steps) const {
    return EstimateOf(request, steps).wall_seconds.mean;
  }

  // `changed`: the same runs with the figure multiplied by `factor`.
  void SetElasticity(const GoodputEstimate& changed, double factor,
                     Investment* added) const {
    const double mean = changed.wall_seconds.mean;
    added->elasticity = std::log(mean / seconds()) / std::log(factor);
    std::vector<double> differences;
    for (size_t run = 0; run < changed.run_seconds.size(); ++run) {
      differences.push_back(changed.run_seconds[run] / mean -
                            report_.estimate.run_seconds[run] / seconds());
    }
    // The derivative of the logarithm of a ratio of means.
    added->elasticity_error =
        StandardErrorOfMean(differences) / std::abs(std::log(factor));
  }

  void AddFigure(const FigureChange& figure) {
    const double better = figure.larger ? kSmallChange : 1 / kSmallChange;
    GoodputRequest changed = report_.request;
    figure.change(better, &changed);
    Investment& added = investments_.emplace_back();
    added.what = figure.what;
    added.change = figure.larger ? "x 2" : "/ 2";
    SetElasticity(EstimateOf(changed, report_.estimate.interval_steps), better,
                  &added);
    changed = report_.request;
    figure.change(figure.larger ? 2 : 0.5, &changed);
    added.saved_seconds =
        seconds() - SecondsWith(changed, ScaledSteps(report_, changed));
  }

  void AddSpare() {
    if (report_.request.num_spares < 0) return;
    GoodputRequest changed = report_.request;
    ++changed.num_spares;
    investments_.push_back(
        {"spare nodes", "+ 1", std::nullopt, 0,
         seconds() - SecondsWith(changed, report_.estimate.interval_steps)});
  }

  void AddModes() {
    for (const auto& [mode, name] :
         {std::pair(CheckpointMode::kSync, "sync"),
          std::pair(CheckpointMode::kAsync, "async"),
          std::pair(CheckpointMode::kInMemory, "in-memory")}) {
      GoodputRequest changed = report_.request;
      changed.checkpoint.mode = mode;
      if (mode == report_.request.checkpoint.mode ||
          !(changed.checkpoint.storage_bytes_per_second > 0)) {
        continue;
      }
      investments_.push_back(
          {"checkpoints", name, std::nullopt, 0,
           seconds() - SecondsWith(changed, ScaledSteps(report_, changed))});
    }
  }

  const GoodputReport& report_;
  std::vector<Investment> investments_;
};

}  // namespace

std::vector<Investment> InvestmentsOf(const GoodputReport& report) {
  return Investing(report).List();
}

}  // namespace weir::plan
