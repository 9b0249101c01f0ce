#include "props/interpreter/engine_target.h"

#include <algorithm>
#include <stdexcept>

#include "model/check.h"
#include "props/interpreter/observe.h"
#include "props/program/config_document.h"
#include "zeroproof/engine/runtime/fault.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::program {
namespace {

constexpr int kAnother = 9;  // the id of an engine that is no engine of the program

}  // namespace

EngineTarget::EngineTarget(const Program& program, const ZeroConfig& config,
                           const EngineVariant& variant, const DataPlan& data, Runtime& runtime,
                           const Options& options)
    : program_(program),
      config_(config),
      variant_(variant),
      data_(data),
      short_(runtime),
      options_(options),
      autograd_(runtime.ops(), options.autograd),
      files_(*options.files),
      contexts_(program.engines.size()),
      modules_(program.engines.size()),
      engines_(program.engines.size()) {
  if (options.order) autograd_.set_scheduling(*options.order, OrderModel::any_topological);
  for (std::size_t i = 0; i < engines_.size(); ++i) make(i);
}

// --- making -------------------------------------------------------------------------------------

std::unique_ptr<TreeModule> EngineTarget::new_module(std::size_t engine, std::size_t seed_of) {
  const EngineSpec& spec = program_.engines[engine];
  TreeOptions options{.seed = kModelSeed + seed_of,
                      .is_real = data_.is_real(),
                      .watch = options_.models,
                      .subject = variant_.subject};
  if (program_.world.ranks_differ) options.seed += 100 * static_cast<std::uint64_t>(rank());
  options.mark_ready = [this, engine](const Tensor& parameter, bool is_ready) {
    engines_.at(engine)->set_gradient_ready(parameter, is_ready);
  };
  auto module =
      std::make_unique<TreeModule>(program_.model_of(spec.name), data_.table(spec.name), options);
  if (!options_.device.is_cpu())
    for (const nn::NamedParameter& named : module->named_parameters())
      named.tensor.set_data(named.tensor.on(options_.device));
  return module;
}

EngineOptions EngineTarget::options_of(std::size_t engine, TreeModule& module) const {
  const World::Autograd api = variant_.autograd.value_or(program_.world.autograd);
  EngineOptions options;
  options.id = EngineId{static_cast<std::int32_t>(engine)};
  options.name = engine_prefix(program_, engine);
  if (!options.name.empty()) options.name.pop_back();  // its dot
  options.policy = variant_.policy;
  options.custom_loss_scale = program_.engines[engine].custom_loss_scale;
  options.skips_frames = program_.world.skips_frames && config_.stage == 3;
  options.fallback_rule = variant_.fallback_rule;
  options.quirks = variant_.quirks;
  if (variant_.subject && variant_.subject->decorate_policy)
    options.decorate_policy = variant_.subject->decorate_policy;
  options.has_count_apis = api != World::Autograd::no_counts;
  options.has_callback_api = api == World::Autograd::full;
  options.parameter_groups = parameter_groups_of(program_, engine, module);
  return options;
}

// As it is, or as its ds_config.json says.
Result<ZeroConfig> EngineTarget::config_of(std::size_t engine) const {
  if (!program_.engines[engine].reads_document) return config_;
  auto parsed = parse_ds_config(config_document(config_), "ds_config.json");
  if (!parsed) return tl::unexpected(parsed.error());
  return with_batch_sizes(*parsed, program_.world.ranks);
}

void EngineTarget::make(std::size_t engine) {
  modules_[engine] = new_module(engine, engine);
  TreeModule& module = *modules_[engine];
  if (options_.models)
    options_.models->on_model(autograd_, module, engine_prefix(program_, engine));
  const auto config = config_of(engine);
  if (!config) throw train::ConfigurationRefused(config.error().text);
  auto made = Engine::initialize(autograd_, module, *config, runtime(), options_of(engine, module));
  if (!made) throw train::ConfigurationRefused(made.error().text);
  engines_[engine] = std::move(*made);
  name_parts(engine);
  age_scaler(engine);
}

// External parameters and leaf modules that the model declares.
void EngineTarget::name_parts(std::size_t engine) {
  const Model& model = program_.model_of(program_.engines[engine].name);
  TreeModule& root = *modules_[engine];
  for (const Module* const node : nodes_of(model)) {
    if (const auto* const external = std::get_if<ExternalUse>(&node->kind);
        external && external->is_registered) {
      nn::Module* const user = root.module_of(node->name);
      engines_[engine]->register_external_parameter(user ? *user : root,
                                                    root.weight_of(external->module));
    }
    const auto* const experts = std::get_if<Experts>(&node->kind);
    if (experts && experts->leaf_by == LeafBy::call && config_.stage == 3)
      engines_[engine]->set_leaf_module(*root.module_of(node->name));
  }
}

void EngineTarget::recreate(std::size_t engine) {
  engines_[engine].reset();
  modules_[engine].reset();
  make(engine);
}

EngineTarget::Footprint EngineTarget::footprint() {
  const Memory& memory = runtime().memory();
  return {.device_bytes = memory.stats(Placement::device).live_bytes,
          .host_bytes = memory.stats(Placement::host).live_bytes,
          .has_linear = static_cast<bool>(autograd_.global().linear)};
}

bool EngineTarget::make_temporary(std::size_t engine) {
  const Footprint before = footprint();
  {
    const auto module = new_module(engine, kAnother);
    EngineOptions options = options_of(engine, *module);
    options.id = EngineId{kAnother};
    options.name = "temporary";
    const auto made = Engine::initialize(autograd_, *module, config_, runtime(), options);
    if (!made) return false;
  }
  return footprint() == before;
}

std::optional<std::string> EngineTarget::try_config(const TryConfig& tried) {
  const std::size_t engine = 0;
  const std::string changed = changed_document(config_, tried.key, tried.value);
  auto parsed = parse_ds_config(changed, "ds_config.json");
  if (!parsed) return parsed.error().text;
  const auto config = with_batch_sizes(*parsed, program_.world.ranks);
  if (!config) return config.error().text;
  const auto module = new_module(engine, kAnother);
  EngineOptions options = options_of(engine, *module);
  options.id = EngineId{kAnother};
  options.name = "temporary";
  const auto made = Engine::initialize(autograd_, *module, *config, runtime(), options);
  return made ? std::nullopt : std::optional(made.error().text);
}

// --- calls --------------------------------------------------------------------------------------

TensorList EngineTarget::forward(std::size_t engine, const TensorList& inputs) {
  return engines_[engine]->forward(inputs);
}

Tensor EngineTarget::backward(std::size_t engine, const std::vector<std::size_t>&,
                              const Tensor& loss, const BackwardArguments& arguments) {
  return engines_[engine]->backward(loss, arguments);
}

void EngineTarget::tensor_backward(const std::vector<std::size_t>&, const Tensor& root,
                                   const Tensor& grad, const BackwardArguments& arguments) {
  autograd_.backward(TensorList{root}, TensorList{grad},
                     {.create_graph = arguments.create_graph,
                      .retain_graph = arguments.retain_graph || arguments.create_graph});
}

Tensor EngineTarget::scale(std::size_t engine, const Tensor& loss) {
  return engines_[engine]->scale(loss);
}

void EngineTarget::zero_grad(std::size_t engine) {
  engines_[engine]->zero_grad();
}

void EngineTarget::set_boundary(std::size_t engine, bool is_boundary) {
  engines_[engine]->set_gradient_accumulation_boundary(is_boundary);
}

bool EngineTarget::set_loss_scale(std::size_t engine, double loss_scale) {
  return static_cast<bool>(engines_[engine]->override_loss_scale(loss_scale));
}

bool EngineTarget::set_learning_rate(std::size_t engine, std::optional<std::size_t> group,
                                     double learning_rate) {
  Engine& it = *engines_[engine];
  return static_cast<bool>(group ? it.set_learning_rate(*group, learning_rate)
                                 : it.set_learning_rate(learning_rate));
}

void EngineTarget::no_sync(std::size_t engine, const Call& body) {
  engines_[engine]->no_sync(body);
}

void EngineTarget::coalesce(std::size_t engine, const Call& body) {
  engines_[engine]->coalesce_grad_reduction(body);
}

void EngineTarget::gathered(std::size_t engine, const TensorList& parameters,
                            std::optional<int> modifier, const Call& body) {
  engines_[engine]->gathered_parameters(parameters, modifier, [&] {
    const ScopedCount inside(contexts_[engine]);
    body();
  });
}

bool EngineTarget::capture(std::size_t engine, const Call& body) {
  return static_cast<bool>(engines_[engine]->capture(body));
}

// What fails for lack of memory is run again, once.
void EngineTarget::with_short_memory(int allocation, const Call& body, const Call& rewind) {
  short_.arm(allocation);
  try {
    body();
    short_.disarm();
    return;
  } catch (const RuntimeFault&) {
    short_.disarm();
  } catch (...) {
    short_.disarm();
    throw;
  }
  rewind();
  body();
}

void EngineTarget::register_external(std::size_t engine, const std::string& module) {
  TreeModule& root = *modules_[engine];
  engines_[engine]->register_external_parameter(root, root.weight_of(module));
}

void EngineTarget::set_leaf(std::size_t engine, const std::string& module) {
  nn::Module* const leaf = modules_[engine]->module_of(module);
  ZP_CHECK(leaf, "a leaf module is a module of its own");
  engines_[engine]->set_leaf_module(*leaf);
}

void EngineTarget::evaluate_guards(std::size_t engine) {
  Engine& it = *engines_[engine];
  it.set_guard_evaluation(true);
  for (const nn::NamedModule& named : modules_[engine]->named_modules())
    for (const Tensor* const parameter : named.module->own_parameters())
      (void)named.module->read(*parameter);
  it.set_guard_evaluation(false);
}

void EngineTarget::release_gathered(std::size_t engine) {
  engines_[engine]->release_gathered_parameters();
}

}  // namespace zeroproof::program
