#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "props/train/case_spec.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof::mutation {

// What one rank sends in stages 0 to 2, and when: gradients at the boundary and in one piece a
// bucket, in the dtype of the wire, to all or to their owners as the configuration says, and
// updated values in as few pieces as it allows. R10. Used on the thread of its rank.
class CollectiveJudge final : public EventSink {
 public:
  // Both must outlive it.
  CollectiveJudge(const train::CaseSpec& spec, const NameTable& names);

  void on_event(const HookEvent& event) override;

  const std::string& finding() const { return finding_; }  // the first; empty: none

 private:
  struct Call {
    NameId name;
    std::int64_t gathers = 0;  // in it, of updated values
    std::int64_t pieces = 0;   // of a bucket that is reduced in it
    std::int64_t piece_bytes = 0;
  };

  bool is_in(std::string_view method) const;
  void open(const HookEvent& event);
  void close(bool is_done);  // it did not throw
  void see_flush(const HookEvent& event);
  void see_collective(const HookEvent& event);
  void see_piece(const HookEvent& event);
  void see_gather(const HookEvent& event);
  void find(std::string text);

  const train::CaseSpec& spec_;
  const NameTable& names_;
  bool is_judged_;
  bool reduces_at_boundary_;
  bool reduces_second_;
  bool sends_to_owners_;
  std::int64_t gathers_max_;  // pieces of what a step sends
  std::int64_t wire_item_bytes_;
  std::int64_t model_item_bytes_;
  std::string wire_;  // dtype
  std::vector<Call> calls_;
  int reductions_ = 0;         // since the last step began
  std::int64_t micro_ = -1;    // step of the engine that runs
  std::int64_t flushed_ = -1;  // elements of the bucket that is reduced; negative: none is
  std::string finding_;
};

}  // namespace zeroproof::mutation
