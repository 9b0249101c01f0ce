#include "sim/trace/record_json.h"

#include <string_view>

#include "sim/trace/json_object.h"

namespace zeroproof {
namespace {

void append_clock(const TraceClock& clock, std::string& out) {
  JsonObject object(out);
  object.set("unit", std::string_view("ns")).set_unless_empty("source", clock.source);
  object.set("mono0", clock.mono0_ns).set("unix0", clock.unix0_ns);
  object.close();
}

void append_producer(const HeaderRecord& record, std::string& out) {
  JsonObject object(out);
  for (const auto& [key, value] : record.producer) {
    if (value) {
      object.set(key, *value);
    } else {
      object.key(key) += "null";
    }
  }
  object.close();
}

void append_checks(const HeaderRecord& record, std::string& out) {
  out += '[';
  for (const TraceCheck& check : record.checks) {
    if (out.back() != '[') out += ',';
    JsonObject object(out);
    object.set("name", check.name).set("ok", check.is_ok).set_unless_empty("detail", check.detail);
    object.close();
  }
  out += ']';
}

bool is_integral(std::string_view dtype) {
  return dtype.find("int") != std::string_view::npos || dtype == "bool";
}

void append_edges(const std::vector<std::optional<GraphEdge>>& edges, std::string& out) {
  out += '[';
  for (const auto& edge : edges) {
    if (out.back() != '[') out += ',';
    if (edge) {
      append_json(std::vector<std::int64_t>{edge->node.value, edge->slot}, out);
    } else {
      out += "null";
    }
  }
  out += ']';
}

void append_inputs(const std::vector<std::optional<NodeId>>& inputs, std::string& out) {
  out += '[';
  for (const auto& input : inputs) {
    if (out.back() != '[') out += ',';
    out += input ? std::to_string(input->value) : "null";
  }
  out += ']';
}

void append_node(const GraphNode& node, std::string& out) {
  const bool is_leaf = node.sequence_nr == kAccumulateGradSequence;
  JsonObject object(out);
  object.set("id", node.id.value).set("name", node.name);
  object.set("seq", is_leaf ? std::int64_t{-1} : static_cast<std::int64_t>(node.sequence_nr));
  append_edges(node.next, object.key("next"));
  object.set_unless_empty("param", node.param);
  object.close();
}

}  // namespace

void append_json_line(const HeaderRecord& record, std::string& out) {
  JsonObject object(out);
  object.set("rec", std::string_view("header")).set("format", std::string_view("hooktrace"));
  object.set("version", std::vector(record.version.begin(), record.version.end()));
  object.set("rank", record.rank).set("world", record.world);
  append_clock(record.clock, object.key("clock"));
  if (!record.producer.empty()) append_producer(record, object.key("producer"));
  object.set_unless_empty("program", record.program);
  object.set_unless_empty("desc", record.description).set_unless_empty("dtype", record.dtype);
  object.set_unless_empty("policy", record.policy).set_unless_empty("mode", record.mode);
  if (record.seed) object.set("seed", *record.seed);
  if (record.stage) object.set("stage", *record.stage);
  object.set_unless_empty("expect", record.expect);
  if (record.is_match) object.set("match", *record.is_match);
  if (!record.checks.empty()) append_checks(record, object.key("checks"));
  object.set_unless_empty("notes", record.notes);
  object.close();
  out += '\n';
}

void append_json_line(const ThreadRecord& record, std::string& out) {
  JsonObject object(out);
  object.set("rec", std::string_view("thread")).set("th", record.thread);
  object.set("name", record.name).set("main", record.is_main).close();
  out += '\n';
}

void append_json_line(const ParamRecord& record, std::string& out) {
  JsonObject object(out);
  object.set("rec", std::string_view("param")).set("id", record.id).set("name", record.name);
  object.set("shape", record.shape).set("dtype", record.dtype);
  object.set("requires_grad", record.requires_grad).close();
  out += '\n';
}

void append_json_line(const TensorRecord& record, std::string& out) {
  JsonObject object(out);
  object.set("rec", std::string_view("tensor")).set("role", record.role).set("name", record.name);
  if (record.shape) object.set("shape", *record.shape);
  object.set_unless_empty("dtype", record.dtype);
  std::string& values = object.key("value");
  if (record.values) {
    values += '[';
    for (const double value : *record.values) {
      if (values.back() != '[') values += ',';
      append_json_number(value, is_integral(record.dtype), values);
    }
    values += ']';
  } else {
    values += "null";
  }
  object.close();
  out += '\n';
}

void append_json_line(const GroupRecord& record, std::string& out) {
  JsonObject object(out);
  object.set("rec", std::string_view("group")).set("name", record.name);
  if (record.ranks) object.set("ranks", *record.ranks);
  object.close();
  out += '\n';
}

void append_json_line(const GraphRecord& record, std::string& out) {
  const GraphSnapshot& graph = record.graph;
  JsonObject object(out);
  object.set("rec", std::string_view("graph")).set("call", graph.call);
  append_edges(graph.roots, object.key("roots"));
  object.set("accumulate", graph.accumulate);
  if (graph.inputs) append_inputs(*graph.inputs, object.key("inputs"));
  if (graph.is_opaque) object.set("opaque", true);
  std::string& nodes = object.key("nodes");
  nodes += '[';
  for (const GraphNode& node : graph.nodes) {
    if (nodes.back() != '[') nodes += ',';
    append_node(node, nodes);
  }
  nodes += ']';
  object.close();
  out += '\n';
}

void append_json_line(const NoteRecord& record, std::string& out) {
  JsonObject object(out);
  object.set("rec", std::string_view("note")).set("text", record.text).close();
  out += '\n';
}

void append_json_line(const EndRecord& record, std::string& out) {
  JsonObject object(out);
  object.set("rec", std::string_view("end")).set("events", record.events);
  object.set("records", record.records).close();
  out += '\n';
}

}  // namespace zeroproof
