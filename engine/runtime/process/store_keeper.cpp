#include "engine/runtime/process/store_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/runtime/process/byte_strings.h"
#include "engine/runtime/process/store_token.h"

namespace zeroproof {
namespace {

// A longer wait is asked for again and again.
constexpr long kLongestWaitMs = 10'000;

long wait_ms(const std::string& text) {
  long asked = 0;
  std::from_chars(text.data(), text.data() + text.size(), asked);
  return std::clamp(asked, 0L, kLongestWaitMs);
}

}  // namespace

StoreKeeper::StoreKeeper(const StoreMember& member, std::string token)
    : member_(member),
      token_(std::move(token)),
      presences_(static_cast<std::size_t>(member.size), PeerState::absent) {}

std::optional<StoreKeeper::Parts> StoreKeeper::answer(Caller& caller, std::string_view message) {
  const auto request = unpack(message);
  if (!request || request->empty()) return std::nullopt;
  return caller.is_known ? answer_known(caller, *request) : hello(caller, *request);
}

StoreKeeper::Parts StoreKeeper::hello(Caller& caller, const Parts& request) const {
  caller.is_known =
      request.size() == 2 && request[0] == "hello" && is_same_token(request[1], token_);
  if (caller.is_known) return {"ok"};
  return {"refused", "the token is not that of its job (ZEROPROOF_STORE_TOKEN, --store-token)"};
}

StoreKeeper::Parts StoreKeeper::answer_known(Caller& caller, const Parts& request) {
  const std::string& verb = request[0];
  if (verb == "join" && request.size() == 4) return join(caller, request);
  if (verb == "wait" && request.size() == 3) return wait(request);
  if (verb == "presences") return presences();
  const std::lock_guard lock(mutex_);
  if (verb == "set" && request.size() == 3) {
    values_[request[1]] = request[2];
  } else if (verb == "remove" && request.size() == 2) {
    values_.erase(request[1]);
  } else if (verb == "leave" && caller.rank >= 0) {
    presences_[static_cast<std::size_t>(caller.rank)] = PeerState::left;
  } else {
    return {"refused", "its request is not known"};
  }
  changed_.notify_all();
  return {"ok"};
}

StoreKeeper::Parts StoreKeeper::join(Caller& caller, const Parts& request) {
  const std::string job = fmt::format("{} of {} processes", member_.run_id, member_.size);
  const std::string theirs = fmt::format("{} of {} processes", request[1], request[3]);
  if (job != theirs) return {"refused", fmt::format("it keeps run '{}', not '{}'", job, theirs)};
  if (caller.rank >= 0) return {"refused", "this connection is a rank's already"};
  const std::lock_guard lock(mutex_);
  for (int rank = 0; rank < member_.size; ++rank) {
    if (std::to_string(rank) != request[2]) continue;
    PeerState& presence = presences_[static_cast<std::size_t>(rank)];
    if (presence != PeerState::absent) return {"refused", "that rank has come already"};
    presence = PeerState::here;
    caller.rank = rank;
    changed_.notify_all();
    return {"ok"};
  }
  return {"refused", "it has no such rank"};
}

StoreKeeper::Parts StoreKeeper::wait(const Parts& request) {
  std::unique_lock lock(mutex_);
  const auto is_over = [&] { return values_.contains(request[1]) || is_ending_; };
  changed_.wait_for(lock, std::chrono::milliseconds(wait_ms(request[2])), is_over);
  const auto found = values_.find(request[1]);
  if (found == values_.end()) return {"none"};
  return {"ok", found->second};
}

StoreKeeper::Parts StoreKeeper::presences() {
  const std::lock_guard lock(mutex_);
  std::string digits;
  for (const PeerState of : presences_) digits += static_cast<char>('0' + static_cast<int>(of));
  return {"ok", digits};
}

void StoreKeeper::note_end(const Caller& caller) {
  if (caller.rank < 0) return;
  const std::lock_guard lock(mutex_);
  PeerState& presence = presences_[static_cast<std::size_t>(caller.rank)];
  if (presence == PeerState::here) presence = PeerState::lost;
  changed_.notify_all();
}

void StoreKeeper::end() {
  const std::lock_guard lock(mutex_);
  is_ending_ = true;
  changed_.notify_all();
}

void StoreKeeper::wait_for_others(Store::Milliseconds at_most) {
  std::unique_lock lock(mutex_);
  const auto is_empty = [this] { return std::ranges::count(presences_, PeerState::here) == 0; };
  changed_.wait_for(lock, at_most, is_empty);
}

std::optional<std::vector<PeerState>> presences_in(const StoreKeeper::Parts& answer, int ranks) {
  if (answer.size() != 2 || std::cmp_not_equal(answer[1].size(), ranks)) return std::nullopt;
  std::vector<PeerState> all;
  for (const char digit : answer[1]) {
    const int state = digit - '0';
    if (state < 0 || state > static_cast<int>(PeerState::lost)) return std::nullopt;
    all.push_back(static_cast<PeerState>(state));
  }
  return all;
}

}  // namespace zeroproof
