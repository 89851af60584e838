// SPDX-License-Identifier: Apache-2.0
// The only source that includes the HTTP library.
#include "cli/weir/live_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weir::cli {
namespace {

constexpr size_t kMostBodyBytes = size_t{64} << 10;
constexpr int kNumThreads = 8;
// A browser opens connections ahead of its requests; an idle one must not keep
// a thread for long.
constexpr int kReadSeconds = 2;

class HttpServer : public LiveServer {
 public:
  HttpServer(std::string token, LiveHandlers handlers)
      : token_(std::move(token)), handlers_(std::move(handlers)) {}
  ~HttpServer() override { Stop(); }

  absl::Status Start(int port) {
    server_.new_task_queue = [] {
      return new httplib::ThreadPool(kNumThreads);
    };
    server_.set_payload_max_length(kMostBodyBytes);
    server_.set_read_timeout(kReadSeconds);
    server_.set_keep_alive_max_count(1);
    // Other programs must not share the port, which the library's own options
    // would allow.
    server_.set_socket_options([](socket_t socket) {
      const int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    });
    server_.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          AddHeaders(&response);
          if (IsAllowed(request)) {
            return httplib::Server::HandlerResponse::Unhandled;
          }
          response.status = 403;
          response.set_content("403: open the address that weir live printed\n",
                               "text/plain");
          return httplib::Server::HandlerResponse::Handled;
        });
    server_.Get("/", [this](const httplib::Request&, httplib::Response& to) {
      Answer(handlers_.page(), &to);
    });
    server_.Post("/estimate", [this](const httplib::Request& request,
                                     httplib::Response& response) {
      Answer(handlers_.estimate(request.body), &response);
    });
    server_.Post("/report", [this](const httplib::Request& request,
                                   httplib::Response& response) {
      Answer(handlers_.report(request.body), &response);
    });
    if (port == 0) {
      port_ = server_.bind_to_any_port("127.0.0.1");
    } else {
      port_ = server_.bind_to_port("127.0.0.1", port) ? port : -1;
    }
    if (port_ <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("command line: --port is ", port,
                       ", which cannot be listened on, expected a free port"));
    }
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    return absl::OkStatus();
  }

  int port() const override { return port_; }

  void Stop() override {
    if (!thread_.joinable()) return;
    // stop() has no effect before the thread listens.
    for (int i = 0; i < 2000 && !server_.is_running(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    server_.stop();
    thread_.join();
  }

 private:
  static void AddHeaders(httplib::Response* response) {
    response->set_header("Cache-Control", "no-store");
    response->set_header("Content-Security-Policy", "frame-ancestors 'none'");
    response->set_header("Cross-Origin-Resource-Policy", "same-origin");
    response->set_header("Referrer-Policy", "no-referrer");
    response->set_header("X-Content-Type-Options", "nosniff");
    response->set_header("X-Frame-Options", "DENY");
  }

  bool IsAllowed(const httplib::Request& request) const {
    // A name of another site that resolves to this machine is refused, too.
    const std::string host = request.get_header_value("Host");
    if (host != absl::StrCat("127.0.0.1:", port_) &&
        host != absl::StrCat("localhost:", port_)) {
      return false;
    }
    if (request.has_header("Origin") &&
        request.get_header_value("Origin") != "http://" + host) {
      return false;
    }
    return EqualTokens(request.method == "GET"
                           ? request.get_param_value("token")
                           : request.get_header_value("X-Weir-Token"),
                       token_);
  }

  static void Answer(LiveResponse answer, httplib::Response* response) {
    response->status = answer.status;
    response->set_content(std::move(answer.body), answer.content_type.c_str());
  }

  const std::string token_;
  const LiveHandlers handlers_;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LiveServer>> StartLiveServer(
    int port, const std::string& token, LiveHandlers handlers) {
  auto server = std::make_unique<HttpServer>(token, std::move(handlers));
  if (const absl::Status started = server->Start(port); !started.ok()) {
    return started;
  }
  return server;
}

}  // namespace weir::cli
