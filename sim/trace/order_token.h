#pragma once

#include <string>

#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

enum class TokenDetail {
  order,   // the hook order that programs compare
  engine,  // also engine and manager calls, parameters, buckets, collectives, optimizer
};

// Appends the order token of `event` (docs/reference/trace_format.md section 11) to `out`. Returns
// false, without a token, for an event that is not part of the order. Tokens hold no ids and no
// times, so equal behaviour gives equal tokens.
bool append_order_token(const HookEvent& event, const NameTable& names, TokenDetail detail,
                        std::string& out);

}  // namespace zeroproof
