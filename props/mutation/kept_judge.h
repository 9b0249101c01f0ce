#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "props/train/case_spec.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof::mutation {

// Whether one rank of stage 3 gathers ahead into room that parameters take which the first of two
// backwards keeps for the second, or keeps more than there is room for: P69, where no event tells
// that they are kept. Used on the thread of its rank.
class KeptJudge final : public EventSink {
 public:
  // Both must outlive it.
  KeptJudge(const train::CaseSpec& spec, const NameTable& names);

  void on_event(const HookEvent& event) override;

  const std::string& finding() const { return finding_; }  // the first; empty: none

 private:
  void begin_fetch(NameId module);
  void see_gather(const HookEvent& event);
  void see_gathered(const HookEvent& event);
  void see_release(const HookEvent& event);
  void see_return(std::string_view method);
  void judge();
  std::int64_t elements(NameId parameter) const;
  std::int64_t elements(const std::set<NameId>& parameters) const;

  const train::CaseSpec& spec_;
  const NameTable& names_;
  bool is_judged_;
  std::set<NameId> whole_;  // and on their way
  std::set<NameId> kept_;
  std::set<NameId> admitted_;   // as many as may be kept
  std::set<NameId> begun_;      // gathers that no collective was issued for, yet
  std::set<NameId> reclaimed_;  // in the second backward
  int backwards_ = 0;           // since the last forward
  int graph_tasks_ = 0;
  NameId fetched_;  // the module whose fetch is under way
  std::int64_t room_ = 0;
  std::int64_t ahead_ = 0;  // elements that it gathers for others
  std::int64_t last_ = 0;   // the largest of those
  std::string finding_;
};

}  // namespace zeroproof::mutation
