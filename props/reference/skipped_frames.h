#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "props/reference/gather_log.h"
#include "props/reference/part.h"

namespace zeroproof::reference {

// Where the parameters of compiled modules are whose frames the compiler skipped:
// docs/spec/zero/skipped_frames.md. Reads make no event, so what a forward may use is what its
// claim says; the rest follows: what must be whole for a claim, and what must be free.
class SkippedFrames final : public Part {
 public:
  explicit SkippedFrames(const Surroundings& around) : Part(around), gathers_(around) {}

  void on_event(const HookEvent& event) override;

 private:
  using Ids = std::set<std::size_t>;

  void count_time(const HookEvent& event);
  void see_call(const HookEvent& event);
  void see_return(const HookEvent& event);
  void see_gather(const HookEvent& event);
  void see_partition(const HookEvent& event);
  void judge_begun(const HookEvent& event);
  void judge_freed(const HookEvent& event, const Ids& candidates, std::string_view when);
  Ids ids_of(const HookEvent& event);
  bool is_claimed(std::size_t id) const;
  bool is_in_context(std::size_t id) const;

  GatherLog gathers_;
  Ids whole_;                           // or on their way
  Ids tracked_;                         // of them: gathered by a read
  std::map<std::int64_t, Ids> claims_;  // by graph
  std::vector<Ids> contexts_;           // of the user, open
  bool has_begun_ = false;    // the outermost forward, which has released by its next event
  bool has_dropped_ = false;  // a claim, in the epilogue that runs
};

}  // namespace zeroproof::reference
