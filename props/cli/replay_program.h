#pragma once

#include <string>
#include <vector>

#include "props/cli/flags.h"
#include "props/cli/verb.h"

namespace zeroproof {

// `replay TRACE --program-out FILE`: the program of a recording in place of its diagnosis.
class RecordedProgramFlags {
 public:
  void declare(Flags& flags);
  bool is_given() const { return !file_.empty(); }
  // Writes the program. Errors: usage for anything but one trace; as program_of_recording().
  Result<VerbResult> run(const std::vector<std::string>& words) const;

 private:
  std::string file_;
  std::string steps_;
};

}  // namespace zeroproof
