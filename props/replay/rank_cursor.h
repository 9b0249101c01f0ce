#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/names.h"
#include "props/replay/diagnosis.h"
#include "sim/trace/reader.h"

namespace zeroproof {

// One collective as a rank issued it, with what it was for.
struct IssuedCollective {
  std::string op;
  std::string group;    // as the rank calls it
  std::string members;  // "0,1"; the name where the members are unknown
  std::int64_t number = 0;
  std::int64_t bytes = -1;
  std::string parameter;  // empty: not known
  std::string place;      // "in the hook of l1.bias"
  DiagnosisMoment moment;
  DiagnosisMoment before;  // the last telling event before it

  // The same collective, as far as both sides know.
  bool is_same(const IssuedCollective& other) const;
  std::string words() const;  // "all_reduce of 24 bytes for l1.bias"
};

// Reads one rank's file from collective to collective. Not thread-safe.
class RankCursor {
 public:
  // Error: the file cannot be opened any more.
  static Result<RankCursor> open(const std::string& path);

  RankCursor(RankCursor&&) noexcept;
  ~RankCursor();

  // The next collective, or nothing at the end of what can be read.
  std::optional<IssuedCollective> next();

  // The gradient hooks up to here, by parameter, in order; only those since the last call.
  std::vector<DiagnosisMoment> take_hooks();

  // What stands last in the file, once `next` gave nothing.
  const DiagnosisMoment& last() const;

 private:
  struct State;
  explicit RankCursor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace zeroproof
