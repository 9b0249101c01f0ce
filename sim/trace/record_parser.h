#pragma once

#include <string_view>

#include "sim/trace/event_parser.h"
#include "sim/trace/json_line.h"
#include "sim/trace/record.h"
#include "zeroproof/internal/model/names.h"

namespace zeroproof {

// Turns one line into a Record. Not thread-safe; `names` must outlive the parser.
class RecordParser {
 public:
  explicit RecordParser(NameTable& names) : events_(names) {}

  // Sets `record.body`; an event keeps the memory of the event that was there. kJsonPadding
  // readable bytes must follow `line`. After an error the body is arbitrary.
  ParseResult parse(std::string_view line, Record& record);

  // Whether the last line was correct JSON, whatever its content.
  bool was_json() const { return was_json_; }

 private:
  JsonLine json_;
  EventParser events_;
  bool was_json_ = false;
};

}  // namespace zeroproof
