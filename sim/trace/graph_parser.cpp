#include "sim/trace/graph_parser.h"

#include <fmt/format.h>

#include "sim/trace/field_reader.h"

namespace zeroproof {
namespace {

using Values = std::span<const JsonLineValue>;
using Edges = std::vector<std::optional<GraphEdge>>;

// null, or [null, slot]: an invalid edge.
bool parse_edge(Values values, std::size_t at, std::optional<GraphEdge>& out) {
  if (values[at].kind == JsonLineKind::null) return true;
  if (values[at].kind != JsonLineKind::array || values[at].end != at + 3) return false;
  const JsonLineValue& node = values[at + 1];
  const JsonLineValue& slot = values[at + 2];
  if (slot.kind != JsonLineKind::integer || !std::in_range<std::int32_t>(slot.integer))
    return false;
  if (node.kind == JsonLineKind::null) return true;
  out = GraphEdge{NodeId{node.integer}, static_cast<std::int32_t>(slot.integer)};
  return node.kind == JsonLineKind::integer;
}

void parse_edges(FieldReader& fields, Values values, std::string_view key, Edges& out) {
  const std::size_t list = fields.find(key);
  if (list == 0) return fields.lacks(key);
  if (values[list].kind != JsonLineKind::array) return fields.wrong(key, list);
  for (std::size_t i = list + 1; i < values[list].end; i = values[i].end) {
    if (!parse_edge(values, i, out.emplace_back())) {
      fields.fail_with(
          fmt::format("graph: \"{}\" has {}, expected [node, slot] or null; correct "
                      "the producer",
                      key, describe(values[i])));
    }
  }
}

void parse_sequence(FieldReader& fields, GraphNode& out, GraphSnapshot& graph) {
  std::optional<std::int64_t> sequence;
  fields.want("seq", sequence);
  if (fields.find("seq") == 0) fields.lacks("seq");
  if (!sequence) {
    graph.is_opaque = true;
  } else if (*sequence < -1) {
    fields.fail_with(
        fmt::format("graph node: seq {} is below -1; correct the producer", *sequence));
  } else if (*sequence >= 0) {
    out.sequence_nr = static_cast<std::uint64_t>(*sequence);
  }
}

ParseResult parse_node(Values values, std::size_t at, GraphSnapshot& graph) {
  if (values[at].kind != JsonLineKind::object) {
    return tl::unexpected(fmt::format("graph node is {}, expected an object; correct the producer",
                                      describe(values[at])));
  }
  FieldReader fields("graph node", values, at);
  GraphNode& node = graph.nodes.emplace_back();
  fields.need("id", node.id.value).need("name", node.name).want("param", node.param);
  parse_sequence(fields, node, graph);
  parse_edges(fields, values, "next", node.next);
  return fields.result();
}

void parse_inputs(FieldReader& fields, Values values, GraphSnapshot& out) {
  const std::size_t list = fields.find("inputs");
  if (list == 0 || values[list].kind == JsonLineKind::null) return;
  if (values[list].kind != JsonLineKind::array) return fields.wrong("inputs", list);
  auto& inputs = out.inputs.emplace();
  for (std::size_t i = list + 1; i < values[list].end; i = values[i].end) {
    auto& input = inputs.emplace_back();
    if (values[i].kind == JsonLineKind::null) continue;
    if (values[i].kind != JsonLineKind::integer) return fields.wrong("inputs", i);
    input = NodeId{values[i].integer};
  }
}

}  // namespace

ParseResult parse_graph(Values values, GraphSnapshot& out) {
  FieldReader fields("graph", values, 0);
  fields.need("call", out.call).want("accumulate", out.accumulate).want("opaque", out.is_opaque);
  parse_edges(fields, values, "roots", out.roots);
  parse_inputs(fields, values, out);
  const std::size_t nodes = fields.find("nodes");
  if (nodes == 0) {
    fields.lacks("nodes");
  } else if (values[nodes].kind != JsonLineKind::array) {
    fields.wrong("nodes", nodes);
  }
  if (auto parsed = fields.result(); !parsed) return parsed;
  for (std::size_t i = nodes + 1; i < values[nodes].end; i = values[i].end) {
    if (auto parsed = parse_node(values, i, out); !parsed) return parsed;
  }
  return {};
}

}  // namespace zeroproof
