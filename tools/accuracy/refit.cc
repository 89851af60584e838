// SPDX-License-Identifier: Apache-2.0
// Fits a few model parameters to the rows of a set, and reports how accurate
// the fit is on rows that it has not seen:
//
//   accuracy_refit profile:PROFILE FIGURES QUANTITY FOLDS OUT.csv WEIR ARG...
//   accuracy_refit runtime:RUNTIME  ...
//   accuracy_refit scenario:FILE  ...
//
// FIGURES: "runtime.launch_seconds.value=1e-6:1e-4:9,...": a path into the
// profile (or scenario), and the range and number of values, evenly spaced in
// their logarithm. "WEIR ARG..." is a "weir validate" with its --measured and
// --columns. Every point of the grid is simulated once; the folds only choose
// among the points. OUT receives every row as predicted by the fit without its
// fold.
#include <google/protobuf/message.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/assets.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/textproto.h"
#include "calibrate/fit/cross_validation.h"
#include "calibrate/profile/device_profile.pb.h"
#include "calibrate/profile/profile_base.h"
#include "calibrate/profile/runtime.pb.h"
#include "scenarios/scenario.pb.h"
#include "tools/accuracy/row_errors.h"
#include "tools/accuracy/set_figure.h"

namespace weir {
namespace {

struct Figure {
  std::string path;
  std::vector<double> values;
};

struct Task {
  std::string kind;  // profile, runtime, scenario: an option of weir
  std::string base;  // to which the parameters belong
  std::vector<Figure> figures;
  std::string quantity;
  int num_folds = 1;
  std::string out;
  std::vector<std::string> command;
};

// A point of the grid and its predictions.
struct Point {
  std::vector<double> values;
  RowErrors rows;
};

absl::StatusOr<Figure> ParseFigure(absl::string_view text) {
  const std::vector<std::string> sides = absl::StrSplit(text, '=');
  std::vector<std::string> range;
  if (sides.size() == 2) range = absl::StrSplit(sides[1], ':');
  double low = 0, high = 0;
  int count = 0;
  if (range.size() != 3 || !absl::SimpleAtod(range[0], &low) ||
      !absl::SimpleAtod(range[1], &high) ||
      !absl::SimpleAtoi(range[2], &count) || !(low > 0) || !(high >= low) ||
      count < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\": expected PATH=LOW:HIGH:COUNT"));
  }
  Figure figure{sides[0], {}};
  for (int i = 0; i < count; ++i) {
    const double part = count == 1 ? 0 : 1.0 * i / (count - 1);
    figure.values.push_back(low * std::pow(high / low, part));
  }
  return figure;
}

absl::Status WriteBase(const Task& task, const std::vector<double>& values,
                       const std::string& path) {
  DeviceProfile device;
  Runtime runtime;
  Scenario scenario;
  google::protobuf::Message* message = &scenario;
  const char* folder = "scenarios/presets";
  if (task.kind == "profile") {
    message = &device;
    folder = "calibrate/profile/presets";
  } else if (task.kind == "runtime") {
    message = &runtime;
    folder = "calibrate/profile/runtimes";
  }
  ASSIGN_OR_RETURN(const Asset asset, LoadAsset(folder, task.base));
  if (task.kind == "profile") {
    ASSIGN_OR_RETURN(device, calibrate::ResolveBase(asset));
  } else {
    RETURN_IF_ERROR(ParseTextProto(asset.label, asset.contents, message));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    RETURN_IF_ERROR(SetNumber(task.figures[i].path, values[i], message));
  }
  return WriteFile(path, PrintTextProto(*message));
}

std::string Quoted(const std::string& word) {
  return absl::StrCat("'", absl::StrJoin(absl::StrSplit(word, '\''), "'\\''"),
                      "'");
}

absl::StatusOr<Point> Predict(const Task& task,
                              const std::vector<double>& values) {
  const std::string base = task.out + ".base.textproto";
  const std::string rows = task.out + ".rows.csv";
  RETURN_IF_ERROR(WriteBase(task, values, base));
  std::string command;
  for (const std::string& word : task.command) {
    absl::StrAppend(&command, Quoted(word), " ");
  }
  absl::StrAppend(&command, "--", task.kind, " ", Quoted(base),
                  " --quiet --format csv > ", Quoted(rows));
  if (std::system(command.c_str()) != 0) {
    return absl::InternalError(absl::StrCat("failed: ", command));
  }
  ASSIGN_OR_RETURN(RowErrors read, LoadRowErrors(rows, task.quantity));
  std::filesystem::remove(base);
  std::filesystem::remove(rows);
  return Point{values, std::move(read)};
}

absl::StatusOr<std::vector<Point>> PredictGrid(const Task& task) {
  std::vector<Point> points;
  std::vector<size_t> at(task.figures.size(), 0);
  while (true) {
    std::vector<double> values;
    for (size_t i = 0; i < at.size(); ++i) {
      values.push_back(task.figures[i].values[at[i]]);
    }
    ASSIGN_OR_RETURN(Point point, Predict(task, values));
    std::fprintf(stderr, "%s: %s\n", absl::StrJoin(values, " ").c_str(),
                 Describe(point.rows.Statistics()).c_str());
    points.push_back(std::move(point));
    size_t i = 0;
    while (i < at.size() && ++at[i] == task.figures[i].values.size()) {
      at[i++] = 0;
    }
    if (i == at.size()) return points;
  }
}

// Returns the point with the lowest mean absolute error on some rows.
const Point& Best(const std::vector<Point>& points,
                  absl::Span<const int> rows) {
  const Point* best = &points[0];
  double least = std::numeric_limits<double>::infinity();
  for (const Point& point : points) {
    double sum = 0;
    for (const int row : rows) {
      sum += std::abs(point.rows.predicted[row] / point.rows.measured[row] - 1);
    }
    if (sum < least) {
      least = sum;
      best = &point;
    }
  }
  return *best;
}

absl::Status WriteRows(const Task& task, const RowErrors& rows,
                       const std::vector<double>& predicted) {
  std::string text =
      "line,row,quantity,measured,predicted,error,fits_memory,reason\n";
  for (size_t i = 0; i < predicted.size(); ++i) {
    absl::StrAppend(
        &text, rows.lines[i], ",\"", rows.names[i], "\",", task.quantity, ",",
        absl::StrFormat("%.10g,%.6g,%.5f", rows.measured[i], predicted[i],
                        predicted[i] / rows.measured[i] - 1),
        ",true,\n");
  }
  return WriteFile(task.out, text);
}

absl::Status Refit(const Task& task) {
  ASSIGN_OR_RETURN(const std::vector<Point> points, PredictGrid(task));
  const int num_rows = static_cast<int>(points[0].rows.measured.size());
  for (const Point& point : points) {
    if (point.rows.lines != points[0].rows.lines) {
      return absl::InternalError("the points of the grid have different rows");
    }
  }
  std::vector<int> all;
  for (int i = 0; i < num_rows; ++i) all.push_back(i);
  const Point& best = Best(points, all);
  std::printf("fitted to all: %s: %s\n",
              absl::StrJoin(best.values, " ").c_str(),
              Describe(best.rows.Statistics()).c_str());
  const auto fit = [&](absl::Span<const int> fitted,
                       absl::Span<const int> left_out) {
    const Point& chosen = Best(points, fitted);
    std::printf("fold: %s\n", absl::StrJoin(chosen.values, " ").c_str());
    std::vector<double> predicted;
    for (const int row : left_out) {
      predicted.push_back(chosen.rows.predicted[row]);
    }
    return absl::StatusOr<std::vector<double>>(predicted);
  };
  ASSIGN_OR_RETURN(const std::vector<double> predicted,
                   calibrate::CrossValidate(
                       calibrate::RowFolds(num_rows, task.num_folds), fit));
  std::printf("left out: %s\n",
              Describe(SummarizeErrors(predicted, best.rows.measured)).c_str());
  return WriteRows(task, best.rows, predicted);
}

absl::StatusOr<Task> ParseTask(int argc, char** argv) {
  if (argc < 8) {
    return absl::InvalidArgumentError(
        "usage: accuracy_refit profile:PROFILE|runtime:RUNTIME|scenario:FILE "
        "FIGURES QUANTITY FOLDS OUT.csv WEIR ARG...");
  }
  Task task;
  for (const char* kind : {"profile", "runtime", "scenario"}) {
    absl::string_view base = argv[1];
    if (!absl::ConsumePrefix(&base, absl::StrCat(kind, ":"))) continue;
    task.kind = kind;
    task.base = std::string(base);
  }
  if (task.kind.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        argv[1],
        ": expected profile:PROFILE, runtime:RUNTIME or scenario:FILE"));
  }
  for (absl::string_view figure : absl::StrSplit(argv[2], ',')) {
    ASSIGN_OR_RETURN(Figure parsed, ParseFigure(figure));
    task.figures.push_back(std::move(parsed));
  }
  task.quantity = argv[3];
  if (!absl::SimpleAtoi(argv[4], &task.num_folds) || task.num_folds < 2) {
    return absl::InvalidArgumentError("FOLDS: expected 2 or more");
  }
  task.out = argv[5];
  task.command.assign(argv + 6, argv + argc);
  return task;
}

int Main(int argc, char** argv) {
  const absl::StatusOr<Task> task = ParseTask(argc, argv);
  const absl::Status status = task.ok() ? Refit(*task) : task.status();
  if (status.ok()) return 0;
  std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
  return 2;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) { return weir::Main(argc, argv); }
