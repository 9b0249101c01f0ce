#pragma once

#include <string>
#include <vector>

#include "props/cli/verb.h"
#include "sim/schedule.h"

namespace zeroproof {

// `zeroproof replay` of schedules that `explore` made of the real engine.
class EngineReplayVerb {
 public:
  void declare(Flags& flags);

  // Whether the first word is such a schedule; then all of them have to be.
  static bool is_meant(const std::vector<std::string>& words);

  // The schedule that a word is or names.
  static Result<Schedule> schedule_in(const std::string& word);

  Result<VerbResult> run(const std::vector<std::string>& words, Session& session) const;

 private:
  std::string runtime_ = "sim";
};

}  // namespace zeroproof
