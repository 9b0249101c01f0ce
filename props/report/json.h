#pragma once

#include <string>

#include "props/replay/replay.h"

namespace zeroproof {

// The documents of docs/OUTPUT.md: one line-broken JSON object each, without a final line end.
// Field names are a public contract; equal reports give equal bytes.
std::string replay_json(const ReplayReport& report);

}  // namespace zeroproof
