#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "zeroproof/model/result.h"

namespace zeroproof {

// What one message may take of this process.
struct ReceiveLimits {
  std::uint64_t bytes = std::uint64_t{1} << 32U;
  std::optional<std::chrono::milliseconds> at_most = {};  // for the whole message; none: no limit
};

// Whether all addresses of the host are of this machine alone. Usage: no such host.
Result<bool> is_loopback(const std::string& host);

// One end of a TCP connection that carries whole messages. One thread sends and receives; another
// may shut it down.
class Socket {
 public:
  explicit Socket(int descriptor);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  // False: the other end is gone, reads no byte for half a minute, or this end was shut down.
  bool send(std::string_view message);
  // Memory is taken as bytes come, whatever length they announce. None: the other end is gone, is
  // late, announces more than the limit, or this end was shut down.
  std::optional<std::string> receive(const ReceiveLimits& limits = {});
  void shut_down();  // a receive() that waits gets none

 private:
  int descriptor_;
};

// Tries until somebody listens there, and resolves the name each time. Usage: no such host; failed:
// no process did within that time.
Result<Socket> connect_to(const std::string& host, int port, std::chrono::milliseconds at_most);

class Listener {
 public:
  // A port on every address of the machine, or where `host` is its loopback on that alone. Port 0:
  // any free one. Callers are refused until listen(). Usage: the port is taken.
  static Result<Listener> bind(const std::string& host, int port);
  Result<void> listen();
  static Result<Listener> open(const std::string& host, int port);  // both
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int port() const;
  // Waits. None: shut down, no caller, or this process has no descriptor left; in the last
  // case it returns after a pause.
  std::optional<Socket> accept();
  void shut_down();

 private:
  explicit Listener(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace zeroproof
