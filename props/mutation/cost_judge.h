#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "props/train/case_spec.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof::mutation {

// What one rank's events cost, and where that is more than it has to be: R10 and R11. Used on the
// thread of its rank.
class CostJudge final : public EventSink {
 public:
  // Both must outlive it.
  CostJudge(const train::CaseSpec& spec, const NameTable& names);

  void on_event(const HookEvent& event) override;

  // The first place; empty: none.
  const std::string& collective_finding() const { return collective_finding_; }  // R10
  const std::string& count_finding() const { return count_finding_; }            // R11
  const std::string& resident_finding() const { return resident_finding_; }      // P63

 private:
  struct Bucket {
    std::int64_t filled = 0;              // elements since the last flush
    std::optional<std::int64_t> flushed;  // elements of the last flush of the running backward
  };

  bool is_check(const HookEvent& event) const;
  bool is_in_backward(const HookEvent& event) const;
  static bool ends_reduction(std::string_view method);
  void see_mark(const HookEvent& event);
  void see_wire(const HookEvent& event);
  void see_agreement(const HookEvent& event);
  void see_flush(const HookEvent& event);
  void see_add(const HookEvent& event);
  void see_dtype(const HookEvent& event);
  void see_epilogue(EngineId engine);

  const train::CaseSpec& spec_;
  const NameTable& names_;
  std::int64_t bucket_;               // elements that one flush can hold
  bool has_buckets_;                  // of which each has one dtype, and is told so
  std::int64_t wire_item_bytes_;      // 0: nothing says how many
  std::int64_t wire_bytes_;           // of all gradients, without padding
  bool has_one_graph_;                // at a time
  std::string_view safe_dtype_;       // under autocast: of gradients of safe classes
  std::map<NameId, Bucket> buckets_;  // by dtype
  bool has_one_epilogue_;             // of a backward, whatever it goes through
  std::int64_t agreements_ = -1;  // all-reduces of the running step of stage 3; negative: none runs
  std::int64_t epilogues_ = 0;    // of the running backward
  std::int64_t tasks_ = 0;        // phases of the running backward
  std::int64_t counts_ = 0;       // queries for expected hooks in it
  std::set<NameId> resident_;
  std::string collective_finding_;
  std::string count_finding_;
  std::string resident_finding_;
};

}  // namespace zeroproof::mutation
