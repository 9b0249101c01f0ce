#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "props/cli/flags.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// Which events `show` prints. An empty set lets everything pass.
class EventFilter {
 public:
  void declare(Flags& flags);

  // Reads the words that were parsed. Code usage; unknown kinds get a suggestion.
  Result<void> prepare();

  bool passes(const HookEvent& event) const;

  // Whether any flag was given.
  bool is_given() const;

  // Kinds were named, so no event is bookkeeping.
  bool has_kinds() const { return !kinds_.empty(); }

 private:
  std::vector<std::string> rank_words_;
  std::vector<std::string> task_words_;
  std::vector<std::string> kind_words_;
  std::string from_word_;
  std::string to_word_;
  std::set<std::int64_t> ranks_;
  std::set<std::int64_t> tasks_;
  std::set<EventKind> kinds_;
  std::uint64_t from_ = 0;
  std::uint64_t to_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace zeroproof
