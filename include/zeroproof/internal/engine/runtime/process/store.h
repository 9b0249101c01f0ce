#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof {

// What became of the process of a rank: not here yet, here, gone as it should (leave), or gone
// without a word.
enum class PeerState : std::uint8_t { absent, here, left, lost };

// Where the processes of a job leave byte strings for each other, by key. A key is a path of words
// and numbers and is set once, by one process. Thread-safe. A store that works no more, because the
// process that keeps it is gone or its folder is, throws RuntimeFault.
class Store {
 public:
  using Milliseconds = std::chrono::milliseconds;
  virtual ~Store() = default;

  virtual void set(const std::string& key, std::string_view value) = 0;
  // Waits for a key that is not set yet; none: it was not within that time.
  virtual std::optional<std::string> wait(const std::string& key, Milliseconds at_most) = 0;
  // A key that is not asked for again.
  virtual void remove(const std::string& key) = 0;

  virtual std::vector<PeerState> presences() = 0;  // by rank
  // This process needs the store no more, and its end is no loss. Rank 0 keeps the store for
  // the others, and so waits for them, but no longer than that.
  virtual void leave(Milliseconds at_most) = 0;

  // How others would reach it: for messages.
  virtual std::string place() const = 0;
};

}  // namespace zeroproof
