#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "props/train/case_spec.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof::mutation {

// Whether one rank of stage 3 gathers again what a retained graph keeps (R10): of two forwards with
// two losses each, the first one's second backward comes behind the end of the other's; or one loss
// is differentiated again, and checkpoints in its graph have graph tasks of their own. Used on the
// thread of its rank.
class RetainedJudge final : public EventSink {
 public:
  // Both must outlive it.
  RetainedJudge(const train::CaseSpec& spec, const NameTable& names);

  void on_event(const HookEvent& event) override;

  const std::string& finding() const { return finding_; }  // the first; empty: none

 private:
  bool is_last_backward() const;
  void see_collective();

  const train::CaseSpec& spec_;
  const NameTable& names_;
  bool interleaves_;
  bool repeats_;
  std::set<NameId> kept_;   // parameters for the last backward of a forward
  std::set<NameId> begun_;  // of them: gathers that no collective was issued for, yet
  int forwards_ = 0;        // since the last step
  int backwards_ = 0;
  std::string finding_;
};

}  // namespace zeroproof::mutation
