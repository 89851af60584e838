// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/launch.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "calibrate/fabric/wire.h"

namespace weir::calibrate {
namespace {

constexpr int kMostRanks = 1 << 20;

struct Launcher {
  const char* name;
  const char* rank;
  const char* num_ranks;
  const char* local_rank;
  const char* num_local;
};

// Slurm is last because it starts the others too.
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""},
};

class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  // An empty variable is treated as absent.
  bool Has(const char* name) const { return !Text(name).empty(); }
  std::string Text(const char* name) const {
    const char* value = *name == '\0' ? nullptr : environment_(name);
    return value == nullptr ? "" : value;
  }

  // Returns a number in [low, high], or `absent` without the variable.
  int Number(const char* name, int low, int high, int absent) {
    if (!Has(name)) return absent;
    int value = 0;
    if (absl::SimpleAtoi(Text(name), &value) && value >= low && value <= high) {
      return value;
    }
    problems.Add(name, absl::StrCat("is \"", Text(name),
                                    "\", expected a whole number from ", low,
                                    " to ", high));
    return absent;
  }

  Problems problems{"environment"};

 private:
  const Environment& environment_;
};

std::optional<RankLaunch> ReadOne(const Launcher& launcher, Reader* reader) {
  const bool slurm = launcher.name == absl::string_view("Slurm");
  if (!reader->Has(launcher.rank)) {
    // Cluster images may leave WORLD_SIZE set; a count alone is not a launch.
    return std::nullopt;
  }
  RankLaunch launch;
  launch.launcher = launcher.name;
  const char* size = launcher.num_ranks;
  if (slurm && !reader->Has(size)) {
    // A batch script runs outside any step, with the job's variables.
    if (!reader->Has("SLURM_NTASKS")) return std::nullopt;
    const int num_tasks = reader->Number("SLURM_NTASKS", 1, kMostRanks, 1);
    if (num_tasks == 1) return std::nullopt;
    if (!reader->Has("SLURM_STEP_ID")) {
      reader->problems.Add(
          size, absl::StrCat("is missing and SLURM_NTASKS is ", num_tasks,
                             ", expected to be started by srun"));
      return std::nullopt;
    }
    size = "SLURM_NTASKS";
  }
  if (!reader->Has(size)) {
    reader->problems.Add(size, absl::StrCat("is missing while ", launcher.rank,
                                            " is ", reader->Text(launcher.rank),
                                            ", expected the number of ranks"));
    return std::nullopt;
  }
  launch.num_ranks = reader->Number(size, 1, kMostRanks, 1);
  launch.rank = reader->Number(launcher.rank, 0, launch.num_ranks - 1, 0);
  launch.local_rank =
      reader->Number(launcher.local_rank, 0, launch.num_ranks - 1, -1);
  launch.num_local =
      reader->Number(launcher.num_local, 1, launch.num_ranks, -1);
  if (slurm && reader->Text("SLURM_STEP_NUM_NODES") == "1") {
    launch.num_local = launch.num_ranks;
  }
  return launch;
}

void CheckAgreement(const Launcher& a, const RankLaunch& first,
                    const Launcher& b, const RankLaunch& second,
                    Reader* reader) {
  const auto compare = [&](const char* name, int value, const char* other_name,
                           int other) {
    if (value == other) return;
    reader->problems.Add(
        name, absl::StrCat("is ", value, " and ", other_name, " is ", other,
                           ", expected equal values (unset the stale one)"));
  };
  compare(a.rank, first.rank, b.rank, second.rank);
  compare(a.num_ranks, first.num_ranks, b.num_ranks, second.num_ranks);
}

// PMIx only provides the count to processes that link its library.
void CheckPmix(const std::optional<RankLaunch>& found, Reader* reader) {
  if (!reader->Has("PMIX_RANK")) return;
  if (!found.has_value()) {
    reader->problems.Add("PMIX_RANK",
                         absl::StrCat("is ", reader->Text("PMIX_RANK"),
                                      " but the number of ranks is unknown, "
                                      "expected RANK and WORLD_SIZE too"));
    return;
  }
  if (found->launcher != "Open MPI") return;
  const int rank = reader->Number("PMIX_RANK", 0, kMostRanks, found->rank);
  if (rank != found->rank) {
    reader->problems.Add(
        "PMIX_RANK", absl::StrCat("is ", rank, " and OMPI_COMM_WORLD_RANK is ",
                                  found->rank, ", expected equal values"));
  }
}

}  // namespace

absl::StatusOr<RankLaunch> ReadLaunch(const Environment& environment) {
  Reader reader(environment);
  std::optional<RankLaunch> found;
  const Launcher* by = nullptr;
  for (const Launcher& launcher : kLaunchers) {
    const bool outer = launcher.name == absl::string_view("Slurm");
    if (outer && found.has_value()) break;
    const std::optional<RankLaunch> launch = ReadOne(launcher, &reader);
    if (!launch.has_value()) continue;
    if (found.has_value()) {
      CheckAgreement(*by, *found, launcher, *launch, &reader);
      continue;
    }
    found = launch;
    by = &launcher;
  }
  CheckPmix(found, &reader);
  RETURN_IF_ERROR(reader.problems.ToStatus());
  RankLaunch launch = found.value_or(RankLaunch());
  // Also set under mpirun in a job, where Slurm's daemon starts a node's ranks.
  launch.node = reader.Text("SLURMD_NODENAME");
  if (launch.node.empty()) launch.node = HostName();
  launch.topology_address = reader.Text("SLURM_TOPOLOGY_ADDR");
  launch.topology_pattern = reader.Text("SLURM_TOPOLOGY_ADDR_PATTERN");
  return launch;
}

}  // namespace weir::calibrate
