#include "engine/runtime/process/tcp_server.h"

#include <algorithm>

#include "engine/runtime/process/byte_strings.h"

namespace zeroproof {

TcpServer::TcpServer(Listener listener, const StoreMember& member, std::string token,
                     const StoreLimits& limits)
    : listener_(std::move(listener)),
      limits_(limits),
      known_max_(limits.callers_a_rank * static_cast<std::size_t>(member.size)),
      keeper_(member, std::move(token)),
      acceptor_([this] { accept_all(); }) {}

TcpServer::~TcpServer() {
  is_ending_ = true;
  listener_.shut_down();
  acceptor_.join();
  keeper_.end();
  for (Connection& connection : connections_) connection.socket.shut_down();
  for (Connection& connection : connections_) connection.thread.join();
}

void TcpServer::accept_all() {
  while (!is_ending_) {
    auto socket = listener_.accept();
    if (!socket) continue;
    forget_ended();
    make_room();
    start(std::move(*socket));
  }
}

void TcpServer::forget_ended() {
  for (auto at = connections_.begin(); at != connections_.end();) {
    if (at->standing != Standing::ended) {
      ++at;
      continue;
    }
    at = end(at);
  }
}

// A caller that knows the token says it at once, so the oldest that did not is no member. Its
// thread ends before the next begins: what callers take is bounded however late threads run.
void TcpServer::make_room() {
  auto at = connections_.begin();
  while (at != connections_.end() && count(Standing::unknown) >= limits_.unknown_callers) {
    Standing standing = Standing::unknown;
    const bool is_dropped = at->standing.compare_exchange_strong(standing, Standing::dropped);
    at = is_dropped ? end(at) : std::next(at);
  }
}

TcpServer::Connections::iterator TcpServer::end(Connections::iterator at) {
  at->socket.shut_down();
  at->thread.join();
  return connections_.erase(at);
}

std::size_t TcpServer::count(Standing standing) const {
  const auto is_one = [standing](const Connection& of) { return of.standing == standing; };
  return static_cast<std::size_t>(std::ranges::count_if(connections_, is_one));
}

// Without memory or threads this caller is turned away; the job goes on.
void TcpServer::start(Socket socket) {
  try {
    connections_.emplace_back(std::move(socket));
  } catch (const std::bad_alloc&) {
    return;
  }
  Connection& connection = connections_.back();
  try {
    connection.thread = std::thread([this, &connection] { serve(connection); });
  } catch (const std::system_error&) {
    connections_.pop_back();
  }
}

void TcpServer::serve(Connection& connection) {
  ++open_;
  StoreKeeper::Caller caller;
  try {
    talk(connection, caller);
  } catch (const std::bad_alloc&) {
    // The message was too large for this machine: its sender sees the end of the connection.
  }
  if (caller.is_known) --known_;
  keeper_.note_end(caller);
  connection.socket.shut_down();
  --open_;
  connection.standing = Standing::ended;
}

void TcpServer::talk(Connection& connection, StoreKeeper::Caller& caller) {
  const ReceiveLimits of_hello{.bytes = limits_.hello_bytes, .at_most = limits_.hello};
  const auto first = connection.socket.receive(of_hello);
  auto answer = first ? keeper_.answer(caller, *first) : std::nullopt;
  if (caller.is_known && ++known_ > known_max_)
    answer = StoreKeeper::Parts{"refused", "it has too many connections"};
  if (!answer || !connection.socket.send(pack(*answer)) || answer->front() != "ok") return;
  Standing standing = Standing::unknown;
  if (!connection.standing.compare_exchange_strong(standing, Standing::known)) return;
  while (const auto message = connection.socket.receive()) {
    answer = keeper_.answer(caller, *message);
    if (!answer || !connection.socket.send(pack(*answer))) return;
  }
}

}  // namespace zeroproof
