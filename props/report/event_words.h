#pragma once

#include <string>

#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// An event in the words of the field: "hook p4", "prologue", "epilogue (automatic)",
// "graph task 0 begins".
struct EventWords {
  std::string text;
  bool is_detail = false;  // bookkeeping inside a step that has a line of its own
};

// An epilogue inside a graph task was run by a hook or a callback (automatic); one outside by
// engine.backward (explicit).
EventWords event_words(const HookEvent& event, const NameTable& names);

}  // namespace zeroproof
