#pragma once

#include <span>
#include <string>

#include "sim/trace/json_line.h"
#include "sim/trace/parse_result.h"
#include "zeroproof/internal/model/graph_snapshot.h"

namespace zeroproof {

// Reads a `graph` record (section 7 of the format). Whether its edges lead to nodes that exist is
// not checked here. A node without a sequence number makes the graph opaque.
ParseResult parse_graph(std::span<const JsonLineValue> values, GraphSnapshot& out);

}  // namespace zeroproof
