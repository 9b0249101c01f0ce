#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "props/replay/diagnosis.h"
#include "sim/trace/reader.h"
#include "zeroproof/internal/model/names.h"

namespace zeroproof {

// LaneItem::op of an optimizer step.
inline constexpr std::string_view kOptimizerStep = "optimizer step";

// Which events of a rank form one comparable sequence.
struct RankLane {
  enum class Kind : std::uint8_t { collectives, messages, gradient_hooks, steps };
  Kind kind = Kind::collectives;
  std::string group;           // collectives, messages
  std::int32_t peer = -1;      // messages
  bool is_send = false;        // messages
  bool sorts_buckets = false;  // DeepSpeed's: their order has no meaning
};

// One event of a lane: a collective as a rank issued it, with what it was for; or a message, a
// gradient hook, an optimizer step.
struct LaneItem {
  std::string op;
  std::string group;  // as the rank calls it
  std::int64_t number = 0;
  std::int64_t bytes = -1;
  std::int32_t root = -1;
  std::uint64_t collectives = 0;        // that the rank has issued before it, on every group
  std::string parameter;                // empty: not known
  std::vector<std::string> parameters;  // those that ranks may be compared by
  std::string place;                    // "in the hook of l1.bias"
  DiagnosisMoment moment;

  std::string words() const;  // "all_reduce of 24 bytes for l1.bias"
};

// Reads one rank's file along one lane. Not thread-safe.
class RankCursor {
 public:
  // Error: the file cannot be opened any more.
  static Result<RankCursor> open(const std::string& path, RankLane lane);

  RankCursor(RankCursor&&) noexcept;
  ~RankCursor();

  // The next item of the lane; nullopt at the end of what can be read.
  std::optional<LaneItem> next();

  // The last significant event before where `next` stands.
  DiagnosisMoment last() const;

  // Events read so far.
  std::uint64_t events() const;

 private:
  struct State;
  explicit RankCursor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace zeroproof
