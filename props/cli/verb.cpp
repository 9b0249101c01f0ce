#include "props/cli/verb.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace zeroproof {
void Session::say(std::string_view text) const {
  fmt::print(stderr, "zeroproof: {}\n", text);
}

std::string Session::seed_line() const {
  return fmt::format("seed {}\n", common.seed);
}

std::string Session::reproduce_line(ExitCode code) const {
  if (code == ExitCode::held) return {};
  return fmt::format("reproduce: {} {}\n", program, arguments);
}

const VerbInfo* find_verb(std::string_view name) {
  if (name == kFormerMutation) name = kMutation;
  const auto at = std::ranges::find(verb_table(), name, &VerbInfo::name);
  return at == verb_table().end() ? nullptr : &*at;
}

VerbCall::VerbCall(const VerbInfo& info)
    : verb_(info.make()),
      flags_(fmt::format("zeroproof {}", info.name), info.summary, info.examples) {
  verb_->declare(flags_);
  words_.declare(flags_);
}

}  // namespace zeroproof
