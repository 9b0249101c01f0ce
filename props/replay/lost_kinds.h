#pragma once

#include <string_view>

#include "props/replay/rank_digest.h"
#include "sim/trace/record.h"

namespace zeroproof {

// Whether a note's `lost` word, "coll.issue" or "coll.*", means this kind of event.
bool is_lost_word_for(std::string_view word, std::string_view kind);

// Adds what a note says is lost, with its text as the reason.
void add_lost_kinds(const NoteRecord& note, LostKinds& lost);

}  // namespace zeroproof
