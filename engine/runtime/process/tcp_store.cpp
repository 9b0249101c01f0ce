#include "engine/runtime/process/tcp_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/runtime/process/byte_strings.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof {
namespace {

constexpr std::chrono::seconds kPatience{30};  // with a store that does not answer
constexpr Store::Milliseconds kLongestQuestion{1'000};

struct Server {
  std::unique_ptr<TcpServer> server;
  std::string token;
};

// The token before the first caller can come: no rank reads that of an earlier run.
Result<Server> serve(const TcpPlace& place, const StoreMember& member, const StoreLimits& limits) {
  auto listener = Listener::bind(place.host, place.port);
  if (!listener) return tl::unexpected(listener.error());
  auto token = offer_token(place.token);
  if (!token) return tl::unexpected(token.error());
  if (auto listens = listener->listen(); !listens) return tl::unexpected(listens.error());
  return Server{std::make_unique<TcpServer>(std::move(*listener), member, *token, limits), *token};
}

}  // namespace

Result<std::unique_ptr<TcpStore>> TcpStore::open(const TcpPlace& place, const StoreMember& member,
                                                 Milliseconds at_most, const StoreLimits& limits) {
  TcpPlace joined = place;
  std::unique_ptr<TcpServer> server;
  if (member.rank == 0) {
    auto own = serve(place, member, limits);
    if (!own) return tl::unexpected(own.error());
    server = std::move(own->server);
    joined.port = server->port();
    joined.token = {.text = own->token};
  }
  auto store = std::make_unique<TcpStore>(joined, member, std::move(server));
  if (auto met = store->join(at_most); !met) return tl::unexpected(met.error());
  return store;
}

TcpStore::TcpStore(TcpPlace place, const StoreMember& member, std::unique_ptr<TcpServer> server)
    : place_(std::move(place)), member_(member), server_(std::move(server)) {}

TcpStore::~TcpStore() = default;

Result<void> TcpStore::join(Milliseconds at_most) {
  auto greeting = greet(at_most);
  if (!greeting && greeting.error().code == ErrorCode::failed)
    return fail(ErrorCode::failed,
                fmt::format("rank {} of {} waited {} ms for rank 0: {}", member_.rank, member_.size,
                            at_most.count(), greeting.error().text));
  if (!greeting) return tl::unexpected(greeting.error());
  life_ = std::make_unique<Socket>(std::move(greeting->socket));
  auto answer = std::move(greeting->answer);
  if (answer && answer->front() == "ok")
    answer = ask_on(*life_, {"join", member_.run_id, std::to_string(member_.rank),
                             std::to_string(member_.size)});
  if (answer && answer->front() == "ok") return {};
  return fail(
      ErrorCode::failed,
      fmt::format("rank {} of {} cannot join the store at {}: {}", member_.rank, member_.size,
                  place(), answer ? answer->back() : "the listener there is no zeroproof"));
}

// A busy store may drop a caller whose token it has not read yet; see StoreLimits.
Result<TcpStore::Greeting> TcpStore::greet(Milliseconds at_most) const {
  constexpr int kAttempts = 5;
  for (int attempt = 1;; ++attempt) {
    auto socket = connect_to(place_.host, place_.port, at_most);
    if (!socket) return tl::unexpected(socket.error());
    const auto token = read_token(place_.token);
    if (!token) return tl::unexpected(token.error());
    auto answer = ask_on(*socket, {"hello", *token});
    if (answer || attempt == kAttempts) return Greeting{std::move(*socket), std::move(answer)};
  }
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
  auto all = presences_in(answer, member_.size);
  if (!all) refuse(answer);
  return std::move(*all);
}

void TcpStore::leave(Milliseconds at_most) {
  if (std::exchange(has_left_, true)) return;
  ask_on(*life_, {"leave"});
  if (server_) server_->wait_for_others(at_most);
}

std::string TcpStore::place() const {
  return fmt::format("{}:{}", place_.host, place_.port);
}

// Threads that ask at a time have a connection each.
TcpStore::Parts TcpStore::ask(const Parts& request) {
  Socket socket = idle_connection();
  auto answer = ask_on(socket, request);
  if (!answer) lose();
  if (answer->front() != "ok" && answer->front() != "none") refuse(*answer);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(socket));
  return std::move(*answer);
}

std::optional<TcpStore::Parts> TcpStore::ask_on(Socket& socket, const Parts& request) const {
  if (!socket.send(pack(request))) return std::nullopt;
  const auto message = socket.receive({.at_most = kPatience});
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
  auto greeting = greet(kLongestQuestion);
  if (!greeting || !greeting->answer) lose();
  if (greeting->answer->front() != "ok") refuse(*greeting->answer);
  return std::move(greeting->socket);
}

void TcpStore::lose() const {
  throw RuntimeFault(
      fmt::format("rank 0 ended without a word: the store at {} is not served any more", place()));
}

void TcpStore::refuse(const Parts& answer) const {
  throw RuntimeFault(fmt::format("the store at {} does not do what rank {} asks: it answers '{}'",
                                 place(), member_.rank, answer.back()));
}

}  // namespace zeroproof
