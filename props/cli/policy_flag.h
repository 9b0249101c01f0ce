#pragma once

#include <string>
#include <string_view>

#include "props/cli/flags.h"

namespace zeroproof {

// Declares --policy. A former name (pr7886) or a release (deepspeed-0.19.2) becomes the policy's
// id. `takes_all`: the word `all`, too.
void add_policy_flag(Flags& flags, std::string& policy, std::string_view text,
                     bool takes_all = false);

}  // namespace zeroproof
