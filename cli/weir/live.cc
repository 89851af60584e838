// SPDX-License-Identifier: Apache-2.0
// "weir live": the page of weir report with controls, on this machine.
#include <malloc.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/json_text.h"
#include "base/status_macros.h"
#include "base/worker_pool.h"
#include "cli/options/messages.h"
#include "cli/options/overrides.h"
#include "cli/weir/commands.h"
#include "cli/weir/live_server.h"
#include "cli/weir/live_settings.h"
#include "plan/resources/run_resources.h"
#include "plan/sweep/fast_estimate_view.h"
#include "results/report/report.h"
#include "schedules/registry.h"
#include "sim/fast/fast_simulator.h"
#include "sim/simulate.h"

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kEstimateSeconds = 20;
constexpr double kReportSeconds = 120;

// Keeps freed memory for the next request, of which the graph is about as
// large. Page faults would take a tenth of the time of an estimate.
void KeepFreedMemory() {
#ifdef M_TRIM_THRESHOLD
  constexpr int kLargestMmapThreshold = 32 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargestMmapThreshold);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

// Runs jobs one after the other in a child process that keeps its state. Jobs
// come from any thread.
class Executor {
 public:
  // Starts the child before it returns, since forking is simpler before other
  // threads run.
  Executor(Workers::Work work, double time_limit_seconds,
           const std::string& first_job)
      : thread_([this, work = std::move(work), time_limit_seconds] {
          Loop(work, time_limit_seconds);
        }) {
    first_ = Run(first_job);
  }
  ~Executor() { Stop(); }

  // Returns the result of the first job.
  const absl::StatusOr<std::string>& first() const { return first_; }

  absl::StatusOr<std::string> Run(const std::string& input) {
    Job job{input};
    std::unique_lock<std::mutex> lock(mutex_);
    if (stops_) return absl::CancelledError("weir live ends");
    jobs_.push_back(&job);
    changed_.notify_all();
    changed_.wait(lock, [&] { return job.output.has_value(); });
    return *std::move(job.output);
  }

  // Ends the child; jobs that have not ended are cancelled.
  void Stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stops_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  struct Job {
    std::string input;
    std::optional<absl::StatusOr<std::string>> output = {};
  };

  void Loop(const Workers::Work& work, double time_limit_seconds) {
    Workers workers(1, work, time_limit_seconds);
    while (Job* job = Next()) {
      absl::StatusOr<std::string> output = absl::CancelledError("interrupted");
      workers.Give(0, job->input);
      while (workers.num_unfinished() > 0 && !stops()) {
        const absl::Status waited =
            workers.Wait([&](int, absl::StatusOr<std::string> answer) {
              output = std::move(answer);
            });
        if (waited.ok()) continue;
        output = waited;
        workers.Clear();
      }
      const std::lock_guard<std::mutex> lock(mutex_);
      job->output = std::move(output);
      changed_.notify_all();
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Job* job : jobs_) job->output = absl::CancelledError("weir live ends");
    jobs_.clear();
    changed_.notify_all();
  }

  // Returns null when the executor stops.
  Job* Next() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return stops_ || !jobs_.empty(); });
    if (stops_) return nullptr;
    Job* job = jobs_.front();
    jobs_.pop_front();
    return job;
  }

  bool stops() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stops_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job*> jobs_;
  bool stops_ = false;
  std::thread thread_;
  absl::StatusOr<std::string> first_;
};

// Returns "result" of simulate --method fast --format json, and whether it fits
// under the limit of the settings.
absl::StatusOr<std::string> EstimateJson(
    const Flags& flags, const std::string& text,
    std::optional<sim::FastSimulator>* simulator) {
  ASSIGN_OR_RETURN(const LiveSettings settings, ParseLiveSettings(text));
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario scenario,
                   WithLiveSettings(flags.scenario, settings));
  if (!simulator->has_value()) simulator->emplace();
  ASSIGN_OR_RETURN(const sim::FastEstimate estimate,
                   (*simulator)->Estimate(scenario));
  Json json =
      Json::parse(plan::FastEstimateJson(flags.command, scenario, estimate));
  Json answer = {{"settings", LiveSettingsJson(settings)},
                 {"result", json["result"]},
                 {"warnings", json["warnings"]}};
  const double limit = settings.memory_limit_bytes;
  answer["fits"] = estimate.fits_memory &&
                   (limit == 0 ||
                    json["result"]["peak_memory_bytes"].get<double>() <= limit);
  return DumpJson(answer);
}

// Returns the data of a report of a full simulation.
absl::StatusOr<std::string> ReportOf(const Flags& flags,
                                     const std::string& text) {
  ASSIGN_OR_RETURN(const LiveSettings settings, ParseLiveSettings(text));
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario scenario,
                   WithLiveSettings(flags.scenario, settings));
  sim::SimulateOptions options;
  options.keep_timeline = true;
  options.timeline_batches = 16;
  ASSIGN_OR_RETURN(const Result result, sim::Simulate(scenario, options));
  results::ReportOptions report;
  report.resources.push_back(plan::ResourcesOf(result));
  return results::ReportData({&result, 1}, report);
}

LiveResponse ResponseOf(absl::StatusOr<std::string> body,
                        const char* content_type) {
  if (body.ok()) return {200, content_type, *std::move(body)};
  const int status = absl::IsCancelled(body.status()) ? 503 : 422;
  return {status, "application/json",
          DumpJson(Json{{"error", std::string(body.status().message())}})};
}

Json ControlsOf(const scenarios::ResolvedScenario& scenario) {
  Json schedules = Json::array();
  const LiveSettings settings = LiveSettingsOf(scenario);
  std::set<std::string> names;
  for (const schedules::ScheduleKind& kind : schedules::AllScheduleKinds()) {
    names.emplace(kind.name);
  }
  names.insert(settings.schedule);
  for (const std::string& name : names) schedules.push_back(name);
  return {{"type", "live"},
          {"name", scenario.scenario.name()},
          {"settings", LiveSettingsJson(settings)},
          {"schedules", schedules},
          {"given_costs", scenario.given_costs},
          {"memory_capacity_bytes",
           scenario.given_costs ? Json()
                                : Json(scenario.device.memory_bytes().value())},
          {"num_gpus", scenario.placement.num_gpus()},
          {"limits",
           {{"pipeline", kMostLivePipeline},
            {"microbatches", kMostLiveMicrobatches},
            {"chunks", kMostLiveChunks},
            {"bandwidth", kMostLiveBandwidth},
            {"slowest_gpu", kLeastLiveSpeed}}}};
}

absl::Status Serve(const Flags& flags) {
  ASSIGN_OR_RETURN(const scenarios::ResolvedScenario scenario,
                   ResolveFlags(flags.scenario, &flags.output));
  constexpr uint64_t kMostPort = 65535;
  if (flags.live.port > kMostPort) {
    return absl::InvalidArgumentError(
        absl::StrCat("command line: --port is ", flags.live.port,
                     ", expected 1 to ", kMostPort));
  }
  const std::string first =
      DumpJson(LiveSettingsJson(LiveSettingsOf(scenario)));
  const std::string page = results::LivePage(DumpJson(ControlsOf(scenario)));
  ASSIGN_OR_RETURN(const std::string token, RandomToken());
  NoteInterrupt();
  std::optional<sim::FastSimulator> simulator;  // of the child
  Executor estimates(
      [&](const std::string& text) {
        return EstimateJson(flags, text, &simulator);
      },
      kEstimateSeconds, first);
  Executor reports(
      [&](const std::string& text) { return ReportOf(flags, text); },
      kReportSeconds, first);
  RETURN_IF_ERROR(estimates.first().status());
  RETURN_IF_ERROR(reports.first().status());
  LiveHandlers handlers;
  handlers.page = [&] {
    return LiveResponse{200, "text/html; charset=utf-8", page};
  };
  handlers.estimate = [&](const std::string& text) {
    return ResponseOf(estimates.Run(text), "application/json");
  };
  handlers.report = [&](const std::string& text) {
    return ResponseOf(reports.Run(text), "application/octet-stream");
  };
  ASSIGN_OR_RETURN(const std::unique_ptr<LiveServer> server,
                   StartLiveServer(static_cast<int>(flags.live.port), token,
                                   std::move(handlers)));
  absl::Status printed = PrintResult(absl::StrCat(
      "http://127.0.0.1:", server->port(), "/?token=", token, "\n"));
  if (printed.ok()) {
    PrintNote("open this address in a browser of this machine; Ctrl-C ends",
              flags.output);
    while (!Interrupted()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  // Handlers that wait for a job go on first.
  estimates.Stop();
  reports.Stop();
  server->Stop();
  return printed;
}

}  // namespace

int RunLive(const Flags& flags) {
  KeepFreedMemory();
  const absl::Status served = Serve(flags);
  if (!served.ok()) return PrintError(served, flags.output);
  return Interrupted() ? InterruptExitCode() : kExitOk;
}

}  // namespace weir::cli
