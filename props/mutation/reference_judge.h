#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "props/reference/walker.h"
#include "props/train/case_spec.h"
#include "props/train/scenario.h"

namespace zeroproof::mutation {

// The reference walker over one rank of a case, in the place of EventJudges.
class ReferenceJudge final : public EventSink {
 public:
  // `names` must outlive it.
  ReferenceJudge(const train::CaseSpec& spec, const train::TrainScenario& scenario,
                 const train::TrainCell& cell, const NameTable& names);

  void on_event(const HookEvent& event) override { walker_.on_event(event); }

  // With the number of its property; at the end of the record. `is_complete`: the program of the
  // rank came to its end.
  void for_each_finding(
      bool is_complete,
      const std::function<void(std::string_view number, const std::string& text)>& see);
  reference::Coverage coverage() const { return walker_.coverage(); }

 private:
  reference::Walker walker_;
};

}  // namespace zeroproof::mutation
