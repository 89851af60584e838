// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text.h"
#include "base/text_table.h"
#include "base/units.h"
#include "calibrate/describe/describe_profile.h"
#include "calibrate/profile/figures.h"
#include "calibrate/profile/software.h"

namespace weir::calibrate {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostWorst = 5;

std::string ShapeText(const MeasuredKernel& kernel) {
  std::string text = kernel.part();
  if (!kernel.format().empty()) absl::StrAppend(&text, " ", kernel.format());
  if (kernel.kind() == MeasuredKernel::MEMORY) {
    return absl::StrFormat("%s %.12g B", text, kernel.bytes());
  }
  absl::StrAppendFormat(&text, " %.12g x %.12g x %.12g x %.12g", kernel.batch(),
                        kernel.m(), kernel.n(), kernel.k());
  if (kernel.kind() == MeasuredKernel::ATTENTION) {
    absl::StrAppend(&text, kernel.num_gemms() > 2 ? " backward" : " forward",
                    kernel.causal() ? " causal" : "");
  }
  return text;
}

// Mean of the medians of all measurements of one kernel.
struct Measured {
  std::string text;
  double seconds = 0;
  int count = 0;
};
std::map<std::string, Measured> KernelsOf(const DeviceProfile& profile) {
  std::map<std::string, Measured> kernels;
  for (const MeasuredKernel& kernel : profile.kernels()) {
    const std::string text = ShapeText(kernel);
    Measured& measured =
        kernels[absl::StrFormat("%s %.12g", text, std::round(kernel.bytes()))];
    measured.text = text;
    ++measured.count;
    measured.seconds +=
        (kernel.seconds().p50() - measured.seconds) / measured.count;
  }
  return kernels;
}

// Returns the model parameters and the numbers of partition_slowdown, by path.
std::vector<std::pair<std::string, double>> NumbersOf(DeviceProfile profile) {
  std::vector<std::pair<std::string, double>> numbers;
  for (const NamedFigure& named : FiguresOf(&profile)) {
    numbers.emplace_back(named.path, named.figure->value());
  }
  if (!profile.has_partition_slowdown()) return numbers;
  const PartitionSlowdown& share = profile.partition_slowdown();
  numbers.emplace_back("partition_slowdown.num_partitions",
                       share.num_partitions());
  numbers.emplace_back("partition_slowdown.multiprocessors",
                       share.multiprocessors());
  for (const PartitionSlowdown::Slowdown& slowdown : share.slowdowns()) {
    numbers.emplace_back(absl::StrCat("partition_slowdown.", slowdown.pass(),
                                      "[", slowdown.active(), "]"),
                         slowdown.factor());
  }
  return numbers;
}

void DiffFigures(const DeviceProfile& a, const DeviceProfile& b,
                 std::vector<FigureDifference>* differences) {
  std::vector<FigureDifference> all;
  std::map<std::string, size_t> index;
  for (const auto& [path, value] : NumbersOf(a)) {
    index[path] = all.size();
    all.push_back({path, true, false, value, 0});
  }
  for (const auto& [path, value] : NumbersOf(b)) {
    const auto [at, added] = index.try_emplace(path, all.size());
    if (added) all.push_back({path, false, false, 0, 0});
    all[at->second].in_b = true;
    all[at->second].b = value;
  }
  for (const FigureDifference& one : all) {
    if (!one.in_a || !one.in_b || one.a != one.b) differences->push_back(one);
  }
}

void DiffKernels(const DeviceProfile& a, const DeviceProfile& b,
                 ProfileDifference* difference) {
  const auto in_a = KernelsOf(a), in_b = KernelsOf(b);
  for (const auto& [key, measured] : in_a) {
    const auto other = in_b.find(key);
    if (other == in_b.end()) {
      ++difference->num_only_a;
    } else {
      difference->kernels.push_back(
          {measured.text, measured.seconds, other->second.seconds});
    }
  }
  difference->num_only_b =
      static_cast<int>(in_b.size() - difference->kernels.size());
  std::stable_sort(difference->kernels.begin(), difference->kernels.end(),
                   [](const KernelDifference& x, const KernelDifference& y) {
                     return std::abs(std::log(x.ratio())) >
                            std::abs(std::log(y.ratio()));
                   });
}

// Returns the minimum, 10th, 50th and 90th percentile, and maximum ratio.
std::vector<double> RatiosOf(const std::vector<KernelDifference>& kernels) {
  std::vector<double> ratios;
  for (const KernelDifference& kernel : kernels) {
    ratios.push_back(kernel.ratio());
  }
  std::sort(ratios.begin(), ratios.end());
  std::vector<double> quantiles;
  for (double part : {0.0, 0.1, 0.5, 0.9, 1.0}) {
    quantiles.push_back(ratios[static_cast<size_t>(
        std::lround(part * static_cast<double>(ratios.size() - 1)))]);
  }
  return quantiles;
}

std::string VersionsTable(const ProfileDifference& difference) {
  TextTable table;
  table.header = {"version", "A", "B"};
  table.left = {true, true, true};
  const auto text = [](const std::string& version) {
    return version.empty() ? "-" : Ascii(version);
  };
  for (const auto& [name, a, b] : difference.versions) {
    table.rows.push_back({name, text(a), text(b)});
  }
  return PrintTable(table);
}

std::string FiguresTable(const ProfileDifference& difference) {
  TextTable table;
  table.header = {"parameter", "A", "B", "unit", "B / A"};
  table.left = {true, false, false, true};
  for (const FigureDifference& one : difference.figures) {
    const auto value = [](bool has, double number) {
      return has ? absl::StrFormat("%.4g", number) : "-";
    };
    table.rows.push_back({one.path, value(one.in_a, one.a),
                          value(one.in_b, one.b), std::string(UnitOf(one.path)),
                          one.in_a && one.in_b && one.a != 0
                              ? absl::StrFormat("%.3f", one.ratio())
                              : "-"});
  }
  return PrintTable(table);
}

std::string KernelsText(const ProfileDifference& difference) {
  const std::vector<KernelDifference>& kernels = difference.kernels;
  std::string text = absl::StrCat(kernels.size(), " kernels measured in both, ",
                                  difference.num_only_a, " only in A, ",
                                  difference.num_only_b, " only in B\n");
  if (kernels.empty()) return text;
  const std::vector<double> q = RatiosOf(kernels);
  absl::StrAppendFormat(
      &text,
      "B / A: median %.3f, 5th to 95th percentile %.3f to %.3f, all "
      "%.3f to %.3f\n\n",
      q[2], q[1], q[3], q[0], q[4]);
  TextTable table;
  table.header = {"largest difference", "A", "B", "B / A"};
  for (size_t i = 0; i < std::min(kernels.size(), kMostWorst); ++i) {
    table.rows.push_back({Ascii(kernels[i].kernel), FormatSeconds(kernels[i].a),
                          FormatSeconds(kernels[i].b),
                          absl::StrFormat("%.3f", kernels[i].ratio())});
  }
  return text + PrintTable(table);
}

}  // namespace

double FigureDifference::ratio() const {
  if (!in_a || !in_b || a == 0) return std::numeric_limits<double>::infinity();
  return b / a;
}

double ProfileDifference::Largest() const {
  double largest = 0;
  for (const FigureDifference& figure : figures) {
    largest = std::max(largest, std::abs(figure.ratio() - 1));
  }
  for (const KernelDifference& kernel : kernels) {
    largest = std::max(largest, std::abs(kernel.ratio() - 1));
  }
  return largest;
}

ProfileDifference DiffProfiles(const DeviceProfile& a, const DeviceProfile& b) {
  ProfileDifference difference;
  const auto versions_a = VersionsOf(a.provenance().software());
  const auto versions_b = VersionsOf(b.provenance().software());
  for (size_t i = 0; i < versions_a.size(); ++i) {
    const auto& [name, version] = versions_a[i];
    const std::string& other = versions_b[i].second;
    if (version != other) {
      difference.versions.push_back({std::string(name), version, other});
    }
  }
  DiffFigures(a, b, &difference.figures);
  DiffKernels(a, b, &difference);
  return difference;
}

std::string DescribeDifference(absl::string_view name_a,
                               absl::string_view name_b,
                               const ProfileDifference& difference) {
  std::string text =
      absl::StrCat("A  ", Ascii(name_a), "\nB  ", Ascii(name_b), "\n\n");
  if (!difference.versions.empty()) {
    absl::StrAppend(&text, VersionsTable(difference), "\n");
  }
  if (difference.figures.empty()) {
    absl::StrAppend(&text, "no parameter differs\n\n");
  } else {
    absl::StrAppend(&text, FiguresTable(difference), "\n");
  }
  return text + KernelsText(difference);
}

nlohmann::ordered_json DifferenceJson(const ProfileDifference& difference) {
  Json versions = Json::array(), figures = Json::array();
  Json kernels = Json::array();
  for (const auto& [name, a, b] : difference.versions) {
    versions.push_back({{"name", name}, {"a", a}, {"b", b}});
  }
  for (const FigureDifference& one : difference.figures) {
    const bool both = one.in_a && one.in_b;
    figures.push_back(
        {{"path", one.path},
         {"a", one.in_a ? Json(one.a) : Json()},
         {"b", one.in_b ? Json(one.b) : Json()},
         {"ratio", both && one.a != 0 ? Json(one.ratio()) : Json()}});
  }
  for (const KernelDifference& kernel : difference.kernels) {
    kernels.push_back({{"kernel", kernel.kernel},
                       {"a", kernel.a},
                       {"b", kernel.b},
                       {"ratio", kernel.ratio()}});
  }
  Json json = {{"versions", versions},
               {"parameters", figures},
               {"kernels", kernels},
               {"num_only_a", difference.num_only_a},
               {"num_only_b", difference.num_only_b}};
  if (!difference.kernels.empty()) {
    const std::vector<double> q = RatiosOf(difference.kernels);
    json["ratios"] = {{"min", q[0]},
                      {"p10", q[1]},
                      {"p50", q[2]},
                      {"p90", q[3]},
                      {"max", q[4]}};
  }
  return json;
}

}  // namespace weir::calibrate
