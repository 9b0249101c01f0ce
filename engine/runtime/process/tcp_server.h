#pragma once

#include <atomic>
#include <list>
#include <string>
#include <thread>

#include "engine/runtime/process/socket.h"
#include "engine/runtime/process/store_keeper.h"

namespace zeroproof {

// What callers may take from the process of rank 0 before they have said the token.
struct StoreLimits {
  std::chrono::milliseconds hello{10'000};  // for the first message
  std::uint64_t hello_bytes = 4096;
  std::size_t unknown_callers = 64;  // at a time; the oldest makes room for the next
  std::size_t callers_a_rank = 64;   // that have said the token
};

// Serves the store of a job, a thread a connection. The connection on which a rank joined is its
// life: closed without a word, the rank is lost.
class TcpServer {
 public:
  TcpServer(Listener listener, const StoreMember& member, std::string token,
            const StoreLimits& limits = {});
  ~TcpServer();  // later callers find no server
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;

  int port() const { return listener_.port(); }
  void wait_for_others(Store::Milliseconds at_most) { keeper_.wait_for_others(at_most); }
  std::size_t connections() const { return open_; }  // that are served

 private:
  enum class Standing { unknown, known, dropped, ended };
  struct Connection {
    explicit Connection(Socket of) : socket(std::move(of)) {}
    Socket socket;
    std::atomic<Standing> standing = Standing::unknown;
    std::thread thread;
  };
  using Connections = std::list<Connection>;

  void accept_all();
  void forget_ended();
  void make_room();
  Connections::iterator end(Connections::iterator at);  // the next one
  void start(Socket socket);
  void serve(Connection& connection);
  void talk(Connection& connection, StoreKeeper::Caller& caller);
  std::size_t count(Standing standing) const;

  Listener listener_;
  StoreLimits limits_;
  std::size_t known_max_;
  StoreKeeper keeper_;
  Connections connections_;  // of the acceptor's thread, and after its end
  std::atomic<std::size_t> open_ = 0;
  std::atomic<std::size_t> known_ = 0;
  std::atomic<bool> is_ending_ = false;
  std::thread acceptor_;
};

}  // namespace zeroproof
