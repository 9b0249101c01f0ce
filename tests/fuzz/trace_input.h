#pragma once

#include <string>
#include <string_view>

#include "sim/trace/order_token.h"
#include "sim/trace/reader.h"
#include "sim/trace/structure_check.h"

namespace zeroproof {

// Everything that looks at a trace from outside, over any bytes. Returns the number of records,
// so that the work cannot be optimised away.
inline std::uint64_t read_any_bytes(std::string_view bytes) {
  NameTable names;
  auto reader = TraceReader::from_bytes(bytes, "input", names, {.max_line_bytes = 1 << 20});
  if (!reader) return 0;
  StructureCheck check(names);
  std::string token;
  std::uint64_t records = 0;
  while (true) {
    const auto record = reader->next();
    if (!record || *record == nullptr) break;
    ++records;
    check.on_record(**record);
    if (const HookEvent* event = (*record)->event()) {
      token.clear();
      append_order_token(*event, names, TokenDetail::engine, token);
      append_order_token(*event, names, TokenDetail::order, token);
    }
  }
  check.finish();
  return records;
}

}  // namespace zeroproof
