// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fabric/command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/exit_code.h"
#include "base/output_file.h"
#include "base/problems.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "base/textproto.h"
#include "calibrate/fabric/fabric_profile.h"
#include "calibrate/fabric/follower.h"
#include "calibrate/fabric/launch.h"
#include "calibrate/fabric/leader.h"
#include "calibrate/fabric/measure_fabric.h"
#include "calibrate/fabric/rank_work.h"
#include "calibrate/profile/device_profile.h"

namespace weir::calibrate {
namespace {

// Transfers time out before the ranks that wait for them, so that a hanging
// rank is distinguished from those that hang because of it.
constexpr double kTransferPart = 0.8;

void Print(const NetworkFlags& flags, const absl::Status& status) {
  if (status.ok()) return;
  std::fflush(stdout);
  flags.print_error(status.message());
}

absl::Status CheckFlags(const NetworkFlags& flags) {
  Problems problems("flags");
  if (flags.out.empty()) problems.Add("--out", "is missing, expected a file");
  if (flags.start.empty()) {
    problems.Add("--start", "is missing, expected a profile to start from");
  }
  problems.CheckRange("--pairs-per-class", flags.pairs_per_class, 1, 1000);
  problems.CheckRange("--max-bytes", flags.max_bytes, 4 * kLeastBytes, 1e12);
  problems.CheckRange("--timeout", flags.timeout_seconds, 0.1, 1e5);
  return problems.ToStatus();
}

ReplaceOptions ReplaceOf(const NetworkFlags& flags) {
  ReplaceOptions options;
  options.force = flags.force;
  return options;
}

std::string PartialOf(const NetworkFlags& flags) {
  return absl::StrCat(flags.out, ".partial");
}

absl::Status WithPartial(const absl::Status& status,
                         const NetworkFlags& flags) {
  const std::string partial = PartialOf(flags);
  if (access(partial.c_str(), F_OK) != 0) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; the measurements are in ", partial));
}

std::vector<Order> ToAll(int num_ranks, const Request& request) {
  std::vector<Order> orders;
  for (int rank = 0; rank < num_ranks; ++rank) {
    orders.push_back({rank, request});
  }
  return orders;
}

// Makes every rank create its transport and report its location.
absl::StatusOr<std::vector<Presence>> PrepareAll(const RankLaunch& launch,
                                                 Leader* leader) {
  Request prepare;
  prepare.set_what(Request::PREPARE);
  prepare.set_text("preparing the GPU");
  std::vector<Order> orders = ToAll(launch.num_ranks, prepare);
  std::map<std::string, int> num_before;
  for (Order& order : orders) {
    order.request.set_local_rank(num_before[leader->NodeOf(order.rank)]++);
  }
  ASSIGN_OR_RETURN(const std::vector<Answer> answers,
                   leader->SendAndWait(std::move(orders)));
  std::vector<Presence> presences;
  for (const Answer& answer : answers) presences.push_back(answer.presence());
  return presences;
}

absl::Status CheckGpus(const NetworkFlags& flags,
                       const std::vector<Presence>& presences) {
  if (flags.one_gpu) return absl::OkStatus();
  Problems problems("launch");
  std::map<std::pair<std::string, std::string>, size_t> first;
  for (size_t rank = 0; rank < presences.size(); ++rank) {
    const Presence& presence = presences[rank];
    const auto [at, added] = first.emplace(
        std::make_pair(presence.node(), presence.gpu_address()), rank);
    if (added) continue;
    problems.Add(
        "", absl::StrCat("ranks ", at->second, " and ", rank, " share GPU ",
                         presence.gpu_address(), " of host ", presence.node(),
                         ", expected one rank per GPU (--one-gpu allows it for "
                         "a functional check)"));
  }
  return problems.ToStatus();
}

Provenance ProvenanceOf(const NetworkFlags& flags,
                        const std::vector<Presence>& presences,
                        const std::vector<RankPlace>& places) {
  Provenance provenance = presences[0].provenance();
  int num_nodes = 0;
  bool unlike = false;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    num_nodes = std::max(num_nodes, places[rank].node + 1);
    const Provenance& other = presences[rank].provenance();
    unlike |= other.gpu_name() != provenance.gpu_name() ||
              other.software().nccl() != provenance.software().nccl();
  }
  provenance.set_num_ranks(places.size());
  provenance.set_num_nodes(num_nodes);
  provenance.set_command(flags.command);
  provenance.set_weir_version(flags.weir_version);
  provenance.set_measured_on(
      absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()));
  if (unlike) {
    provenance.add_remarks(
        "not all ranks have the same GPU and NCCL as rank 0");
  }
  return provenance;
}

bool IsTopologyUnknown(const std::vector<RankPlace>& places) {
  bool nodes = false;
  bool leaves = true;
  for (const RankPlace& place : places) {
    nodes |= place.node > 0;
    leaves &= place.leaf >= 0;
  }
  return nodes && !leaves;
}

// Rank 0's work after all ranks have connected.
class Lead {
 public:
  Lead(const NetworkFlags& flags, const RankLaunch& launch, Leader* leader)
      : flags_(flags), launch_(launch), leader_(leader) {}

  absl::Status Run() {
    RETURN_IF_ERROR(CheckOutputs(
        {{"--out", flags_.out, ReplaceOf(flags_)},
         {"the journal of --out", PartialOf(flags_), ReplaceOf(flags_)}}));
    ASSIGN_OR_RETURN(const DeviceProfile start,
                     LoadDeviceProfile(flags_.start));
    std::optional<NetworkTopology> topology;
    if (!flags_.topology.empty()) {
      ASSIGN_OR_RETURN(topology, LoadTopology(flags_.topology));
    }
    ASSIGN_OR_RETURN(const std::vector<Presence> presences,
                     PrepareAll(launch_, leader_));
    RETURN_IF_ERROR(CheckGpus(flags_, presences));
    std::remove(PartialOf(flags_).c_str());  // left by an earlier run
    NetworkMeasurements measured;
    ASSIGN_OR_RETURN(
        measured.positions,
        PositionsOf(presences, topology.has_value() ? &*topology : nullptr));
    provenance_ = ProvenanceOf(flags_, presences, measured.positions);
    MeasureOptions options;
    ASSIGN_OR_RETURN(options.groups,
                     PlanGroups(measured.positions, flags_.groups));
    if (IsTopologyUnknown(measured.positions)) {
      measured.remarks.emplace_back(
          "the leaf switches of the nodes are unknown: all pairs of nodes are "
          "treated as connected across spines (--topology FILE specifies "
          "them)");
    }
    options.pairs_per_class = flags_.pairs_per_class;
    options.max_bytes = flags_.max_bytes;
    options.timeout_seconds = flags_.timeout_seconds;
    options.seed = flags_.seed;
    const double channels =
        start.collectives().memory().num_pair_channels().value();
    if (channels >= 1) options.num_channels = static_cast<int>(channels);
    options.keep = [this](const NetworkMeasurements& so_far) {
      return Keep(so_far);
    };
    if (absl::Status done = MeasureNetwork(leader_, options, &measured);
        !done.ok()) {
      RETURN_IF_ERROR(Keep(measured));
      return absl::Status(
          done.code(),
          absl::StrCat(done.message(), "; the measurements are in ",
                       PartialOf(flags_)));
    }
    leader_->Finish(0);
    return Report(start, measured);
  }

 private:
  absl::Status Keep(const NetworkMeasurements& so_far) {
    return WriteOutput(PartialOf(flags_),
                       MarkText(PrintTextProto(RecordOf(so_far, provenance_))),
                       ReplaceOf(flags_));
  }

  absl::Status Report(const DeviceProfile& start,
                      const NetworkMeasurements& measured) {
    std::printf("%s, launched by %s\n",
                EscapeLine(SourceOf(provenance_)).c_str(),
                EscapeLine(launch_.launcher).c_str());
    if (flags_.one_gpu) {
      std::printf(
          "functional check on one GPU: the times are not those of a network, "
          "so %s is not written\n%s",
          EscapeLine(flags_.out).c_str(),
          EscapeControls(ReportNetwork(measured, nullptr)).c_str());
      std::remove(PartialOf(flags_).c_str());
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const DeviceProfile profile,
                     ProfileOf(start, measured, provenance_));
    RETURN_IF_ERROR(ValidateDeviceProfile(flags_.out, profile));
    RETURN_IF_ERROR(WriteOutput(flags_.out, MarkText(PrintTextProto(profile)),
                                ReplaceOf(flags_)));
    std::remove(PartialOf(flags_).c_str());
    std::printf("%s\nwrote %s\n",
                EscapeControls(ReportNetwork(measured, &profile)).c_str(),
                EscapeLine(flags_.out).c_str());
    const auto& before = start.provenance().remarks();
    for (const std::string& remark : profile.provenance().remarks()) {
      if (absl::c_linear_search(before, remark)) continue;
      flags_.print_warning(remark);
    }
    return absl::OkStatus();
  }

  const NetworkFlags& flags_;
  const RankLaunch& launch_;
  Leader* const leader_;
  Provenance provenance_;
};

absl::StatusOr<int> RunFollower(const NetworkFlags& flags,
                                const RankLaunch& launch,
                                const Rendezvous& rendezvous, RankWork* work) {
  FollowerOptions options;
  options.weir_version = flags.weir_version;
  options.timeout_seconds = flags.timeout_seconds;
  options.report_error = [&flags](const absl::Status& status) {
    Print(flags, status);
  };
  ASSIGN_OR_RETURN(const std::unique_ptr<Follower> follower,
                   Follower::Connect(launch, rendezvous, std::move(options)));
  absl::StatusOr<int> code = follower->Serve(
      [work](const Request& request) { return work->Perform(request); });
  if (code.ok() && *code == 0) return code;
  if (!code.ok()) Print(flags, code.status());
  // An abandoned transfer may block the driver, and with it a normal exit.
  _exit(code.ok() ? *code : ExitCodeOf(code.status()));
}

int RunLeader(const NetworkFlags& flags, const RankLaunch& launch,
              const Rendezvous& rendezvous, RankWork* work) {
  LeaderOptions options;
  options.weir_version = flags.weir_version;
  options.timeout_seconds = flags.timeout_seconds;
  options.perform = [work](const Request& request) {
    return work->Perform(request);
  };
  options.report_error = [&flags](const absl::Status& status) {
    Print(flags, WithPartial(status, flags));
  };
  Leader leader(launch, std::move(options));
  absl::Status done = leader.Connect(rendezvous);
  if (done.ok()) done = Lead(flags, launch, &leader).Run();
  // Prints before the other ranks end, as their launcher may then end this one.
  Print(flags, done);
  std::fflush(stdout);
  leader.Finish(ExitCodeOf(done));
  if (!done.ok()) _exit(ExitCodeOf(done));  // like a follower
  return 0;
}

absl::StatusOr<int> Run(const NetworkFlags& flags,
                        const TransportFactory& make_transport) {
  ASSIGN_OR_RETURN(const RankLaunch launch,
                   ReadLaunch([](const char* name) { return getenv(name); }));
  if (const absl::Status checked = CheckFlags(flags); !checked.ok()) {
    // All ranks have the same flags; rank 0 reports the error.
    if (launch.rank == 0) return checked;
    return ExitCodeOf(checked);
  }
  Rendezvous rendezvous;
  if (launch.num_ranks > 1) {
    ASSIGN_OR_RETURN(
        rendezvous,
        FindRendezvous(
            launch, flags.rendezvous,
            [](const char* name) { return getenv(name); }, RunAndRead));
  }
  TransportRequest request;
  request.rank = launch.rank;
  request.num_ranks = launch.num_ranks;
  request.one_gpu = flags.one_gpu;
  request.timeout_seconds = kTransferPart * flags.timeout_seconds;
  RankWork work(launch, request, make_transport);
  if (launch.rank > 0) return RunFollower(flags, launch, rendezvous, &work);
  return RunLeader(flags, launch, rendezvous, &work);
}

}  // namespace

int RunNetworkCommand(const NetworkFlags& flags,
                      const TransportFactory& make_transport) {
  const absl::StatusOr<int> code = Run(flags, make_transport);
  if (!code.ok()) Print(flags, code.status());
  return code.ok() ? *code : ExitCodeOf(code.status());
}

}  // namespace weir::calibrate
