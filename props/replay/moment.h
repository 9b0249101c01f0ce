#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "props/replay/diagnosis.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/internal/props/name_list.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// "all_reduce number 4 of group world (40 bytes)".
std::string collective_words(const HookEvent& event, const NameTable& names);

// An event as a moment of a story: its words, its clock, its rank.
DiagnosisMoment moment_of(const HookEvent& event, const NameTable& names);

// The value of a string member of a line, for fields that HookEvent has no place for; empty when
// there is none. Escapes stay as they are written.
std::string_view line_text(std::string_view line, std::string_view key);

// "an all_reduce", "a broadcast".
std::string with_article(std::string_view words);

}  // namespace zeroproof
