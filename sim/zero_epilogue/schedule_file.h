#pragma once

#include "sim/zero_epilogue/token.h"

namespace zeroproof::zero_epilogue {

// A schedule as a file (*.zpe): the token in the first line, then an event a line, "1 hook 3" for
// hook 3 on rank 1. The names outlive a change of the rules.
struct SavedSchedule {
  Token token;
  std::vector<Event> events;
};

std::string event_word(RankEvent event);  // "hook 3", "launch", ...
std::string schedule_file_text(const SavedSchedule& schedule);

// Code unreadable; `where` is the file's name. Lines that start with # and empty ones are left out.
Result<SavedSchedule> parse_schedule_file(std::string_view text, std::string_view where);

}  // namespace zeroproof::zero_epilogue
