#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof::mutation {

// Whether one rank's events tell all that happened: each step its outcome, each forward and
// backward what the engine does around it, each bracket its end. R21. Used on the thread of its
// rank.
class RecordJudge final : public EventSink {
 public:
  // Must outlive it.
  explicit RecordJudge(const NameTable& names);

  void on_event(const HookEvent& event) override;

  // The first; empty: none. At the end of the record.
  std::string finding() const;

 private:
  struct Call {
    NameId name;
    std::int64_t outcomes = 0;   // in it, from here on
    std::int64_t resets = 0;     // of the manager, for a new step
    std::int64_t prologues = 0;  // of a backward
    bool is_counted = false;     // not in a function transform
  };

  void open(const HookEvent& event);
  void close(const HookEvent& event);
  void find(std::string text);

  const NameTable& names_;
  std::vector<Call> calls_;
  std::int64_t callbacks_ = 0;      // begun and not ended
  std::int64_t manager_calls_ = 0;  // the same
  bool has_resets_ = false;         // a manager that begins steps, which not every policy has
  std::string finding_;
};

}  // namespace zeroproof::mutation
