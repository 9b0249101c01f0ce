#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/runtime/process/tcp_server.h"

namespace zeroproof {

// A store that the process of rank 0 keeps in its memory and the others ask over TCP. Nothing is
// encrypted and nobody has to say who he is: for the network of a cluster, as torchrun's own.
class TcpStore final : public Store {
 public:
  // Rank 0 listens (port 0: anywhere; see port()), the others connect. Usage: the address or port
  // cannot be used; failed: rank 0 did not listen within that time, or keeps another job's store.
  static Result<std::unique_ptr<TcpStore>> open(const std::string& host, int port,
                                                const StoreMember& member, Milliseconds at_most);
  ~TcpStore() override;

  void set(const std::string& key, std::string_view value) override;
  std::optional<std::string> wait(const std::string& key, Milliseconds at_most) override;
  void remove(const std::string& key) override;
  std::vector<PeerState> presences() override;
  void leave(Milliseconds at_most) override;
  std::string place() const override;
  int port() const { return port_; }

  TcpStore(std::string host, int port, const StoreMember& member,
           std::unique_ptr<TcpServer> server);

 private:
  using Parts = std::vector<std::string>;

  Result<void> join(Milliseconds at_most);
  Parts ask(const Parts& request);
  std::optional<Parts> ask_on(Socket& socket, const Parts& request);
  Socket idle_connection();
  [[noreturn]] void lose() const;

  std::string host_;
  int port_;
  StoreMember member_;
  std::unique_ptr<TcpServer> server_;  // of rank 0
  std::mutex mutex_;
  std::vector<Socket> idle_;
  std::unique_ptr<Socket> life_;  // open as long as this process is a member
  bool has_left_ = false;
};

}  // namespace zeroproof
