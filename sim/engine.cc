// SPDX-License-Identifier: Apache-2.0
#include "sim/engine.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <limits>
#include <new>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
// clang-format off
#include <simgrid/version.h>  // after s4u.hpp, whose macros it needs
// clang-format on
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sim/platform.h"
#include "sim/slowdown_state.h"

namespace weir {
namespace {

namespace sg4 = simgrid::s4u;

// What the child tells its parent besides the recording.
struct Shared {
  std::atomic<int64_t> num_ended;
  std::atomic<bool> finished;
};

// Replays the graph: counts down predecessors, starts what becomes ready.
class Replay {
 public:
  Replay(const TaskGraph& graph, const Platform& platform, Recording* recording,
         Shared* shared)
      : graph_(graph),
        platform_(platform),
        start_(recording->start_seconds()),
        end_(recording->end_seconds()),
        sharing_(recording->sharing_seconds()),
        shared_(shared),
        waiting_(graph.num_predecessors()),
        slowdowns_(graph.slowdowns),
        running_(graph.slowdowns.factors.size()) {}

  void Run(sg4::Engine* engine) {
#if SIMGRID_VERSION < 33500
    sg4::Activity::on_completion_cb(
        [this](const sg4::Activity& activity) { FlowEnded(activity); });
#else
    sg4::Comm::on_completion_cb(
        [this](const sg4::Comm& comm) { FlowEnded(comm); });
#endif
    for (int32_t task = 0; task < graph_.num_tasks(); ++task) {
      if (waiting_[task] == 0) ready_.push_back(task);
    }
    StartReady();
    engine->run();
    shared_->num_ended = num_ended_;
    for (int32_t task = 0; task < graph_.num_tasks(); ++task) {
      if (waiting_[task] > 0) {
        start_[task] = end_[task] = std::numeric_limits<double>::quiet_NaN();
      }
    }
  }

 private:
  // Timers of zero seconds end at once; a loop, since chains of them are long.
  void StartReady() {
    while (!ready_.empty()) {
      const int32_t task = ready_.back();
      ready_.pop_back();
      start_[task] = sg4::Engine::get_clock();
      if (!graph_.is_timer(task)) {
        StartFlow(task);
      } else if (slowdowns_.GpuOf(task) >= 0 && graph_.amount(task) > 0) {
        StartSlowable(task);
      } else if (graph_.amount(task) > 0) {
        simgrid::kernel::timer::Timer::set(start_[task] + graph_.amount(task),
                                           [this, task] {
                                             End(task);
                                             StartReady();
                                           });
      } else {
        End(task);
      }
    }
    RetimeCards();
  }

  // A timer of a GPU: what is left of it at full speed, and when that was so.
  struct Running {
    int32_t task = 0;
    double left_seconds = 0, since = 0;
    SlowdownFactors factors;
    simgrid::kernel::timer::Timer* timer = nullptr;
  };

  void SetTimer(int32_t gpu, Running* running) {
    const int32_t task = running->task;
    running->timer = simgrid::kernel::timer::Timer::set(
        running->since + running->left_seconds * running->factors.both(),
        [this, gpu, task] {
          EndSlowable(gpu, task);
          StartReady();
        });
  }

  void StartSlowable(int32_t task) {
    const int32_t gpu = slowdowns_.GpuOf(task);
    if (running_[gpu].empty()) CountPart(gpu, 1);
    running_[gpu].push_back({task, graph_.amount(task), start_[task],
                             slowdowns_.FactorsOf(task), nullptr});
    SetTimer(gpu, &running_[gpu].back());
  }

  void EndSlowable(int32_t gpu, int32_t task) {
    std::vector<Running>& running = running_[gpu];
    const auto at =
        std::find_if(running.begin(), running.end(),
                     [task](const Running& one) { return one.task == task; });
    NoteSharing(*at);
    running.erase(at);
    if (running.empty()) CountPart(gpu, -1);
    End(task);
  }

  // A part of a card begins (+1) or ends (-1) to compute. The others go on at
  // another speed once all that this moment starts is started: from one pass to
  // the next the number is as it was.
  void CountPart(int32_t gpu, int change) {
    const auto card = slowdowns_.CountPart(gpu, change);
    if (!card.empty()) changed_cards_.push_back(card);
  }

  void RetimeCards() {
    for (const std::span<const int32_t> card : changed_cards_) Retime(card);
    changed_cards_.clear();
  }

  // What runs on these GPUs goes on at the speed of now.
  void Retime(std::span<const int32_t> gpus) {
    for (int32_t gpu : gpus) {
      for (Running& running : running_[gpu]) Retime(gpu, &running);
    }
  }

  void Retime(int32_t gpu, Running* running) {
    const SlowdownFactors factors = slowdowns_.FactorsOf(running->task);
    if (factors == running->factors) return;
    const double now = sg4::Engine::get_clock();
    const double left = running->left_seconds -
                        (now - running->since) / running->factors.both();
    // It ends now; its timer is set for that.
    if (left <= 1e-15 * graph_.amount(running->task)) return;
    NoteSharing(*running);
    running->left_seconds = left;
    running->since = now;
    running->factors = factors;
    running->timer->remove();
    SetTimer(gpu, running);
  }

  // Of the time since its factors last changed, what other parts have added.
  void NoteSharing(const Running& running) {
    if (sharing_.empty()) return;
    sharing_[running.task] += (sg4::Engine::get_clock() - running.since) *
                              (1 - 1 / running.factors.parts);
  }

  void StartFlow(int32_t task) {
    Retime(slowdowns_.CountFlow(graph_.pair(task), 1));
    const GpuPair& pair = graph_.pairs[graph_.pair(task)];
    int32_t slot;
    if (free_slots_.empty()) {
      slot = static_cast<int32_t>(flows_.size());
      flows_.push_back({});
    } else {
      slot = free_slots_.back();
      free_slots_.pop_back();
    }
    sg4::CommPtr comm = sg4::Comm::sendto_init();
    flows_[slot] = {comm, task};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): what SimGrid carries for us.
    comm->set_data(reinterpret_cast<void*>(static_cast<intptr_t>(slot) + 1));
    comm->set_payload_size(static_cast<uint64_t>(graph_.amount(task)));
    comm->set_source(platform_.hosts[pair.from]);
    comm->set_destination(platform_.hosts[pair.to]);
#if SIMGRID_VERSION < 33500
    if (comm->get_state() != sg4::Activity::State::STARTED) {
      comm->vetoable_start();
    }
#else
    if (comm->get_state() != sg4::Activity::State::STARTED) comm->start();
#endif
  }

  template <typename ActivityType>
  void FlowEnded(const ActivityType& activity) {
    const auto slot = static_cast<int32_t>(
        reinterpret_cast<intptr_t>(activity.template get_data<void>()) - 1);
    // SimGrid still uses the activity that reports here: let it go next time.
    last_ended_ = std::move(flows_[slot].comm);
    free_slots_.push_back(slot);
    Retime(slowdowns_.CountFlow(graph_.pair(flows_[slot].task), -1));
    End(flows_[slot].task);
    StartReady();
  }

  void End(int32_t task) {
    end_[task] = sg4::Engine::get_clock();
    if ((++num_ended_ & 0xfff) == 0) shared_->num_ended = num_ended_;
    for (int32_t successor : graph_.successors(task)) {
      if (--waiting_[successor] == 0) ready_.push_back(successor);
    }
  }

  struct Flow {
    sg4::CommPtr comm;
    int32_t task;
  };

  const TaskGraph& graph_;
  const Platform& platform_;
  std::span<double> start_;
  std::span<double> end_;
  std::span<double> sharing_;  // empty: no parts of cards
  Shared* shared_;
  std::vector<int32_t> waiting_;
  std::vector<int32_t> ready_;
  std::vector<Flow> flows_;
  std::vector<int32_t> free_slots_;
  sg4::CommPtr last_ended_;
  int64_t num_ended_ = 0;
  SlowdownState slowdowns_;
  std::vector<std::vector<Running>> running_;  // [gpu]
  std::vector<std::span<const int32_t>> changed_cards_;
};

// The child: everything SimGrid happens here. Never returns.
[[noreturn]] void RunChild(const TaskGraph& graph, std::span<const Link> links,
                           Recording* recording, Shared* shared,
                           int message_fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(message_fd, STDERR_FILENO);  // where SimGrid says why it aborts
  try {
    char name[] = "weir", log[] = "--log=root.thres:critical";
    char* argv[] = {name, log, nullptr};
    int argc = 2;
    sg4::Engine engine(&argc, argv);
    signal(SIGINT, SIG_DFL);  // SimGrid has just set a handler of its own
    ConfigureSimGrid();
    const Platform platform = BuildPlatform(links, graph.pairs);
    Replay replay(graph, platform, recording, shared);
    replay.Run(&engine);
    shared->finished = true;
    _exit(0);  // no destructors: SimGrid's teardown is slow
  } catch (const std::exception& error) {
    const std::string text = absl::StrCat(error.what(), "\n");
    (void)!write(message_fd, text.data(), text.size());
  }
  _exit(1);
}

// Relays progress until the child closes its end; returns what it printed.
std::string Listen(int fd, const TaskGraph& graph, const Shared& shared,
                   const EngineOptions& options) {
  std::string text;
  pollfd poller{fd, POLLIN, 0};
  while (true) {
    const int ready = poll(&poller, 1, options.progress ? 100 : -1);
    if (ready == 0) {
      options.progress(static_cast<double>(shared.num_ended) /
                       std::max(graph.num_tasks(), 1));
      continue;
    }
    if (ready < 0) continue;  // a signal; the child gets it too
    char buffer[4096];
    const ssize_t size = read(fd, buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    if (text.size() < size_t{64} * 1024) text.append(buffer, size);
  }
}

absl::Status ChildStatus(int wait_status, const std::string& printed) {
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) {
    return absl::OkStatus();
  }
  if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGINT) {
    return absl::CancelledError("interrupted");
  }
  if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL) {
    return absl::ResourceExhaustedError(
        "the simulation was killed: out of memory?");
  }
  const std::string how =
      WIFSIGNALED(wait_status)
          ? absl::StrCat("signal ", WTERMSIG(wait_status))
          : absl::StrCat("exit code ", WEXITSTATUS(wait_status));
  return absl::InternalError(
      absl::StrCat("the simulation ended with ", how, ": ", printed));
}

// Anonymous memory that parent and child both see; null when refused.
void* MapShared(size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

}  // namespace

Recording::Recording(size_t num_tasks, bool shares_cards)
    : num_tasks_(num_tasks),
      shares_cards_(shares_cards),
      data_(static_cast<double*>(MapShared(bytes()))) {}

Recording::Recording(Recording&& other) noexcept
    : num_tasks_(other.num_tasks_),
      shares_cards_(other.shares_cards_),
      num_ended_(other.num_ended_),
      data_(std::exchange(other.data_, nullptr)) {}

Recording& Recording::operator=(Recording&& other) noexcept {
  std::swap(num_tasks_, other.num_tasks_);
  std::swap(shares_cards_, other.shares_cards_);
  std::swap(num_ended_, other.num_ended_);
  std::swap(data_, other.data_);
  return *this;
}

Recording::~Recording() {
  if (data_ != nullptr) munmap(data_, bytes());
}

size_t Recording::bytes() const {
  const size_t num_arrays = shares_cards_ ? 3 : 2;
  return std::max<size_t>(num_arrays * num_tasks_ * sizeof(double), 1);
}

absl::StatusOr<Recording> RunTaskGraph(const TaskGraph& graph,
                                       std::span<const Link> links,
                                       const EngineOptions& options) {
  Recording recording(graph.num_tasks(), !graph.slowdowns.curves.empty());
  void* memory = MapShared(sizeof(Shared));
  int fds[2];
  if (!recording.valid() || memory == nullptr || pipe2(fds, O_CLOEXEC) != 0) {
    if (memory != nullptr) munmap(memory, sizeof(Shared));
    return absl::ResourceExhaustedError("no memory for the simulation");
  }
  Shared* shared = new (memory) Shared{};
  // SimGrid flushes all streams: what is in them would be printed twice.
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(fds[0]);
    RunChild(graph, links, &recording, shared, fds[1]);
  }
  close(fds[1]);
  absl::Status status;
  if (child < 0) {
    status = absl::ResourceExhaustedError("no process for the simulation");
  } else {
    const std::string printed = Listen(fds[0], graph, *shared, options);
    int wait_status = 0;
    while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
    }
    status = ChildStatus(wait_status, printed);
  }
  close(fds[0]);
  recording.set_num_ended(shared->num_ended);
  munmap(memory, sizeof(Shared));
  RETURN_IF_ERROR(status);
  return recording;
}

std::string SimGridVersion() {
  return absl::StrCat(SIMGRID_VERSION_MAJOR, ".", SIMGRID_VERSION_MINOR);
}

}  // namespace weir
