// SPDX-License-Identifier: Apache-2.0
// Making connections, and this machine's addresses.
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "calibrate/network/wire.h"

namespace weir {
namespace {

void SetOption(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof value);
}

// A connection's descriptor as ControlWire wants it.
int Tuned(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  return fd;
}

std::string Numeric(const sockaddr* address, socklen_t length) {
  char host[NI_MAXHOST] = "?";
  getnameinfo(address, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return host;
}

// Binds and listens; -1 and errno where it cannot.
int ListenAt(int family, const sockaddr* address, socklen_t length) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  SetOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (family == AF_INET6) SetOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(fd, address, length) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int ListenOn(int port, bool local_only) {
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_addr = in6addr_any;
  any.sin6_port = htons(port);
  if (!local_only) {
    const int fd =
        ListenAt(AF_INET6, reinterpret_cast<sockaddr*>(&any), sizeof any);
    if (fd >= 0 || errno == EADDRINUSE) return fd;
  }
  sockaddr_in old{};
  old.sin_family = AF_INET;
  old.sin_addr.s_addr = htonl(local_only ? INADDR_LOOPBACK : INADDR_ANY);
  old.sin_port = htons(port);
  return ListenAt(AF_INET, reinterpret_cast<sockaddr*>(&old), sizeof old);
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

// 0, or the error of the connection.
int ConnectTo(int fd, const addrinfo& address, absl::Time deadline) {
  if (connect(fd, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd waiting{fd, POLLOUT, 0};
  const double seconds = absl::ToDoubleSeconds(deadline - absl::Now());
  if (seconds <= 0 ||
      poll(&waiting, 1, static_cast<int>(seconds * 1000) + 1) <= 0) {
    return ETIMEDOUT;
  }
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

// Connecting to a free port of one's own ephemeral range may meet oneself.
bool IsItself(int fd) {
  sockaddr_storage own{}, other{};
  socklen_t own_length = sizeof own, other_length = sizeof other;
  getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_length);
  getpeername(fd, reinterpret_cast<sockaddr*>(&other), &other_length);
  return own_length == other_length &&
         std::memcmp(&own, &other, own_length) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Open(
    const std::vector<int>& ports, bool local_only) {
  for (const int port : ports) {
    const int fd = ListenOn(port, local_only);
    if (fd >= 0) {
      return std::unique_ptr<Listener>(new Listener(fd, PortOf(fd)));
    }
  }
  return absl::UnavailableError(absl::StrCat(
      "cannot listen on any port of ", absl::StrJoin(ports, ", "), ": ",
      std::strerror(errno), "; expected a free one (MASTER_PORT chooses)"));
}

Listener::~Listener() { close(fd_); }

std::unique_ptr<ControlWire> Listener::Accept() {
  const int fd = accept(fd_, nullptr, nullptr);
  return fd < 0 ? nullptr : std::make_unique<ControlWire>(Tuned(fd));
}

absl::StatusOr<std::unique_ptr<ControlWire>> Connect(const std::string& host,
                                                     int port,
                                                     absl::Time deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed =
      getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (failed != 0) {
    return absl::UnavailableError(
        absl::StrCat(host, ": ", gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found,
                                                                 freeaddrinfo);
  int error = EHOSTUNREACH;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    auto wire = std::make_unique<ControlWire>(Tuned(fd));
    error = ConnectTo(fd, *at, deadline);
    if (error == 0 && !IsItself(fd)) return wire;
    if (error == 0) error = ECONNREFUSED;
  }
  return absl::UnavailableError(
      absl::StrCat(host, ":", port, ": ", std::strerror(error)));
}

std::vector<std::string> OwnAddresses() {
  std::vector<std::string> addresses;
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) == 0) {
    for (const ifaddrs* at = found; at != nullptr; at = at->ifa_next) {
      if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_LOOPBACK) ||
          !(at->ifa_flags & IFF_UP)) {
        continue;
      }
      // Link-local IPv6 addresses mean nothing without an interface.
      const bool v6 = at->ifa_addr->sa_family == AF_INET6;
      if (v6 &&
          IN6_IS_ADDR_LINKLOCAL(
              &reinterpret_cast<sockaddr_in6*>(at->ifa_addr)->sin6_addr)) {
        continue;
      }
      if (v6 || at->ifa_addr->sa_family == AF_INET) {
        addresses.push_back(Numeric(
            at->ifa_addr, v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in)));
      }
    }
    freeifaddrs(found);
  }
  addresses.push_back(HostName());
  return addresses;
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string PeerOf(const ControlWire& wire) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getpeername(wire.fd(), reinterpret_cast<sockaddr*>(&address), &length);
  const std::string host =
      Numeric(reinterpret_cast<sockaddr*>(&address), length);
  // IPv4 on a socket for both.
  return std::string(absl::StripPrefix(host, "::ffff:"));
}

}  // namespace weir
