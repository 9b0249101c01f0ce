#pragma once

#include <span>
#include <string_view>

#include "sim/trace/json_line.h"
#include "sim/trace/parse_result.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// The text of HookEvent::exception when a line says only `"exc":true`.
inline constexpr std::string_view kUnnamedException = "true";

// Turns the values of an `ev` line into a HookEvent. Fields that HookEvent has no member for are
// skipped. Not thread-safe; `names` must outlive the parser.
class EventParser {
 public:
  explicit EventParser(NameTable& names) : names_(names) {}

  // Overwrites `event`, keeping the memory it owns. After an error its content is arbitrary.
  ParseResult parse(std::span<const JsonLineValue> line, HookEvent& event);

 private:
  NameTable& names_;
};

}  // namespace zeroproof
