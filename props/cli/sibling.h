#pragma once

#include <functional>
#include <string>
#include <vector>

#include "zeroproof/model/result.h"

namespace zeroproof {

// The programs with mutated engines, which stand beside this one: with faults, and with mutants of
// statements.
inline constexpr const char* kMutationProgram = "zeroproof-mutation";
inline constexpr const char* kScoreProgram = "zeroproof-score";

bool is_sibling_there(const char* sibling);

// That it is not there, and how to get it; cannot_run.
Error no_sibling(const char* sibling);

// Runs it in place of this process, called as `program` was. Returns only what went wrong.
Error become_sibling(const char* sibling, const std::string& program,
                     const std::vector<std::string>& words);

struct SiblingOutput {
  int exit_code = 0;  // 128 and the signal where one ended it
  std::string text;   // of stdout
};

// Runs zeroproof-mutation beside this process and waits for it; its stderr is ours. When
// `should_stop` says so it gets an interrupt, and is waited for all the same.
Result<SiblingOutput> ask_sibling(const std::vector<std::string>& words,
                                  const std::function<bool()>& should_stop);

}  // namespace zeroproof
