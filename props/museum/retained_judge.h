#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "model/event.h"
#include "model/names.h"
#include "props/train/case_spec.h"

namespace zeroproof::museum {

// Whether one rank of stage 3 gathers again what a retained graph keeps: of two forwards with two
// losses each, the first one's second backward comes behind the end of the other's (R10). Used on
// the thread of its rank.
class RetainedJudge final : public EventSink {
 public:
  // Both must outlive it.
  RetainedJudge(const train::CaseSpec& spec, const NameTable& names);

  void on_event(const HookEvent& event) override;

  const std::string& finding() const { return finding_; }  // the first; empty: none

 private:
  void see_collective();

  const train::CaseSpec& spec_;
  const NameTable& names_;
  bool is_judged_;
  std::set<NameId> shared_;  // parameters of calls that both losses are behind
  std::set<NameId> begun_;   // of them: gathers that no collective was issued for, yet
  int forwards_ = 0;         // since the last step
  int backwards_ = 0;
  std::string finding_;
};

}  // namespace zeroproof::museum
