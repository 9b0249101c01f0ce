#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "props/reference/findings.h"
#include "props/reference/world.h"

namespace zeroproof::reference {

// Bytes on the device that an engine holds between two windows, at most: weights, states, windows
// and buckets. docs/spec/zero/gradients.md 2.15 and 2.16, stage3.md 3.1 and 3.6. What a program
// keeps (graphs, gradients, contexts) comes on top, so that this is for programs that keep none.
// None: the rules do not say it for this configuration.
std::optional<std::int64_t> bytes_at_rest(const World& world);

// Rule rest.bytes, of what was live at the end of a window, of all engines of a rank.
void judge_rest(const std::vector<World>& worlds, std::int64_t live_bytes, Ledger& ledger);

}  // namespace zeroproof::reference
