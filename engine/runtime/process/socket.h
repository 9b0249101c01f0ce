#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "zeroproof/model/result.h"

namespace zeroproof {

// One end of a TCP connection that carries whole messages. One thread sends and receives; another
// may shut it down.
class Socket {
 public:
  explicit Socket(int descriptor);
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  // How long receive() waits; for ever, if nobody says.
  void set_receive_timeout(std::chrono::seconds at_most);
  // False, or none: the other end is gone or says nothing, or it was shut down.
  bool send(std::string_view message);
  std::optional<std::string> receive();
  void shut_down();  // whoever waits in receive() gets none

 private:
  bool receive_bytes(char* to, std::size_t count);

  int descriptor_;
};

// Tries until somebody listens there. Usage: no such host; failed: nobody did within that time.
Result<Socket> connect_to(const std::string& host, int port, std::chrono::milliseconds at_most);

class Listener {
 public:
  // On every address of the machine, or where `host` is its loopback on that alone. Port 0: any
  // free one. Usage: the port is taken.
  static Result<Listener> open(const std::string& host, int port);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int port() const;
  std::optional<Socket> accept();  // waits; none: shut down, or nobody after all
  void shut_down();

 private:
  explicit Listener(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace zeroproof
