// SPDX-License-Identifier: Apache-2.0
// Connections to a listener, and this machine's addresses.
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
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "calibrate/fabric/wire.h"

namespace weir::calibrate {
namespace {

void SetOption(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof value);
}

std::string Numeric(const sockaddr* address, socklen_t length) {
  char host[NI_MAXHOST] = "?";
  getnameinfo(address, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return host;
}

// Returns 0, or the error of the connection.
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

// Connecting to a free port of the own ephemeral range may connect to itself.
bool IsItself(int fd) {
  sockaddr_storage own{}, other{};
  socklen_t own_length = sizeof own, other_length = sizeof other;
  getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_length);
  getpeername(fd, reinterpret_cast<sockaddr*>(&other), &other_length);
  return own_length == other_length &&
         std::memcmp(&own, &other, own_length) == 0;
}

}  // namespace

std::unique_ptr<ControlWire> WireOf(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  return std::make_unique<ControlWire>(fd);
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
    std::unique_ptr<ControlWire> wire = WireOf(fd);
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
      // Link-local IPv6 addresses are unusable without an interface.
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
  // IPv4 on a dual-stack socket.
  return std::string(absl::StripPrefix(host, "::ffff:"));
}

}  // namespace weir::calibrate
