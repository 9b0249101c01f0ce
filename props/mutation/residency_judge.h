#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "props/train/case_spec.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof::mutation {

// Whether what a user of the case gathers may be whole in the middle of what runs.
bool gathers_in_middle(const train::CaseSpec& spec);

// What one rank of stage 3 keeps whole in the middle of its passes, and where that is more than it
// has to be (R12), or less (P64). Used on the thread of its rank.
class ResidencyJudge final : public EventSink {
 public:
  // Both must outlive it.
  ResidencyJudge(const train::CaseSpec& spec, const NameTable& names);

  void on_event(const HookEvent& event) override;

  // The first place; empty: none.
  const std::string& kept_finding() const { return kept_finding_; }    // R12
  const std::string& given_finding() const { return given_finding_; }  // P64

 private:
  void see_operation(const HookEvent& event);
  void see_call(const HookEvent& event);
  void see_return(const HookEvent& event);
  void see_release(const HookEvent& event);
  void judge_transform();
  void judge_released();
  void judge_leftovers();
  void judge_recomputed();
  void judge_blocks(NameId module);
  void judge_abandoned();
  void judge_functions();
  void judge_end(NameId module);
  void judge_persistent();
  void judge_all_given_back(std::string_view when);
  bool may_stay(NameId parameter) const;
  bool is_own(NameId parameter) const;

  const train::CaseSpec& spec_;
  const NameTable& names_;
  bool gives_all_back_;   // nothing is kept or gathered for a later use
  bool is_plain_;         // every module runs once in a pass
  bool uses_in_modules_;  // whatever is whole in a backward, a module's own part is under way for
  bool ends_modules_;     // every module's backward has an end that it is told of
  bool judges_failed_;    // forwards that fail are without gradients
  bool judges_operations_;
  bool judges_recomputed_;  // modules end what their recomputes gathered
  bool judges_abandoned_;
  std::vector<int> blocks_;    // by layer: the checkpoint of its call; empty: nothing is known
  bool calls_in_contexts_;     // the user, of what his context has gathered
  std::set<EngineId> failed_;  // engines whose last backward did, or one inside it
  int transforms_ = 0;         // that are under way
  bool is_behind_transform_ = false;  // and nothing has begun since
  EngineId engine_;                   // of the event that is seen
  std::set<NameId> resident_;
  std::set<NameId> begun_;         // the same, and what is on its way
  std::set<NameId> of_operation_;  // gathered by one that is under way in a backward
  int calls_ = 0;                  // of the engine's own, open
  std::set<NameId> known_;         // that were gathered once
  std::set<NameId> released_;      // of a module that has just ended
  std::set<NameId> abandoned_;     // modules that a forward left in their middle
  bool is_ending_ = false;         // a module's forward, as it should
  std::set<NameId> backwards_;     // modules in the middle of theirs
  std::string kept_finding_;
  std::string given_finding_;
};

}  // namespace zeroproof::mutation
