// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "calibrate/fabric/launch.h"
#include "calibrate/fabric/wire.h"

namespace weir::calibrate {
namespace {

constexpr int kPortsTried = 8;

std::string Get(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? "" : value;
}

// Returns a hash that is the same in every process and build (FNV-1a).
uint64_t HashOf(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

// Returns ports below the range that Linux uses for outgoing connections.
std::vector<int> PortsOf(absl::string_view job) {
  std::vector<int> ports;
  const int first = 15000 + static_cast<int>(HashOf(job) % 2000) * kPortsTried;
  for (int i = 0; i < kPortsTried; ++i) ports.push_back(first + i);
  return ports;
}

// Returns a string known to all ranks of a job and different for other jobs.
std::string JobOf(const RankLaunch& launch, const Environment& environment) {
  std::vector<std::string> parts = {launch.launcher};
  for (const char* name :
       {"SLURM_JOB_ID", "SLURM_STEP_ID",
        "OMPI_MCA_orte_precondition_transports", "PMIX_NAMESPACE",
        "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"}) {
    parts.push_back(Get(environment, name));
  }
  // The parent is the daemon that started all ranks of a node.
  if (launch.launcher == "PMI") parts.push_back(absl::StrCat(getppid()));
  return absl::StrJoin(parts, "/");
}

absl::Status FromMaster(const Environment& environment, Rendezvous* meeting) {
  const std::string host = Get(environment, "MASTER_ADDR");
  const std::string text = Get(environment, "MASTER_PORT");
  int port = 0;
  if (host.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "environment: MASTER_ADDR is missing while MASTER_PORT is ", text,
        ", expected the host of rank 0"));
  }
  if (!absl::SimpleAtoi(text, &port) || port < 1 || port > 65534) {
    return absl::InvalidArgumentError(absl::StrCat(
        "environment: MASTER_PORT is ",
        text.empty() ? "missing" : absl::StrCat("\"", text, "\""),
        ", expected a port from 1 to 65534 of rank 0's host ", host));
  }
  // torchrun's own agent listens on MASTER_PORT.
  const bool taken = Get(environment, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  meeting->hosts = {host};
  meeting->ports = {port + (taken ? 1 : 0)};
  return absl::OkStatus();
}

// Uses the first node of the step, by the address that Slurm itself uses: names
// may not resolve, or resolve slowly.
absl::Status FromSlurm(const Environment& environment, const RunProgram& run,
                       Rendezvous* meeting) {
  std::string list = Get(environment, "SLURM_STEP_NODELIST");
  if (list.empty()) list = Get(environment, "SLURM_JOB_NODELIST");
  const absl::StatusOr<std::string> names =
      run({"scontrol", "show", "hostnames", list});
  if (!names.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Slurm: cannot ask scontrol for the first of the nodes \"",
                     list, "\" (", names.status().message(),
                     "), expected --rendezvous FILE or MASTER_ADDR and "
                     "MASTER_PORT"));
  }
  const std::string first(
      absl::StripAsciiWhitespace(names->substr(0, names->find('\n'))));
  if (first.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Slurm: scontrol finds no node in \"", list,
        "\", expected --rendezvous FILE or MASTER_ADDR and MASTER_PORT"));
  }
  meeting->hosts = {first};
  // Parse "NodeName=n1 Arch=x86_64 ... NodeAddr=10.0.0.1 ..."
  if (const auto node = run({"scontrol", "--oneliner", "show", "node", first});
      node.ok()) {
    for (absl::string_view word : absl::StrSplit(*node, ' ')) {
      if (absl::ConsumePrefix(&word, "NodeAddr=")) {
        meeting->hosts = {std::string(word)};
      }
    }
  }
  return absl::OkStatus();
}

// Uses mpirun's own addresses: "3866361856.0;tcp://10.0.0.1,192.168.0.1:52003".
// They are correct if rank 0 runs on the node of mpirun, which is the default.
absl::Status FromMpirun(const RankLaunch& launch,
                        const Environment& environment, Rendezvous* meeting) {
  const std::string uri = Get(environment, "OMPI_MCA_orte_hnp_uri");
  const size_t begin = uri.find("tcp://");
  const size_t end = uri.rfind(':');
  if (begin == std::string::npos || end <= begin + 6) {
    return absl::InvalidArgumentError(absl::StrCat(
        "environment: none of ", launch.launcher,
        " gives the address of rank 0, expected --rendezvous FILE (on a shared "
        "file system) or MASTER_ADDR and MASTER_PORT"));
  }
  meeting->hosts = absl::StrSplit(uri.substr(begin + 6, end - begin - 6), ',');
  if (launch.rank != 0) return absl::OkStatus();
  const std::vector<std::string> own = OwnAddresses();
  for (const std::string& host : meeting->hosts) {
    if (std::find(own.begin(), own.end(), host) != own.end() ||
        host == "127.0.0.1") {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "Open MPI: rank 0 is not on mpirun's host (", uri,
      "), expected --rendezvous FILE or MASTER_ADDR and MASTER_PORT"));
}

}  // namespace

absl::StatusOr<Rendezvous> FindRendezvous(const RankLaunch& launch,
                                          const std::string& file,
                                          const Environment& environment,
                                          const RunProgram& run) {
  Rendezvous meeting;
  meeting.file = file;
  meeting.all_local = launch.num_local == launch.num_ranks;
  const std::string job = JobOf(launch, environment);
  meeting.token = Get(environment, "WEIR_NETWORK_TOKEN");
  if (!file.empty()) return meeting;
  if (meeting.token.empty()) meeting.token = job;
  meeting.ports = PortsOf(job);
  if (!Get(environment, "MASTER_ADDR").empty() ||
      !Get(environment, "MASTER_PORT").empty()) {
    RETURN_IF_ERROR(FromMaster(environment, &meeting));
  } else if (launch.launcher == "torchrun") {
    return absl::InvalidArgumentError(
        "environment: MASTER_ADDR and MASTER_PORT are missing, expected the "
        "address of rank 0 (or --rendezvous FILE)");
  } else if (meeting.all_local) {
    meeting.hosts = {"127.0.0.1"};
  } else if (launch.launcher == "Slurm") {
    RETURN_IF_ERROR(FromSlurm(environment, run, &meeting));
  } else {
    RETURN_IF_ERROR(FromMpirun(launch, environment, &meeting));
  }
  return meeting;
}

absl::StatusOr<std::string> RunAndRead(
    const std::vector<std::string>& command) {
  constexpr absl::Duration kPatience = absl::Seconds(20);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::UnavailableError("cannot create a pipe");
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                   O_WRONLY, 0);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr,
                                  arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  const absl::Time deadline = absl::Now() + kPatience;
  char buffer[4096];
  while (failed == 0 && !WaitReadable({ends[0]}, deadline).empty()) {
    const ssize_t n = read(ends[0], buffer, sizeof buffer);
    if (n <= 0) break;
    text.append(buffer, n);
  }
  close(ends[0]);
  if (failed != 0) {
    return absl::UnavailableError(
        absl::StrCat(command[0], ": ", std::strerror(failed)));
  }
  // It may have closed its output without exiting.
  int result = 0;
  while (waitpid(child, &result, WNOHANG) == 0) {
    if (absl::Now() >= deadline) kill(child, SIGKILL);
    absl::SleepFor(absl::Milliseconds(1));
  }
  if (result != 0) {
    return absl::UnavailableError(absl::StrCat(command[0], " failed"));
  }
  return text;
}

}  // namespace weir::calibrate
