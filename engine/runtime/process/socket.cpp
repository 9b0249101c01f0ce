#include "engine/runtime/process/socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "engine/runtime/process/byte_strings.h"

namespace zeroproof {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

constexpr std::uint64_t kLongestMessage = 1ULL << 32;
constexpr int kBacklog = 256;

void set_option(int descriptor, int level, int option, int value) {
  ::setsockopt(descriptor, level, option, &value, sizeof value);
}

// Of a machine that vanishes the other end hears within half a minute.
void tune(int descriptor) {
  constexpr int kIdleSeconds = 10;
  constexpr int kIntervalSeconds = 5;
  constexpr int kProbes = 4;
  set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, kIntervalSeconds);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

Result<Addresses> resolve(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error == 0) return Addresses(found, &::freeaddrinfo);
  return fail(ErrorCode::usage, fmt::format("the address '{}' of rank 0 (MASTER_ADDR): {}", host,
                                            ::gai_strerror(error)));
}

int open_socket(const addrinfo& address) {
  return ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol);
}

bool is_loopback(const addrinfo& address) {
  if (address.ai_family == AF_INET) {
    constexpr std::uint32_t kLoopbackNet = 127;
    const auto* of = reinterpret_cast<const sockaddr_in*>(address.ai_addr);
    return ntohl(of->sin_addr.s_addr) >> 24U == kLoopbackNet;
  }
  if (address.ai_family != AF_INET6) return false;
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address.ai_addr)->sin6_addr);
}

// Takes connections of both families, where the machine has both.
int listen_everywhere(int port) {
  int descriptor = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor >= 0) {
    set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
    set_option(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    sockaddr_in6 any = {};
    any.sin6_family = AF_INET6;
    any.sin6_addr = in6addr_any;
    any.sin6_port = htons(static_cast<std::uint16_t>(port));
    if (::bind(descriptor, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 ||
        errno == EADDRINUSE)
      return descriptor;
    ::close(descriptor);
  }
  descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  any.sin_port = htons(static_cast<std::uint16_t>(port));
  ::bind(descriptor, reinterpret_cast<sockaddr*>(&any), sizeof any);
  return descriptor;
}

int listen_at(const addrinfo& address) {
  const int descriptor = open_socket(address);
  set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
  ::bind(descriptor, address.ai_addr, address.ai_addrlen);
  return descriptor;
}

}  // namespace

Socket::Socket(int descriptor) : descriptor_(descriptor) {
  tune(descriptor);
}

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Socket::set_receive_timeout(std::chrono::seconds at_most) {
  const timeval patience{.tv_sec = at_most.count(), .tv_usec = 0};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

bool Socket::send(std::string_view message) {
  const std::string framed = pack({std::string(message)});
  std::string_view rest = framed;
  while (!rest.empty()) {
    const ssize_t sent = ::send(descriptor_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    if (sent > 0) rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::optional<std::string> Socket::receive() {
  char header[kLengthBytes];
  if (!receive_bytes(header, kLengthBytes)) return std::nullopt;
  const std::uint64_t length = length_at({header, kLengthBytes});
  if (length > kLongestMessage) return std::nullopt;
  std::string message(length, '\0');
  if (!receive_bytes(message.data(), message.size())) return std::nullopt;
  return message;
}

bool Socket::receive_bytes(char* to, std::size_t count) {
  while (count > 0) {
    const ssize_t got = ::recv(descriptor_, to, count, 0);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    if (got < 0) continue;
    to += got;
    count -= static_cast<std::size_t>(got);
  }
  return true;
}

void Socket::shut_down() {
  ::shutdown(descriptor_, SHUT_RDWR);
}

Result<Socket> connect_to(const std::string& host, int port, std::chrono::milliseconds at_most) {
  constexpr std::chrono::milliseconds kPause{20};
  const auto addresses = resolve(host, port);
  if (!addresses) return tl::unexpected(addresses.error());
  const auto end = std::chrono::steady_clock::now() + at_most;
  for (;;) {
    int error = 0;
    for (const addrinfo* at = addresses->get(); at != nullptr; at = at->ai_next) {
      const int descriptor = open_socket(*at);
      if (descriptor >= 0 && ::connect(descriptor, at->ai_addr, at->ai_addrlen) == 0)
        return Socket(descriptor);
      error = errno;
      if (descriptor >= 0) ::close(descriptor);
    }
    if (std::chrono::steady_clock::now() >= end)
      return fail(ErrorCode::failed,
                  fmt::format("nobody listens at {}:{} ({})", host, port, std::strerror(error)));
    std::this_thread::sleep_for(kPause);
  }
}

Result<Listener> Listener::open(const std::string& host, int port) {
  const auto addresses = resolve(host, port);
  if (!addresses) return tl::unexpected(addresses.error());
  const addrinfo& first = **addresses;
  Listener listener(is_loopback(first) ? listen_at(first) : listen_everywhere(port));
  const bool listens =
      (port == 0 || listener.port() == port) && ::listen(listener.descriptor_, kBacklog) == 0;
  if (listens) return listener;
  return fail(ErrorCode::usage,
              fmt::format("rank 0 cannot listen on port {}: {}: give another MASTER_PORT", port,
                          std::strerror(errno == 0 ? EADDRINUSE : errno)));
}

Listener::Listener(Listener&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Listener::~Listener() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

int Listener::port() const {
  sockaddr_storage bound = {};
  socklen_t length = sizeof bound;
  if (::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&bound), &length) != 0) return 0;
  const bool is_v6 = bound.ss_family == AF_INET6;
  return ntohs(is_v6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                     : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

void Listener::shut_down() {
  ::shutdown(descriptor_, SHUT_RDWR);
}

std::optional<Socket> Listener::accept() {
  const int descriptor = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  return Socket(descriptor);
}

}  // namespace zeroproof
