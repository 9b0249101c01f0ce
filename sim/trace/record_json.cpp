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

// An empty list stands for an absent one, an absent element is null.
template <class T, class Append>
void append_optionals(std::string_view name, const std::vector<std::optional<T>>& values,
                      JsonObject& object, const Append& append) {
  if (values.empty()) return;
  std::string& out = object.key(name);
  out += '[';
  for (const std::optional<T>& value : values) {
    if (out.back() != '[') out += ',';
    value ? append(*value, out) : static_cast<void>(out += "null");
  }
  out += ']';
}

void append_hashes(std::string_view name, const std::vector<std::optional<std::string>>& values,
                   JsonObject& object) {
  append_optionals(name, values, object,
                   [](std::string_view value, std::string& out) { append_json(value, out); });
}

void append_norms(std::string_view name, const std::vector<std::optional<double>>& values,
                  JsonObject& object) {
  append_optionals(name, values, object,
                   [](double value, std::string& out) { append_json_number(value, false, out); });
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
  object.set_unless_empty("desc", record.description);
  object.set_unless_empty("backend", record.backend).close();
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

void append_json_line(const WrapperRecord& record, std::string& out) {
  JsonObject object(out);
  object.set("rec", std::string_view("wrapper")).set("model", record.model);
  object.set("kind", record.kind).set_unless_empty("class", record.class_name);
  object.set_unless_empty("group", record.group).set("size", record.size);
  object.set("understood", record.is_understood).set_unless_empty("reason", record.reason);
  object.set("static_graph", record.has_static_graph).set("find_unused", record.finds_unused);
  object.set_unless_empty("comm_hook", record.comm_hook);
  if (record.trainable) object.set("trainable", *record.trainable);
  if (record.frozen) object.set("frozen", *record.frozen);
  object.set_unless_empty("ignored", record.ignored).close();
  out += '\n';
}

void append_json_line(const OptimizerRecord& record, std::string& out) {
  JsonObject object(out);
  object.set("rec", std::string_view("optimizer")).set("id", record.id);
  object.set_unless_empty("class", record.class_name).set("params", record.params);
  object.set("unknown", record.unknown).set("frozen", record.frozen);
  if (record.engine) object.set("engine", *record.engine);
  object.close();
  out += '\n';
}

void append_json_line(const NumbersRecord& record, std::string& out) {
  JsonObject object(out);
  object.set("rec", std::string_view("numbers")).set("step", record.step);
  object.set("when", std::string_view(record.is_after_step ? "after_step" : "before_step"));
  object.set("optimizer", record.optimizer).set("engine", record.engine);
  object.set("params", record.params);
  append_hashes("grad_hash", record.grad_hashes, object);
  append_hashes("param_hash", record.param_hashes, object);
  append_norms("grad_norm", record.grad_norms, object);
  append_norms("param_norm", record.param_norms, object);
  object.set_unless_empty("bad", record.bad).close();
  out += '\n';
}

void append_json_line(const NoteRecord& record, std::string& out) {
  JsonObject object(out);
  object.set("rec", std::string_view("note")).set("text", record.text);
  object.set_unless_empty("observer", record.observer);
  object.set_unless_empty("lost", record.lost).close();
  out += '\n';
}

void append_json_line(const EndRecord& record, std::string& out) {
  JsonObject object(out);
  object.set("rec", std::string_view("end")).set("events", record.events);
  object.set("records", record.records).close();
  out += '\n';
}

}  // namespace zeroproof
