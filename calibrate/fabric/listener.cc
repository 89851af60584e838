// SPDX-License-Identifier: Apache-2.0
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "calibrate/fabric/wire.h"

namespace weir::calibrate {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  int family() const { return storage.ss_family; }
  void set_port(int port) {
    if (family() == AF_INET6) {
      reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = htons(port);
    } else {
      reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
    }
  }
  bool is_loopback() const {
    if (family() == AF_INET6) {
      return IN6_IS_ADDR_LOOPBACK(
          &reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
    }
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
    return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  friend bool operator==(const Address& a, const Address& b) {
    return a.length == b.length &&
           std::memcmp(&a.storage, &b.storage, a.length) == 0;
  }
};

Address AnyAddress(int family) {
  Address any;
  any.storage.ss_family = family;
  any.length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return any;  // zeros are the wildcard of both families
}

std::vector<Address> Resolve(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return {};
  std::vector<Address> addresses;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    Address address;
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    address.length = at->ai_addrlen;
    addresses.push_back(address);
  }
  freeaddrinfo(found);
  return addresses;
}

std::vector<Address> AddressesOf(const std::vector<std::string>& hosts,
                                 bool all_local) {
  std::vector<Address> addresses;
  for (const std::string& host : hosts) {
    std::vector<Address> found = Resolve(host, AI_NUMERICHOST);
    const bool literal = !found.empty() || host == "localhost";
    if (found.empty()) found = Resolve(host, 0);
    // A container may have no /etc/hosts. That must not make rank 0 listen at
    // all addresses.
    if (found.empty() && host == "localhost") {
      found = Resolve("127.0.0.1", AI_NUMERICHOST);
    }
    for (const Address& address : found) {
      if (address.is_loopback() && !literal && !all_local) continue;
      if (std::find(addresses.begin(), addresses.end(), address) ==
          addresses.end()) {
        addresses.push_back(address);
      }
    }
  }
  return addresses;
}

// Binds and listens; returns -1 and sets errno on failure.
int ListenAt(const Address& address) {
  const int fd =
      socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int on = 1, off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AF_INET6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address.storage),
           address.length) == 0 &&
      listen(fd, SOMAXCONN) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

void CloseAll(const std::vector<int>& fds) {
  for (const int fd : fds) close(fd);
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

// Listens at those of `addresses` that belong to this machine, all on one port.
// Returns an empty list if there are none; sets errno to EADDRINUSE if the port
// is taken at one of them.
std::vector<int> ListenOn(std::vector<Address> addresses, int port) {
  std::vector<int> fds;
  for (Address& address : addresses) {
    address.set_port(port);
    const int fd = ListenAt(address);
    if (fd >= 0) {
      fds.push_back(fd);
      if (port == 0) port = PortOf(fd);
    } else if (errno == EADDRINUSE) {
      CloseAll(fds);
      errno = EADDRINUSE;
      return {};
    }
  }
  return fds;
}

std::vector<int> ListenAnywhere(int port) {
  std::vector<int> fds = ListenOn({AnyAddress(AF_INET6)}, port);
  if (!fds.empty() || errno == EADDRINUSE) return fds;
  return ListenOn({AnyAddress(AF_INET)}, port);  // a machine without IPv6
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Open(
    const std::vector<std::string>& hosts, const std::vector<int>& ports,
    bool all_local) {
  const std::vector<Address> addresses = AddressesOf(hosts, all_local);
  for (const int port : ports) {
    errno = 0;
    std::vector<int> fds = ListenOn(addresses, port);
    if (fds.empty() && errno != EADDRINUSE) fds = ListenAnywhere(port);
    if (fds.empty()) continue;
    const int chosen = PortOf(fds.front());
    return std::unique_ptr<Listener>(new Listener(std::move(fds), chosen));
  }
  return absl::UnavailableError(absl::StrCat(
      "cannot listen on any port of ", absl::StrJoin(ports, ", "), ": ",
      std::strerror(errno), "; expected a free one (MASTER_PORT chooses)"));
}

Listener::~Listener() { CloseAll(fds_); }

absl::StatusOr<std::unique_ptr<ControlWire>> Listener::Accept() {
  for (const int listening : fds_) {
    const int fd = accept(listening, nullptr, nullptr);
    if (fd >= 0) return WireOf(fd);
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
        errno == ENOMEM) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot accept a connection: ", std::strerror(errno)));
    }
  }
  return std::unique_ptr<ControlWire>();
}

}  // namespace weir::calibrate
