#include "tests/peer/support/world.h"

#include <optional>

#include "engine/zero/stage3/leaf_modules.h"
#include "tests/peer/support/faulty_runtime.h"
#include "zeroproof/engine/runtime/fault.h"

namespace zeroproof::peer {

std::size_t Recording::count(EventKind kind, const std::string& name, std::size_t begin) const {
  std::size_t found = 0;
  for (std::size_t i = begin; i < events.size(); ++i)
    if (events[i].kind == kind && (name.empty() || names.text(events[i].name) == name)) ++found;
  return found;
}

std::vector<std::vector<std::string>> Recording::parameters(EventKind kind,
                                                            std::size_t begin) const {
  std::vector<std::vector<std::string>> found;
  for (std::size_t i = begin; i < events.size(); ++i) {
    if (events[i].kind != kind) continue;
    found.emplace_back();
    for (const NameId name : events[i].params) found.back().emplace_back(names.text(name));
    if (events[i].params.empty()) found.back().emplace_back(names.text(events[i].param));
  }
  return found;
}

std::size_t Recording::count_collectives(const std::string& op, std::size_t begin) const {
  return count(EventKind::coll_issue, op, begin);
}

Engined::Engined(Autograd& ag, ModulePtr module, const ZeroConfig& config, Runtime& runtime,
                 const EngineOptions& options)
    : module_(std::move(module)) {
  if (const auto valid = validate(config); !valid) throw Failed(valid.error().text);
  if (config.stage == 3)
    if (const auto known = check_leaf_classes(config.leaf_module, *module_); !known)
      throw Failed(known.error().text);
  LossScaler scaler = LossScaler::of(config);
  if (options.custom_loss_scale)
    require(scaler.set_custom(*options.custom_loss_scale).has_value(), "a custom loss scale");
  auto core = std::make_unique<Engine::Core>(ag, *module_, config, runtime, options, scaler);
  core_ = core.get();
  engine_ = std::make_unique<Engine>(std::move(core));
}

PartitionedParameter& Engined::partitioned(const std::string& name) {
  for (PartitionedParameter& parameter : zero3().gatherer().parameters())
    if (parameter.parameter().name == name) return parameter;
  throw Failed("there is no parameter " + name);
}

Engined Rank::engine(const NetMaker& make, const ZeroConfig& config) {
  return engine(make, config, twin.options);
}

Engined Rank::engine(const NetMaker& make, const ZeroConfig& config, EngineOptions options) {
  options.policy = twin.options.policy;
  options.quirks = twin.options.quirks;
  options.fallback_rule = twin.options.fallback_rule;
  return Engined(ag, make(), config, runtime, options);
}

void on_ranks(const WorldOptions& options, const Twin& twin,
              const std::function<void(Rank& rank)>& program) {
  const auto count = static_cast<std::size_t>(options.ranks);
  std::vector<Recording> recordings(count);
  std::vector<std::unique_ptr<Journal>> journals;
  HostWorldOptions world_options{
      .world_size = options.ranks, .timeout_ms = 60'000, .device = options.device};
  for (std::size_t i = 0; i < count; ++i) {
    Recording& recording = recordings[i];
    journals.push_back(
        std::make_unique<Journal>(recording, recording.names, static_cast<std::int32_t>(i)));
    world_options.observers.push_back(
        {.journal = journals.back().get(),
         .accesses = options.accesses.empty() ? nullptr : options.accesses.at(i)});
  }
  HostWorld world(world_options);
  world.run([&](Runtime& runtime) {
    const auto index = static_cast<std::size_t>(runtime.rank());
    std::optional<FaultyRuntime> faulty;
    if (is_seam_fault(twin.fault)) faulty.emplace(runtime, twin.fault);
    Rank rank(faulty ? *faulty : runtime, recordings[index], twin);
    journals[index]->set_autograd(&rank.ag);
    program(rank);
  });
}

ZeroConfig base_config(int stage, DType dtype) {
  ZeroConfig config;
  config.stage = stage;
  config.stage3_param_persistence_threshold = 0;
  config.gradient_clipping = 0.0;
  config.bf16.enabled = dtype == DType::bfloat16;
  config.fp16.enabled = dtype == DType::float16;
  config.fp16.initial_scale_power = 8;
  return config;
}

void require_throws(const std::function<void()>& body, const std::string& text) {
  try {
    body();
  } catch (const RuntimeFault&) {  // another rank failed, with whatever text
    throw;
  } catch (const std::exception& error) {
    const std::string said = error.what();
    require(said.find(text) != std::string::npos, "'" + said + "' does not say '" + text + "'");
    return;
  }
  throw Failed("nothing was thrown, but expected: " + text);
}

void require_released(Engined& engine, const std::string& when) {
  for (PartitionedParameter& parameter : engine.zero3().gatherer().parameters()) {
    const std::string& name = parameter.parameter().name;
    require(!parameter.is_used(), when + ": somebody still uses " + name);
    if (parameter.is_persistent() || parameter.is_external()) continue;
    require(parameter.is_partitioned(), when + ": " + name + " is not partitioned");
  }
  require(!engine.zero3().coordinator().has_active_backward(), when + ": a backward is active");
  require(engine.zero3().forward_stack_depth() == 0, when + ": the module stack is not empty");
}

void require_persistent_available(Engined& engine, const std::string& when) {
  for (PartitionedParameter& parameter : engine.zero3().gatherer().parameters())
    if (parameter.is_persistent())
      require(parameter.is_available(),
              when + ": persistent " + parameter.parameter().name + " is not available");
}

}  // namespace zeroproof::peer
