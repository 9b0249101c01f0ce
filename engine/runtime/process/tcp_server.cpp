#include "engine/runtime/process/tcp_server.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/runtime/process/byte_strings.h"

namespace zeroproof {

TcpServer::TcpServer(Listener listener, const StoreMember& keeper)
    : listener_(std::move(listener)),
      keeper_(keeper),
      presences_(static_cast<std::size_t>(keeper.size), PeerState::absent),
      acceptor_([this] { accept_all(); }) {}

TcpServer::~TcpServer() {
  is_ending_ = true;
  listener_.shut_down();
  acceptor_.join();
  changed_.notify_all();
  for (Connection& connection : connections_) connection.socket.shut_down();
  for (Connection& connection : connections_) connection.thread.join();
}

void TcpServer::wait_for_others(Store::Milliseconds at_most) {
  std::unique_lock lock(mutex_);
  const auto is_empty = [this] { return std::ranges::count(presences_, PeerState::here) == 0; };
  changed_.wait_for(lock, at_most, is_empty);
}

void TcpServer::accept_all() {
  while (!is_ending_) {
    auto socket = listener_.accept();
    if (!socket) continue;
    Connection& connection = connections_.emplace_back(std::move(*socket));
    connection.thread = std::thread([this, &connection] { serve(connection); });
  }
}

void TcpServer::serve(Connection& connection) {
  while (const auto message = connection.socket.receive()) {
    const auto request = unpack(*message);
    if (!request || request->empty()) break;
    if (!connection.socket.send(pack(answer(connection, *request)))) break;
  }
  note_end(connection);
}

// {"ok", …} or {"none"}, or {"refused", why}.
TcpServer::Parts TcpServer::answer(Connection& connection, const Parts& request) {
  const std::string& verb = request[0];
  if (verb == "join" && request.size() == 4) return join(connection, request);
  if (verb == "wait" && request.size() == 3) return wait(request);
  if (verb == "presences") return presences();
  const std::lock_guard lock(mutex_);
  if (verb == "set" && request.size() == 3) {
    values_[request[1]] = request[2];
  } else if (verb == "remove" && request.size() == 2) {
    values_.erase(request[1]);
  } else if (verb == "leave" && connection.rank >= 0) {
    presences_[static_cast<std::size_t>(connection.rank)] = PeerState::left;
  } else {
    return {"refused", "it asks for nothing that is known"};
  }
  changed_.notify_all();
  return {"ok"};
}

TcpServer::Parts TcpServer::join(Connection& connection, const Parts& request) {
  const std::string job = fmt::format("{} of {} processes", keeper_.run_id, keeper_.size);
  const std::string theirs = fmt::format("{} of {} processes", request[1], request[3]);
  if (job != theirs) return {"refused", fmt::format("it keeps run '{}', not '{}'", job, theirs)};
  const std::lock_guard lock(mutex_);
  for (int rank = 0; rank < keeper_.size; ++rank) {
    if (std::to_string(rank) != request[2]) continue;
    PeerState& presence = presences_[static_cast<std::size_t>(rank)];
    if (presence != PeerState::absent) return {"refused", "that rank has come already"};
    presence = PeerState::here;
    connection.rank = rank;
    changed_.notify_all();
    return {"ok"};
  }
  return {"refused", "it has no such rank"};
}

TcpServer::Parts TcpServer::wait(const Parts& request) {
  std::unique_lock lock(mutex_);
  const auto is_over = [&] { return values_.contains(request[1]) || is_ending_; };
  const long at_most_ms = std::strtol(request[2].c_str(), nullptr, 10);
  changed_.wait_for(lock, std::chrono::milliseconds(at_most_ms), is_over);
  const auto found = values_.find(request[1]);
  if (found == values_.end()) return {"none"};
  return {"ok", found->second};
}

TcpServer::Parts TcpServer::presences() {
  const std::lock_guard lock(mutex_);
  std::string digits;
  for (const PeerState of : presences_) digits += static_cast<char>('0' + static_cast<int>(of));
  return {"ok", digits};
}

void TcpServer::note_end(const Connection& connection) {
  if (connection.rank < 0) return;
  const std::lock_guard lock(mutex_);
  PeerState& presence = presences_[static_cast<std::size_t>(connection.rank)];
  if (presence == PeerState::here) presence = PeerState::lost;
  changed_.notify_all();
}

}  // namespace zeroproof
