#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/runtime/process/store_token.h"
#include "engine/runtime/process/tcp_server.h"

namespace zeroproof {

struct TcpPlace {
  std::string host;
  int port = 0;  // of rank 0: 0 takes any free one; see TcpStore::port()
  StoreToken token = {};
};

// A store that the process of rank 0 keeps in its memory and the others ask over TCP. It serves
// those that know its token. Messages are not encrypted: for the network of a cluster.
class TcpStore final : public Store {
 public:
  // Rank 0 listens, the others connect. Usage: the address, port or token cannot be used; failed:
  // rank 0 did not listen within that time, or keeps another job's store.
  static Result<std::unique_ptr<TcpStore>> open(const TcpPlace& place, const StoreMember& member,
                                                Milliseconds at_most,
                                                const StoreLimits& limits = {});
  ~TcpStore() override;

  void set(const std::string& key, std::string_view value) override;
  std::optional<std::string> wait(const std::string& key, Milliseconds at_most) override;
  void remove(const std::string& key) override;
  std::vector<PeerState> presences() override;
  void leave(Milliseconds at_most) override;
  std::string place() const override;
  int port() const { return place_.port; }
  std::size_t connections() const { return server_ ? server_->connections() : 0; }

  TcpStore(TcpPlace place, const StoreMember& member, std::unique_ptr<TcpServer> server);

 private:
  using Parts = std::vector<std::string>;

  Result<void> join(Milliseconds at_most);
  Parts ask(const Parts& request);
  std::optional<Parts> ask_on(Socket& socket, const Parts& request) const;
  Socket idle_connection();
  struct Greeting {
    Socket socket;
    std::optional<Parts> answer;  // to the token; none: the other end hung up
  };
  Result<Greeting> greet(Milliseconds at_most) const;
  [[noreturn]] void lose() const;
  [[noreturn]] void refuse(const Parts& answer) const;

  TcpPlace place_;
  StoreMember member_;
  std::unique_ptr<TcpServer> server_;  // of rank 0
  std::mutex mutex_;
  std::vector<Socket> idle_;
  std::unique_ptr<Socket> life_;  // open as long as this process is a member
  bool has_left_ = false;
};

}  // namespace zeroproof
