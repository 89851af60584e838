// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fit/nccl_tests.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "calibrate/fit/collective_residual.h"
#include "calibrate/fit/fit_collectives.h"
#include "calibrate/fit/nccl_tests_internal.h"
#include "calibrate/profile/figures.h"

namespace weir::calibrate {
namespace {

// Mean absolute error of a fit above which the report warns.
constexpr double kMistrust = 0.15;

CollectiveGroup GroupOf(const NcclTestsRun& run, const CollectiveModel& model) {
  CollectiveGroup group;
  // In sendrecv_perf every rank sends to the next and receives from the
  // previous.
  const bool pairs = run.kind == models::CollectiveKind::kSendReceive;
  group.num_ranks = group.ranks_per_node = pairs ? 2 : run.num_ranks;
  group.intra_bytes_per_second = model.link_bytes_per_second().value();
  group.nvls = model.has_nvls_efficiency();
  return group;
}

absl::Status CheckRuns(absl::string_view label, const DeviceProfile& profile,
                       const std::vector<NcclTestsRun>& runs) {
  Problems problems(label);
  if (!profile.has_collectives() ||
      !profile.collectives().has_link_bytes_per_second()) {
    problems.Add(
        "", absl::StrCat(
                "is for ", profile.name(),
                ", whose profile has no collectives.link_bytes_per_second, "
                "expected one to start from"));
  }
  for (const NcclTestsRun& run : runs) {
    if (run.num_nodes > 1) {
      problems.Add("",
                   absl::StrCat("has ", Name(run.kind), " over ", run.num_nodes,
                                " hosts, expected runs within one node"));
    }
  }
  return problems.ToStatus();
}

// Returns, for example, "fit to 24 points of nccl-tests (all_reduce of 8
// ranks), NCCL 2.28.9, NVIDIA GPU: mean |error| 3.0 %, ..."
std::string SourceOf(const std::vector<NcclTestsRun>& runs, size_t num_points) {
  std::vector<std::string> what, versions, devices;
  const auto once = [](const std::string& item, std::vector<std::string>* to) {
    if (!item.empty() && std::find(to->begin(), to->end(), item) == to->end()) {
      to->push_back(item);
    }
  };
  for (const NcclTestsRun& run : runs) {
    once(absl::StrCat(Name(run.kind), " of ", run.num_ranks), &what);
    once(run.nccl_version, &versions);
    for (const std::string& device : run.devices) once(device, &devices);
  }
  std::string source =
      absl::StrCat("fit to ", num_points, " points of nccl-tests (",
                   absl::StrJoin(what, ", "), " ranks)");
  if (!versions.empty()) {
    absl::StrAppend(&source, ", NCCL ", absl::StrJoin(versions, " and "));
  }
  if (!devices.empty()) {
    absl::StrAppend(&source, ", ", absl::StrJoin(devices, " and "));
  }
  return source;
}

}  // namespace

std::optional<models::CollectiveKind> KindOfProgram(absl::string_view program) {
  const size_t slash = program.rfind('/');
  if (slash != absl::string_view::npos) program.remove_prefix(slash + 1);
  constexpr std::pair<absl::string_view, models::CollectiveKind> kPrograms[] = {
      {"all_reduce_perf", models::CollectiveKind::kAllReduce},
      {"all_gather_perf", models::CollectiveKind::kAllGather},
      {"reduce_scatter_perf", models::CollectiveKind::kReduceScatter},
      {"alltoall_perf", models::CollectiveKind::kAllToAll},
      {"sendrecv_perf", models::CollectiveKind::kSendReceive},
  };
  for (const auto& [name, kind] : kPrograms) {
    if (absl::StartsWith(program, name)) return kind;
  }
  return std::nullopt;
}

std::string NcclVersion(int code) {
  const int unit = code < 10000 ? 1000 : 10000;
  return absl::StrCat(code / unit, ".", code % unit / 100, ".", code % 100);
}

bool LooksLikeNcclTests(absl::string_view text) {
  return absl::StrContains(text, "algbw") ||
         absl::StrContains(text, "\"nccl_version\"");
}

absl::StatusOr<std::vector<NcclTestsRun>> ParseNcclTests(
    absl::string_view label, absl::string_view text) {
  Problems problems(label);
  const bool json =
      absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "{");
  std::vector<NcclTestsRun> runs = json ? ReadNcclTestsJson(text, &problems)
                                        : ReadNcclTestsText(text, &problems);
  RETURN_IF_ERROR(problems.ToStatus());
  return runs;
}

absl::StatusOr<Import> ImportNcclTests(absl::string_view label,
                                       absl::string_view text,
                                       const DeviceProfile& start,
                                       absl::string_view source) {
  ASSIGN_OR_RETURN(const std::vector<NcclTestsRun> runs,
                   ParseNcclTests(label, text));
  RETURN_IF_ERROR(CheckRuns(label, start, runs));
  std::vector<CollectiveSample> samples;
  for (const NcclTestsRun& run : runs) {
    const CollectiveGroup group = GroupOf(run, start.collectives());
    for (const NcclTestsRun::Row& row : run.rows) {
      samples.push_back({run.kind, row.bytes, group, row.seconds});
    }
  }
  const std::string what =
      absl::StrCat(SourceOf(runs, samples.size()), ", ", source);
  ASSIGN_OR_RETURN(CollectiveFit fit,
                   FitCollectives(start.collectives(), samples, what));
  Import import{start, absl::StrCat(what, ": ", Describe(fit.errors))};
  for (const CollectiveFigure& figure : CollectiveFigures()) {
    if (std::find(fit.fitted.begin(), fit.fitted.end(), figure.name) !=
        fit.fitted.end()) {
      figure.mutate(&fit.model)->set_source(import.report);
    }
  }
  ASSIGN_OR_RETURN(*import.profile.mutable_collective_residual(),
                   CollectiveResidual(start.collectives(), samples, fit, what));
  *import.profile.mutable_collectives() = std::move(fit.model);
  Coverage& coverage = *import.profile.mutable_coverage();
  coverage.clear_collective_bytes();
  coverage.clear_collective_ranks();
  for (const CollectiveSample& sample : samples) {
    Include(sample.bytes, coverage.mutable_collective_bytes());
    Include(sample.group.num_ranks, coverage.mutable_collective_ranks());
  }
  if (fit.errors.mean_absolute > kMistrust) {
    absl::StrAppend(&import.report,
                    "\nwarning: the mean error is above 15 %: are the links of "
                    "this machine those of the profile?");
  }
  return import;
}

}  // namespace weir::calibrate
