#include "engine/runtime/process/tcp_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/runtime/process/byte_strings.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof {
namespace {

constexpr std::chrono::seconds kPatience{30};  // with a store that says nothing
constexpr Store::Milliseconds kLongestQuestion{1'000};

}  // namespace

Result<std::unique_ptr<TcpStore>> TcpStore::open(const std::string& host, int port,
                                                 const StoreMember& member, Milliseconds at_most) {
  std::unique_ptr<TcpServer> server;
  if (member.rank == 0) {
    auto listener = Listener::open(host, port);
    if (!listener) return tl::unexpected(listener.error());
    server = std::make_unique<TcpServer>(std::move(*listener), member);
    port = server->port();
  }
  auto store = std::make_unique<TcpStore>(host, port, member, std::move(server));
  if (auto joined = store->join(at_most); !joined) return tl::unexpected(joined.error());
  return store;
}

TcpStore::TcpStore(std::string host, int port, const StoreMember& member,
                   std::unique_ptr<TcpServer> server)
    : host_(std::move(host)), port_(port), member_(member), server_(std::move(server)) {}

TcpStore::~TcpStore() = default;

Result<void> TcpStore::join(Milliseconds at_most) {
  auto connected = connect_to(host_, port_, at_most);
  if (!connected && connected.error().code == ErrorCode::failed)
    return fail(ErrorCode::failed,
                fmt::format("rank {} of {} waited {} ms for rank 0: {}", member_.rank, member_.size,
                            at_most.count(), connected.error().text));
  if (!connected) return tl::unexpected(connected.error());
  life_ = std::make_unique<Socket>(std::move(*connected));
  life_->set_receive_timeout(kPatience);
  const auto answer = ask_on(
      *life_, {"join", member_.run_id, std::to_string(member_.rank), std::to_string(member_.size)});
  if (answer && answer->front() == "ok") return {};
  return fail(
      ErrorCode::failed,
      fmt::format("rank {} of {} cannot join the store at {}: {}", member_.rank, member_.size,
                  place(), answer ? answer->back() : "whoever listens there is no zeroproof"));
}

void TcpStore::set(const std::string& key, std::string_view value) {
  ask({"set", key, std::string(value)});
}

std::optional<std::string> TcpStore::wait(const std::string& key, Milliseconds at_most) {
  for (;;) {
    const Milliseconds now = std::min(at_most, kLongestQuestion);
    Parts answer = ask({"wait", key, std::to_string(now.count())});
    if (answer.size() == 2) return std::move(answer[1]);
    at_most -= now;
    if (at_most.count() <= 0) return std::nullopt;
  }
}

void TcpStore::remove(const std::string& key) {
  ask({"remove", key});
}

std::vector<PeerState> TcpStore::presences() {
  const Parts answer = ask({"presences"});
  std::vector<PeerState> all;
  for (const char digit : answer.back()) all.push_back(static_cast<PeerState>(digit - '0'));
  return all;
}

void TcpStore::leave(Milliseconds at_most) {
  if (std::exchange(has_left_, true)) return;
  ask_on(*life_, {"leave"});
  if (server_) server_->wait_for_others(at_most);
}

std::string TcpStore::place() const {
  return fmt::format("{}:{}", host_, port_);
}

// Threads that ask at a time have a connection each.
TcpStore::Parts TcpStore::ask(const Parts& request) {
  Socket socket = idle_connection();
  auto answer = ask_on(socket, request);
  if (!answer) lose();
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(socket));
  return std::move(*answer);
}

std::optional<TcpStore::Parts> TcpStore::ask_on(Socket& socket, const Parts& request) {
  if (!socket.send(pack(request))) return std::nullopt;
  const auto message = socket.receive();
  auto answer = message ? unpack(*message) : std::nullopt;
  if (answer && answer->empty()) return std::nullopt;
  return answer;
}

Socket TcpStore::idle_connection() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Socket socket = std::move(idle_.back());
      idle_.pop_back();
      return socket;
    }
  }
  auto connected = connect_to(host_, port_, kLongestQuestion);
  if (!connected) lose();
  connected->set_receive_timeout(kPatience);
  return std::move(*connected);
}

void TcpStore::lose() const {
  throw RuntimeFault(
      fmt::format("rank 0 ended without a word: nobody keeps the store at {} any more", place()));
}

}  // namespace zeroproof
