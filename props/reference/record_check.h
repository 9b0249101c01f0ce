#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "props/reference/part.h"

namespace zeroproof::reference {

// Whether the events of an engine are whole: each model step says its outcome, each forward and
// backward what the engine does around it, and what begins ends. docs/reference/trace_format.md
// sections 5 and 14.
class RecordCheck final : public Part {
 public:
  using Part::Part;

  void on_event(const HookEvent& event) override;
  void finish(bool is_complete) override;

 private:
  struct Call {
    std::string method;
    int outcomes = 0;       // marks of a step, in it
    int resets = 0;         // of the manager
    int prologues = 0;      // of a backward
    bool is_judged = true;  // outside function transforms
  };

  void open(const HookEvent& event);
  void close(const HookEvent& event);
  void judge(const HookEvent& event, const Call& call);
  void see_mark(const HookEvent& event);

  std::vector<Call> calls_;
  bool has_resets_ = false;  // the policy's manager begins steps
  int callbacks_ = 0;        // begun and not ended
  int manager_calls_ = 0;
  std::string overflow_;  // what the running step said
  std::uint64_t last_ = 0;
};

}  // namespace zeroproof::reference
