#pragma once

#include <optional>

#include "props/replay/draft.h"
#include "props/replay/story_level.h"

namespace zeroproof {

// The exception by which a process ended, when the recording says so; its files are not filled in.
std::optional<Draft> uncaught_exception(const TraceStory& story);

}  // namespace zeroproof
