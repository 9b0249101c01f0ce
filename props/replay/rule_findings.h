#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "props/replay/diagnosis.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// What the rules of a framework have found in one file: one of each kind, since the first says what
// to look at, with the story so far in front of it.
class RuleFindings {
 public:
  // `names` must outlive it; of a story the first `story_max` moments are kept.
  RuleFindings(const NameTable& names, std::size_t story_max)
      : names_(names), story_max_(story_max) {}

  // A new story begins with the event.
  void begin_story(const HookEvent& event);
  void tell(DiagnosisMoment moment);
  void tell(const HookEvent& event);

  // The story so far with `at` as its bad end.
  std::vector<DiagnosisMoment> story_until(const HookEvent& at) const;

  // `at` is the bad moment.
  void find(Diagnosis diagnosis, const HookEvent& at);

  // Appends what was found to `out`.
  void take(std::vector<Diagnosis>& out);

 private:
  const NameTable& names_;
  std::size_t story_max_;
  std::vector<DiagnosisMoment> story_;
  std::vector<Diagnosis> found_;
  std::set<std::string> kinds_;
};

}  // namespace zeroproof
