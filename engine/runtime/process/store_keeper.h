#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/runtime/process/file_store.h"

namespace zeroproof {

// The keys of a job and who is here, as rank 0 keeps them. Answers messages of any bytes; a caller
// that did not say the token reads and changes no key. Thread-safe.
class StoreKeeper {
 public:
  using Parts = std::vector<std::string>;
  // What one connection has said so far.
  struct Caller {
    bool is_known = false;  // it said the token
    int rank = -1;          // whose life this connection is
  };

  StoreKeeper(const StoreMember& member, std::string token);

  // {"ok", …}, {"none"} or {"refused", why}; none: the message is not ours.
  std::optional<Parts> answer(Caller& caller, std::string_view message);
  // The connection is closed: a rank that joined on it and has not left is lost.
  void note_end(const Caller& caller);
  void end();  // every wait ends at once
  // Until all that came have left or are lost, but no longer than that.
  void wait_for_others(Store::Milliseconds at_most);

 private:
  Parts hello(Caller& caller, const Parts& request) const;
  Parts answer_known(Caller& caller, const Parts& request);
  Parts join(Caller& caller, const Parts& request);
  Parts wait(const Parts& request);
  Parts presences();

  StoreMember member_;
  std::string token_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_ending_ = false;
  std::map<std::string, std::string> values_;
  std::vector<PeerState> presences_;
};

// What a store's answer to "presences" says of so many ranks; none: it is no such answer.
std::optional<std::vector<PeerState>> presences_in(const StoreKeeper::Parts& answer, int ranks);

}  // namespace zeroproof
