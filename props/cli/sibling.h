#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/result.h"

namespace zeroproof {

// The program with the mutated engine, zeroproof-mutation, which stands beside this one.
std::string sibling_path();

bool is_sibling_there();

// That it is not there, and how to get it; cannot_run.
Error no_sibling();

// Runs it in place of this process, called as `program` was. Returns only what went wrong.
Error become_sibling(const std::string& program, const std::vector<std::string>& words);

struct SiblingOutput {
  int exit_code = 0;  // 128 and the signal where one ended it
  std::string text;   // of stdout
};

// Runs it beside this process and waits for it; its stderr is ours. When `should_stop` says so it
// gets an interrupt, and is waited for all the same.
Result<SiblingOutput> ask_sibling(const std::vector<std::string>& words,
                                  const std::function<bool()>& should_stop);

}  // namespace zeroproof
