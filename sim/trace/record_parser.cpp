#include "sim/trace/record_parser.h"

#include <fmt/format.h>

#include "sim/trace/field_reader.h"
#include "sim/trace/graph_parser.h"

namespace zeroproof {
namespace {

using Values = std::span<const JsonLineValue>;

ParseResult parse_version(FieldReader& fields, HeaderRecord& out) {
  std::string format;
  std::vector<std::int64_t> version;
  fields.need("format", format).need("version", version);
  if (auto sane = fields.result(); !sane) return sane;
  if (format != "hooktrace") {
    return tl::unexpected(
        fmt::format("format is \"{}\", expected \"hooktrace\"", printable(format)));
  }
  if (version.size() != 2) {
    fields.wrong("version", fields.find("version"));
    return fields.result();
  }
  if (version[0] != 1) {
    return tl::unexpected(
        fmt::format("hooktrace version {}.{} is not supported; this program reads "
                    "1.x, use a release that reads {}.x",
                    version[0], version[1], version[0]));
  }
  out.version = {version[0], version[1]};
  return {};
}

ParseResult parse_clock(Values values, std::size_t at, TraceClock& out) {
  FieldReader fields("header clock", values, at);
  std::string unit;
  fields.need("unit", unit).need("mono0", out.mono0_ns).need("unix0", out.unix0_ns);
  fields.want("source", out.source);
  if (unit != "ns")
    fields.fail_with(fmt::format("header clock: unit is \"{}\", expected \"ns\"", printable(unit)));
  return fields.result();
}

// Strings as they are, null as absent value, anything else by its text.
void parse_producer(Values values, std::size_t at, HeaderRecord& out) {
  for (std::size_t i = at + 1; i < values[at].end; i = values[i].end) {
    auto& [key, value] = out.producer.emplace_back(values[i].key, std::nullopt);
    if (values[i].kind == JsonLineKind::boolean) {
      value = values[i].boolean ? "true" : "false";
    } else if (values[i].kind != JsonLineKind::null) {
      value = values[i].text;
    }
  }
}

ParseResult parse_checks(Values values, std::size_t at, std::vector<TraceCheck>& out) {
  for (std::size_t i = at + 1; i < values[at].end; i = values[i].end) {
    if (values[i].kind != JsonLineKind::object) {
      return tl::unexpected(
          fmt::format("header check is {}, expected an object", describe(values[i])));
    }
    TraceCheck& check = out.emplace_back();
    FieldReader fields("header check", values, i);
    fields.need("name", check.name).need("ok", check.is_ok).want("detail", check.detail);
    if (auto parsed = fields.result(); !parsed) return parsed;
  }
  return {};
}

ParseResult parse(Values values, HeaderRecord& out) {
  FieldReader fields("header", values, 0);
  if (auto known = parse_version(fields, out); !known) return known;
  fields.need("rank", out.rank).need("world", out.world);
  fields.want("program", out.program).want("desc", out.description).want("dtype", out.dtype);
  fields.want("policy", out.policy).want("mode", out.mode).want("seed", out.seed);
  fields.want("stage", out.stage).want("match", out.is_match).want("expect", out.expect);
  fields.want("notes", out.notes);
  const auto nested = [&](std::string_view key, JsonLineKind kind) -> std::size_t {
    const std::size_t at = fields.find(key);
    if (at == 0 || values[at].kind == JsonLineKind::null) return 0;
    if (values[at].kind == kind) return at;
    fields.wrong(key, at);
    return 0;
  };
  const std::size_t clock = nested("clock", JsonLineKind::object);
  const std::size_t producer = nested("producer", JsonLineKind::object);
  const std::size_t checks = nested("checks", JsonLineKind::array);
  if (clock == 0) fields.lacks("clock");
  if (out.rank < 0 || out.rank >= out.world) {
    fields.fail_with(fmt::format("header: rank {} of a world of {}", out.rank, out.world));
  }
  if (auto parsed = fields.result(); !parsed) return parsed;
  if (producer != 0) parse_producer(values, producer, out);
  if (auto parsed = parse_clock(values, clock, out.clock); !parsed) return parsed;
  return checks == 0 ? ParseResult() : parse_checks(values, checks, out.checks);
}

ParseResult parse(Values values, ThreadRecord& out) {
  FieldReader fields("thread", values, 0);
  return fields.need("th", out.thread).need("name", out.name).want("main", out.is_main).result();
}

ParseResult parse(Values values, ParamRecord& out) {
  FieldReader fields("param", values, 0);
  fields.need("id", out.id).need("name", out.name).need("shape", out.shape);
  return fields.need("dtype", out.dtype).want("requires_grad", out.requires_grad).result();
}

ParseResult parse(Values values, TensorRecord& out) {
  FieldReader fields("tensor", values, 0);
  fields.need("role", out.role).need("name", out.name);
  fields.want("shape", out.shape).want("dtype", out.dtype).want("value", out.values);
  if (fields.find("value") == 0) fields.lacks("value");
  return fields.result();
}

ParseResult parse(Values values, GroupRecord& out) {
  FieldReader fields("group", values, 0);
  fields.need("name", out.name).want("ranks", out.ranks);
  return fields.want("desc", out.description).want("backend", out.backend).result();
}

ParseResult parse(Values values, NoteRecord& out) {
  FieldReader fields("note", values, 0);
  fields.need("text", out.text).want("observer", out.observer).want("lost", out.lost);
  return fields.result();
}

ParseResult parse(Values values, WrapperRecord& out) {
  FieldReader fields("wrapper", values, 0);
  fields.need("model", out.model).need("kind", out.kind).want("class", out.class_name);
  fields.want("group", out.group).want("size", out.size).want("comm_hook", out.comm_hook);
  fields.want("understood", out.is_understood).want("reason", out.reason);
  fields.want("static_graph", out.has_static_graph).want("find_unused", out.finds_unused);
  fields.want("trainable", out.trainable).want("frozen", out.frozen);
  return fields.want("ignored", out.ignored).result();
}

ParseResult parse(Values values, OptimizerRecord& out) {
  FieldReader fields("optimizer", values, 0);
  fields.need("id", out.id).want("class", out.class_name).want("params", out.params);
  fields.want("unknown", out.unknown).want("frozen", out.frozen);
  return fields.want("engine", out.engine).result();
}

ParseResult parse(Values values, NumbersRecord& out) {
  FieldReader fields("numbers", values, 0);
  std::string when;
  fields.need("step", out.step).need("when", when).need("params", out.params);
  fields.want("optimizer", out.optimizer).want("engine", out.engine).want("bad", out.bad);
  fields.want("grad_hash", out.grad_hashes).want("param_hash", out.param_hashes);
  fields.want("grad_norm", out.grad_norms).want("param_norm", out.param_norms);
  out.is_after_step = when == "after_step";
  if (!out.is_after_step && when != "before_step")
    fields.fail_with(fmt::format("numbers: \"when\" is \"{}\", expected before_step or after_step",
                                 printable(when)));
  for (const std::size_t size : {out.grad_hashes.size(), out.param_hashes.size(),
                                 out.grad_norms.size(), out.param_norms.size()})
    if (size != 0 && size != out.params.size())
      fields.fail_with(
          fmt::format("numbers: a list of {} beside {} params", size, out.params.size()));
  return fields.result();
}

ParseResult parse(Values values, EndRecord& out) {
  FieldReader fields("end", values, 0);
  return fields.need("events", out.events).need("records", out.records).result();
}

template <class T>
ParseResult parse_as(Values values, Record& record) {
  return parse(values, record.body.emplace<T>());
}

}  // namespace

ParseResult RecordParser::parse(std::string_view line, Record& record) {
  const auto values = json_.parse(line);
  was_json_ = values.has_value();
  if (!values) return tl::unexpected(values.error());
  std::string type;
  FieldReader fields("record", *values, 0);
  if (auto parsed = fields.need("rec", type).result(); !parsed) return parsed;
  if (type == "ev") {
    auto* event = std::get_if<HookEvent>(&record.body);
    return events_.parse(*values, event == nullptr ? record.body.emplace<HookEvent>() : *event);
  }
  if (type == "tensor") return parse_as<TensorRecord>(*values, record);
  if (type == "param") return parse_as<ParamRecord>(*values, record);
  if (type == "thread") return parse_as<ThreadRecord>(*values, record);
  if (type == "group") return parse_as<GroupRecord>(*values, record);
  if (type == "wrapper") return parse_as<WrapperRecord>(*values, record);
  if (type == "optimizer") return parse_as<OptimizerRecord>(*values, record);
  if (type == "numbers") return parse_as<NumbersRecord>(*values, record);
  if (type == "note") return parse_as<NoteRecord>(*values, record);
  if (type == "header") return parse_as<HeaderRecord>(*values, record);
  if (type == "end") return parse_as<EndRecord>(*values, record);
  if (type == "graph") return parse_graph(*values, record.body.emplace<GraphRecord>().graph);
  record.body = UnknownRecord{std::move(type)};
  return {};
}

}  // namespace zeroproof
