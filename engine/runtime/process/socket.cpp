#include "engine/runtime/process/socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "engine/runtime/process/byte_strings.h"

namespace zeroproof {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;
using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

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
  const timeval patience{.tv_sec = 30, .tv_usec = 0};
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

// When somebody's patience is over, if it ever is.
class Deadline {
 public:
  explicit Deadline(std::optional<Milliseconds> at_most) {
    if (at_most) end_ = Clock::now() + *at_most;
  }
  // As poll() takes it: -1 without a limit.
  int left_ms() const {
    constexpr Milliseconds kLongest{1'000'000'000};
    if (!end_) return -1;
    const auto left = std::chrono::ceil<Milliseconds>(*end_ - Clock::now());
    return static_cast<int>(std::clamp(left, Milliseconds{0}, kLongest).count());
  }

 private:
  std::optional<Clock::time_point> end_;
};

// False: not within the time.
bool is_ready(int descriptor, short events, int at_most_ms) {
  pollfd of{.fd = descriptor, .events = events, .revents = 0};
  int ready = -1;
  do ready = ::poll(&of, 1, at_most_ms);
  while (ready < 0 && errno == EINTR);
  return ready > 0;
}

// False: the end, an error or the deadline.
bool receive_bytes(int descriptor, char* to, std::size_t count, const Deadline& deadline) {
  while (count > 0) {
    if (!is_ready(descriptor, POLLIN, deadline.left_ms())) return false;
    const ssize_t got = ::recv(descriptor, to, count, 0);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    if (got < 0) continue;
    to += got;
    count -= static_cast<std::size_t>(got);
  }
  return true;
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

// The socket with its address; -1 with errno: another has the address, and the socket is closed.
int bound(int descriptor, const sockaddr* address, socklen_t length) {
  set_option(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(descriptor, address, length) == 0) return descriptor;
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return -1;
}

// Takes connections of both families, where the machine has both.
int bind_everywhere(int port) {
  int descriptor = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor >= 0) {
    set_option(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    sockaddr_in6 any = {};
    any.sin6_family = AF_INET6;
    any.sin6_addr = in6addr_any;
    any.sin6_port = htons(static_cast<std::uint16_t>(port));
    descriptor = bound(descriptor, reinterpret_cast<sockaddr*>(&any), sizeof any);
    if (descriptor >= 0 || errno == EADDRINUSE) return descriptor;
  }
  descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  any.sin_port = htons(static_cast<std::uint16_t>(port));
  return bound(descriptor, reinterpret_cast<sockaddr*>(&any), sizeof any);
}

int bind_to(const addrinfo& address) {
  return bound(open_socket(address), address.ai_addr, address.ai_addrlen);
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

std::optional<std::string> Socket::receive(const ReceiveLimits& limits) {
  constexpr std::uint64_t kFirstBytes = std::uint64_t{1} << 16U;
  const Deadline deadline(limits.at_most);
  char header[kLengthBytes];
  if (!receive_bytes(descriptor_, header, kLengthBytes, deadline)) return std::nullopt;
  const std::uint64_t length = length_at({header, kLengthBytes});
  if (length > limits.bytes) return std::nullopt;
  std::string message;
  while (message.size() < length) {
    const std::uint64_t have = message.size();
    message.resize(std::min(length, std::max(kFirstBytes, 2 * have)));
    if (!receive_bytes(descriptor_, message.data() + have, message.size() - have, deadline))
      return std::nullopt;
  }
  return message;
}

void Socket::shut_down() {
  ::shutdown(descriptor_, SHUT_RDWR);
}

namespace {

// errno says why there is none: ETIMEDOUT where no answer came within the time.
std::optional<Socket> connect_once(const addrinfo& address, int at_most_ms) {
  const int descriptor = open_socket(address);
  if (descriptor < 0) return std::nullopt;
  const int flags = ::fcntl(descriptor, F_GETFL);
  ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
  int error = ::connect(descriptor, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    socklen_t size = sizeof error;
    if (!is_ready(descriptor, POLLOUT, at_most_ms))
      error = ETIMEDOUT;
    else if (::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
      error = errno;
  }
  ::fcntl(descriptor, F_SETFL, flags);
  if (error == 0) return Socket(descriptor);
  ::close(descriptor);
  errno = error;
  return std::nullopt;
}

}  // namespace

Result<bool> is_loopback(const std::string& host) {
  const auto addresses = resolve(host, 0);
  if (!addresses) return tl::unexpected(addresses.error());
  for (const addrinfo* at = addresses->get(); at != nullptr; at = at->ai_next)
    if (!is_loopback(*at)) return false;
  return true;
}

// No address may use up the time of the others, and each gets some.
Result<Socket> connect_to(const std::string& host, int port, std::chrono::milliseconds at_most) {
  constexpr Milliseconds kPause{20};
  constexpr int kShortestTryMs = 50;
  constexpr int kLongestTryMs = 5'000;
  const Deadline deadline(at_most);
  for (;;) {
    int error = 0;
    const auto addresses = resolve(host, port);
    const addrinfo* at = addresses ? addresses->get() : nullptr;
    for (; at != nullptr; at = at->ai_next) {
      if (auto socket =
              connect_once(*at, std::clamp(deadline.left_ms(), kShortestTryMs, kLongestTryMs)))
        return std::move(*socket);
      error = errno;
    }
    if (deadline.left_ms() > 0) {
      std::this_thread::sleep_for(kPause);
      continue;
    }
    if (!addresses) return tl::unexpected(addresses.error());
    return fail(ErrorCode::failed,
                fmt::format("no process listens at {}:{} ({})", host, port, std::strerror(error)));
  }
}

namespace {

Error cannot_listen(int port) {
  return {ErrorCode::usage,
          fmt::format("rank 0 cannot listen on port {}: {}: give another MASTER_PORT", port,
                      std::strerror(errno))};
}

}  // namespace

Result<Listener> Listener::bind(const std::string& host, int port) {
  const auto addresses = resolve(host, port);
  if (!addresses) return tl::unexpected(addresses.error());
  const addrinfo& first = **addresses;
  const int descriptor = is_loopback(first) ? bind_to(first) : bind_everywhere(port);
  if (descriptor < 0) return tl::unexpected(cannot_listen(port));
  return Listener(descriptor);
}

Result<void> Listener::listen() {
  if (::listen(descriptor_, kBacklog) == 0) return {};
  return tl::unexpected(cannot_listen(port()));
}

Result<Listener> Listener::open(const std::string& host, int port) {
  auto bound = bind(host, port);
  if (!bound) return bound;
  if (auto listens = bound->listen(); !listens) return tl::unexpected(listens.error());
  return bound;
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
  constexpr Milliseconds kPause{50};
  const int descriptor = ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
  if (descriptor >= 0) return Socket(descriptor);
  const bool is_short = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
  if (is_short) std::this_thread::sleep_for(kPause);  // the caller still waits to be accepted
  return std::nullopt;
}

}  // namespace zeroproof
