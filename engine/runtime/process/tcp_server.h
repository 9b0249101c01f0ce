#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/runtime/process/file_store.h"
#include "engine/runtime/process/socket.h"

namespace zeroproof {

// What the process of rank 0 keeps for all: the keys, and who is here. A thread a connection. The
// connection on which a rank joined is its life: closed without a word, the rank is lost.
class TcpServer {
 public:
  TcpServer(Listener listener, const StoreMember& keeper);
  ~TcpServer();  // whoever still asks finds nobody
  TcpServer(const TcpServer&) = delete;
  TcpServer& operator=(const TcpServer&) = delete;

  int port() const { return listener_.port(); }
  // Until all that came have left or are lost, but no longer than that.
  void wait_for_others(Store::Milliseconds at_most);

 private:
  using Parts = std::vector<std::string>;
  struct Connection {
    explicit Connection(Socket of) : socket(std::move(of)) {}
    Socket socket;
    int rank = -1;  // whose life it is
    std::thread thread;
  };

  void accept_all();
  void serve(Connection& connection);
  Parts answer(Connection& connection, const Parts& request);
  Parts join(Connection& connection, const Parts& request);
  Parts wait(const Parts& request);
  Parts presences();
  void note_end(const Connection& connection);

  Listener listener_;
  StoreMember keeper_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::vector<PeerState> presences_;
  std::list<Connection> connections_;
  std::atomic<bool> is_ending_ = false;
  std::thread acceptor_;
};

}  // namespace zeroproof
