#include "props/reference/recording.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <variant>

#include "props/mark.h"
#include "props/reference/walker.h"
#include "sim/trace/reader.h"

namespace zeroproof::reference {
namespace {

// "l1" for "l1.weight"; the root for "weight".
std::string owner_of(const std::string& parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? "model" : parameter.substr(0, dot);
}

DType dtype_named(const std::string& name) {
  if (name == "bf16") return DType::bfloat16;
  if (name == "fp16") return DType::float16;
  return dtype_of(name).value_or(DType::float32);
}

// Collects a World from the records of one trace.
class Reading {
 public:
  Reading(const HeaderRecord& header, const NameTable& names) : names_(names) {
    world_.config.stage = static_cast<int>(header.stage.value_or(-1));
    world_.config.bf16.enabled = header.dtype == "bf16";
    world_.config.fp16.enabled = header.dtype == "fp16";
    world_.ranks = header.world;
    world_.dialect = Dialect::upstream;
    world_.has_configuration = false;
    world_.unseen.lacks_gradients = false;
    add_module("model");
  }

  void read(const Record& record) {
    if (const auto* param = std::get_if<ParamRecord>(&record.body)) add(*param);
    if (const HookEvent* event = record.event()) see(*event);
  }

  // After the last record.
  const World& world() {
    mark_leaves();
    return world_;
  }
  std::size_t engines() const { return engines_.size(); }

 private:
  Module& add_module(const std::string& name) {
    const auto at = std::ranges::find(world_.modules, name, &Module::name);
    return at != world_.modules.end() ? *at : world_.modules.emplace_back(Module{.name = name});
  }

  void add(const ParamRecord& param) {
    const auto is_known = std::ranges::find(world_.parameters, param.name, &Parameter::name);
    if (is_known != world_.parameters.end()) return;
    add_module(owner_of(param.name)).parameters.push_back(world_.parameters.size());
    world_.parameters.push_back({.name = param.name,
                                 .elements = std::accumulate(param.shape.begin(), param.shape.end(),
                                                             std::int64_t{1}, std::multiplies<>()),
                                 .requires_grad = param.requires_grad,
                                 .is_trained = param.requires_grad,
                                 .group = param.requires_grad ? 0 : -1,
                                 .wire = dtype_named(param.dtype),
                                 .gathers_as = dtype_named(param.dtype)});
  }

  void see(const HookEvent& event) {
    if (!event.engine.is_none()) engines_.insert(event.engine);
    const std::string name(names_.text(event.name));
    if (event.kind == EventKind::mark) read_mark(name);
    if (event.kind == EventKind::zmod_fetch) fetched_.insert(name);
    if (event.kind == EventKind::module_fwd_pre) ran_.insert(name);
    if (event.kind == EventKind::module_fwd_pre || event.kind == EventKind::zmod_fetch)
      add_module(name);
    if (event.kind != EventKind::zparam_status) return;
    const auto at =
        std::ranges::find(world_.parameters, names_.text(event.param), &Parameter::name);
    if (at == world_.parameters.end()) return;
    at->is_persistent = at->is_persistent || event.is_persistent;
    if (event.numel >= 0) at->elements = event.numel;
  }

  // 3.7: a module that runs and never fetches lies below a leaf, which is the nearest that does.
  void mark_leaves() {
    if (world_.config.stage != 3) return;
    for (const std::string& name : ran_) {
      if (fetched_.contains(name)) continue;
      std::string above = name;
      while (!above.empty() && !fetched_.contains(above)) {
        const std::size_t dot = above.rfind('.');
        above = dot == std::string::npos ? "" : above.substr(0, dot);
      }
      if (above.empty()) continue;
      add_module(name).is_below_leaf = true;
      add_module(above).is_leaf = true;
      for (Parameter& parameter : world_.parameters)
        if (parameter.name.starts_with(above + ".")) parameter.is_of_leaf = true;
    }
  }

  void read_mark(const std::string& label) {
    ZeroConfig& config = world_.config;
    const auto set = [&](std::string_view word, std::int64_t& field) {
      const auto number = mark_number(label, word);
      if (number) field = static_cast<std::int64_t>(*number);
      return number.has_value();
    };
    set("gradient_accumulation_steps", config.gradient_accumulation_steps);
    set("stage3_prefetch_bucket_size", config.stage3_prefetch_bucket_size);
    set("stage3_max_live_parameters", config.stage3_max_live_parameters);
    if (set("reduce_bucket_size", config.reduce_bucket_size)) world_.has_configuration = true;
    if (label == "managed_gradient_accumulation:0") config.managed_gradient_accumulation = false;
  }

  const NameTable& names_;
  World world_;
  std::set<EngineId> engines_;
  std::set<std::string> ran_;      // modules
  std::set<std::string> fetched_;  // the same
};

template <class See>
Result<HeaderRecord> for_each_record(const std::string& path, NameTable& names, See see) {
  auto reader = TraceReader::open(path, names);
  if (!reader) return tl::unexpected(reader.error());
  while (true) {
    const auto record = reader->next();
    if (!record) return tl::unexpected(record.error());
    if (*record == nullptr) return reader->header();
    see(**record);
  }
}

}  // namespace

Result<WalkedRecording> walk_recording(const std::string& path) {
  NameTable names;
  auto opened = TraceReader::open(path, names);
  if (!opened) return tl::unexpected(opened.error());
  Reading reading(opened->header(), names);
  const auto first = for_each_record(path, names, [&](const Record& it) { reading.read(it); });
  if (!first) return tl::unexpected(first.error());
  WalkedRecording walked;
  const World& world = reading.world();
  if (world.config.stage < 0) walked.reason = "the header has no stage";
  if (reading.engines() > 1) walked.reason = "events of several engines cannot be distinguished";
  if (!walked.reason.empty()) return walked;
  walked.is_walked = true;
  Walker walker(names, {world});
  bool has_end = false;
  const auto second = for_each_record(path, names, [&](const Record& it) {
    has_end = has_end || std::holds_alternative<EndRecord>(it.body);
    if (const HookEvent* event = it.event()) walker.on_event(*event);
  });
  if (!second) return tl::unexpected(second.error());
  walker.finish(has_end);
  walked.findings = walker.findings();
  walked.coverage = walker.coverage();
  return walked;
}

}  // namespace zeroproof::reference
