// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/server.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/text.h"

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;

class Server {
 public:
  Server(int in_fd, int out_fd, const ServerHandlers& handlers,
         const ServerLimits& limits)
      : in_fd_(in_fd),
        out_fd_(out_fd),
        handlers_(handlers),
        limits_(limits),
        lines_(limits.most_message_bytes) {
    for (int i = 0; i <= limits.num_runs; ++i) {
      lanes_.push_back(std::make_unique<Lane>(handlers.work, i == 0));
    }
  }

  absl::Status Run() {
    while (status_.ok() && !exits_ && (!in_ended_ || IsBusy())) {
      Dispatch();
      if (!status_.ok() || (in_ended_ && !IsBusy())) break;
      WaitForWork();
    }
    return status_;
  }

 private:
  // NOLINTNEXTLINE(bugprone-exception-escape): moving a Json throws nothing
  struct Waiting {
    Json id;
    ServedCall call = {};
    bool is_notification = false;
  };

  // A process and the request that it runs.
  struct Lane {
    Lane(const WorkerProcess::Work& work, bool estimates)
        : process(work), is_for_estimates(estimates) {}
    WorkerProcess process;
    bool is_for_estimates;
    Waiting request;
  };

  bool IsBusy() const {
    return !waiting_.empty() ||
           std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) {
             return lane->process.is_busy();
           });
  }

  void Send(const Json& message) {
    if (!status_.ok() || WriteAll(out_fd_, DumpJson(message) + "\n")) return;
    status_ = absl::InvalidArgumentError(absl::StrCat(
        "standard output: cannot be written: ", std::strerror(errno)));
  }

  // A notification has no response, whatever becomes of it.
  void Respond(const Waiting& request, const Json& response) {
    if (!request.is_notification) Send(response);
  }

  void WaitForWork() {
    // The first is asked only for errors: it tells whether somebody reads.
    std::vector<pollfd> files = {{out_fd_, 0, 0}};
    if (!in_ended_) files.push_back({in_fd_, POLLIN, 0});
    std::vector<Lane*> busy;
    for (const auto& lane : lanes_) {
      if (!lane->process.is_busy()) continue;
      busy.push_back(lane.get());
      files.push_back({lane->process.fd(), POLLIN, 0});
    }
    if (poll(files.data(), files.size(), -1) < 0) return;  // a signal
    if (files[0].revents != 0) {
      status_ = absl::InvalidArgumentError(
          "standard output: is closed, expected a reader of the responses");
      return;
    }
    const size_t first = in_ended_ ? 1 : 2;
    // Before new messages, since these may start other calls.
    for (size_t i = 0; i < busy.size(); ++i) {
      if (files[first + i].revents != 0) Receive(busy[i]);
    }
    if (first == 2 && files[1].revents != 0) Read();
  }

  void Read() {
    char buffer[1 << 16];
    const ssize_t count = read(in_fd_, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) return;
    if (count <= 0) {
      in_ended_ = true;
      lines_.End();
    } else {
      lines_.Add({buffer, static_cast<size_t>(count)});
    }
    while (!exits_) {
      const std::optional<LineReader::Line> line = lines_.Next();
      if (!line.has_value()) return;
      if (line->is_too_long) {
        Send(RpcError(nullptr, kRpcInvalidRequest,
                      absl::StrCat("message: is longer than ",
                                   limits_.most_message_bytes, " bytes")));
      } else {
        Handle(line->text);
      }
    }
  }

  void Handle(const std::string& text) {
    auto parsed = ParseRpc(text);
    if (const Json* refused = std::get_if<Json>(&parsed)) {
      Send(*refused);
      return;
    }
    const RpcRequest& request = std::get<RpcRequest>(parsed);
    if (request.method == "exit") {
      exits_ = true;
      CancelAll();
    } else if (request.method == "$/cancelRequest") {
      const Json id = request.params.value("id", Json());
      if (Cancel(id)) SendCancelled(id);
    } else if (request.method == "notifications/cancelled") {
      Cancel(request.params.value("requestId", Json()));
    } else {
      Accept(request);
    }
  }

  void Accept(const RpcRequest& request) {
    Waiting waiting{.id = request.id.value_or(nullptr),
                    .is_notification = !request.id.has_value()};
    if (!waiting.is_notification && IsInUse(waiting.id)) {
      Send(RpcError(waiting.id, kRpcInvalidRequest,
                    absl::StrCat("message: id is ", DumpJson(waiting.id),
                                 ", which is in use by a request that has no "
                                 "response yet; expected another id")));
      return;
    }
    if (const std::optional<Json> answer = handlers_.answer(request)) {
      Respond(waiting, *answer);
      return;
    }
    auto prepared = handlers_.prepare(request);
    if (const Json* refused = std::get_if<Json>(&prepared)) {
      Respond(waiting, *refused);
      return;
    }
    // Nobody would receive its result.
    if (waiting.is_notification) return;
    if (waiting_.size() >= limits_.most_waiting) {
      Send(RpcError(waiting.id, kRpcBusy,
                    absl::StrCat(limits_.most_waiting,
                                 " requests are waiting, expected fewer")));
      return;
    }
    waiting.call = std::get<ServedCall>(std::move(prepared));
    waiting_.push_back(std::move(waiting));
    Dispatch();
  }

  bool IsInUse(const Json& id) const {
    if (id.is_null()) return false;
    const auto has_id = [&](const Waiting& other) { return other.id == id; };
    return std::any_of(waiting_.begin(), waiting_.end(), has_id) ||
           std::any_of(lanes_.begin(), lanes_.end(), [&](const auto& lane) {
             return lane->process.is_busy() && has_id(lane->request);
           });
  }

  void Dispatch() {
    for (auto request = waiting_.begin(); request != waiting_.end();) {
      Lane* lane = FreeLane(request->call.is_estimate);
      if (lane == nullptr) {
        ++request;
        continue;
      }
      Waiting next = std::move(*request);
      request = waiting_.erase(request);
      const absl::Status started = lane->process.Start(next.call.call);
      if (!started.ok()) {
        Respond(next, RpcError(next.id, kRpcInternalError, started.message()));
        continue;
      }
      lane->request = std::move(next);
    }
  }

  Lane* FreeLane(bool is_estimate) {
    for (const auto& lane : lanes_) {
      if (lane->is_for_estimates == is_estimate && !lane->process.is_busy()) {
        return lane.get();
      }
    }
    return nullptr;
  }

  void Receive(Lane* lane) {
    const absl::Status received = lane->process.Receive(
        [&](const std::string& text) { Report(lane->request, text); },
        [&](const std::string& text) { Finish(lane->request, text); });
    if (received.ok()) return;
    Respond(lane->request,
            RpcError(lane->request.id, kRpcInternalError, received.message()));
  }

  void Report(const Waiting& request, const std::string& text) {
    const Json progress = Json::parse(text, nullptr, false);
    if (request.call.progress_method.empty() || !progress.is_object()) return;
    Json params = request.call.progress_params;
    params.update(progress);
    Send(RpcNotification(request.call.progress_method, std::move(params)));
  }

  void Finish(const Waiting& request, const std::string& text) {
    Json answer = Json::parse(text, nullptr, false);
    if (!answer.is_object()) {
      Respond(request, RpcError(request.id, kRpcInternalError,
                                "the worker returned no JSON"));
      return;
    }
    Json response = {{"jsonrpc", "2.0"}, {"id", request.id}};
    response.update(answer);
    Respond(request, response);
  }

  // Returns false for a request that has ended or never was.
  bool Cancel(const Json& id) {
    if (id.is_null()) return false;
    for (auto request = waiting_.begin(); request != waiting_.end();
         ++request) {
      if (request->id != id) continue;
      waiting_.erase(request);
      return true;
    }
    for (const auto& lane : lanes_) {
      if (!lane->process.is_busy() || lane->request.id != id) continue;
      lane->process.Kill();
      return true;
    }
    return false;
  }

  void CancelAll() {
    for (const auto& lane : lanes_) {
      if (!lane->process.is_busy()) continue;
      lane->process.Kill();
      SendCancelled(lane->request.id);
    }
    for (const Waiting& request : waiting_) SendCancelled(request.id);
    waiting_.clear();
  }

  void SendCancelled(const Json& id) {
    Send(RpcError(id, kRpcCancelled, "cancelled"));
  }

  int in_fd_, out_fd_;
  const ServerHandlers& handlers_;
  ServerLimits limits_;
  LineReader lines_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::deque<Waiting> waiting_;
  absl::Status status_;
  bool in_ended_ = false;
  bool exits_ = false;
};

}  // namespace

absl::Status Serve(int in_fd, int out_fd, const ServerHandlers& handlers,
                   const ServerLimits& limits) {
  signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c)
  return Server(in_fd, out_fd, handlers, limits).Run();
}

}  // namespace weir::cli
