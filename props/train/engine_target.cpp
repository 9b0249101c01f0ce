#include "props/train/engine_target.h"

#include <algorithm>
#include <stdexcept>

#include "model/check.h"
#include "props/train/case_spec.h"
#include "props/train/case_worlds.h"
#include "props/train/guest_model.h"
#include "props/train/subject.h"

namespace zeroproof::train {
namespace {

constexpr std::size_t kAnother = 9;  // an engine that no scenario has

void append(std::vector<FullTensor>& all, const std::string& prefix, std::vector<FullTensor> more) {
  for (FullTensor& tensor : more) {
    tensor.name = prefix + tensor.name;
    all.push_back(std::move(tensor));
  }
}

// Whether it says which parameters are trained.
bool has_groups(const TrainScenario& scenario) {
  return scenario.parameter_groups > 1 || (scenario.spec && leaves_out(*scenario.spec));
}

// What is trained, in turns to the groups; with what is frozen, if they list it. None stays empty.
std::vector<TensorList> dealt(const nn::Module& module, const TrainScenario& scenario) {
  const std::size_t groups = scenario.parameter_groups;
  const bool lists_frozen = scenario.spec && scenario.spec->lists_frozen != 0;
  std::vector<TensorList> all(groups);
  std::size_t next = 0;
  for (const nn::NamedParameter& named : module.named_parameters()) {
    const auto is_same = [&](const Tensor& known) { return known.is_same(named.tensor); };
    const auto holds = [&](const TensorList& group) { return std::ranges::any_of(group, is_same); };
    if (scenario.spec && is_left_out(*scenario.spec, named.name)) continue;
    const bool is_listed = lists_frozen || named.tensor.requires_grad();
    if (is_listed && std::ranges::none_of(all, holds)) all[next++ % groups].push_back(named.tensor);
  }
  std::erase_if(all, [](const TensorList& group) { return group.empty(); });
  return all;
}

EngineOptions engine_options(const TrainScenario& scenario, const TrainCell& cell,
                             std::size_t index) {
  EngineOptions options;
  options.id = EngineId{static_cast<std::int32_t>(index)};
  options.name = engine_prefix(index);
  if (!options.name.empty()) options.name.pop_back();  // its dot
  options.policy = cell.policy;
  options.custom_loss_scale = custom_loss_scale_of(scenario, index);
  options.skips_frames = scenario.skips_frames && cell.stage == 3;
  options.fallback_rule = cell.fallback_rule;
  options.quirks = cell.quirks;
  if (cell.subject && cell.subject->decorate_policy)
    options.decorate_policy = cell.subject->decorate_policy;
  options.has_count_apis = cell.api != AutogradApi::none;
  options.has_callback_api = cell.api == AutogradApi::full;
  return options;
}

using Contents = std::vector<std::pair<DType, std::vector<double>>>;

Contents contents(const nn::Module& module) {
  Contents all;
  for (const nn::NamedParameter& named : module.named_parameters())
    all.emplace_back(named.tensor.dtype(), named.tensor.values());
  return all;
}

std::unique_ptr<ShortRuntime> short_runtime_of(const TrainScenario& scenario, Runtime& runtime) {
  const auto runs_short = [](const MicroSpec& micro) { return micro.shortage != 0; };
  if (!scenario.spec || std::ranges::none_of(scenario.spec->micros, runs_short)) return nullptr;
  return std::make_unique<ShortRuntime>(runtime);
}

}  // namespace

std::vector<TensorList> parameter_groups_of(const nn::Module& module,
                                            const TrainScenario& scenario) {
  return has_groups(scenario) ? dealt(module, scenario) : std::vector<TensorList>();
}

EngineTarget::EngineTarget(const TrainScenario& scenario, const TrainCell& cell, Runtime& runtime,
                           const Options& options)
    : scenario_(scenario),
      cell_(cell),
      short_(short_runtime_of(scenario, runtime)),
      runtime_(short_ ? *short_ : runtime),
      options_(options),
      config_(config_of(scenario, cell)),
      autograd_(runtime.ops(), options.autograd) {
  if (short_) autograd_.add_listener(*short_);
  if (options.order) autograd_.set_scheduling(*options.order, OrderModel::any_topological);
  for (const ModelKind kind : scenario.models) add_engine(kind);
}

std::shared_ptr<nn::Module> EngineTarget::new_model(ModelKind kind, std::size_t index) {
  ModelOptions model{.data = cell_.data,
                     .seed = cell_.seed + index,
                     .device = cell_.device,
                     .watch = options_.models};
  if (scenario_.has_ranks_apart) model.seed += 100 * static_cast<std::uint64_t>(rank());
  model.spec = scenario_.spec;
  model.subject = cell_.subject;
  model.mark_ready = [this, index](const Tensor& parameter, bool is_ready) {
    engines_.at(index)->set_gradient_ready(parameter, is_ready);
  };
  return make_model(kind, model);
}

void EngineTarget::add_engine(ModelKind kind) {
  const std::size_t index = engines_.size();
  modules_.push_back(new_model(kind, index));
  if (options_.models) options_.models->on_model(autograd_, *modules_.back(), engine_prefix(index));
  EngineOptions of_engine = engine_options(scenario_, cell_, index);
  of_engine.parameter_groups = parameter_groups_of(*modules_.back(), scenario_);
  auto engine = Engine::initialize(autograd_, *modules_.back(), config_of(scenario_, cell_, index),
                                   runtime_, std::move(of_engine));
  if (!engine) throw ConfigurationRefused(engine.error().text);
  engines_.push_back(std::move(*engine));
  if (scenario_.spec && scenario_.spec->registers == 1) register_external();
  if (scenario_.leaf_module.empty() || cell_.stage != 3) return;
  for (const nn::NamedModule& inner : modules_.back()->named_modules())
    if (inner.name == scenario_.leaf_module) engines_.back()->set_leaf_module(*inner.module);
}

std::string EngineTarget::refusal_of_another(const ZeroConfig& config,
                                             std::optional<double> loss_scale) {
  EngineOptions options = engine_options(scenario_, cell_, kAnother);
  options.custom_loss_scale = loss_scale;
  const auto module = new_model(scenario_.models.front(), 0);
  const auto before = contents(*module);
  const auto made = Engine::initialize(autograd_, *module, config, runtime_, options);
  if (made) return "";
  return contents(*module) == before ? made.error().text : "changed: " + made.error().text;
}

EngineTarget::Footprint EngineTarget::footprint() {
  const Memory& memory = runtime_.memory();
  return {.device_bytes = memory.stats(Placement::device).live_bytes,
          .host_bytes = memory.stats(Placement::host).live_bytes,
          .has_linear = static_cast<bool>(autograd_.global().linear)};
}

bool EngineTarget::receive_guest() {
  const Footprint before = footprint();
  add_engine(scenario_.models.front());
  engines_.pop_back();
  const bool is_plain = config_.stage < 3 && scenario_.spec && scenario_.spec->is_tiled == 0;
  const bool trains =
      !is_plain || trains_alike(autograd_, *modules_.back(),
                                *new_model(scenario_.models.front(), 0), config_.model_dtype());
  modules_.pop_back();
  return trains && footprint() == before;
}

std::int64_t EngineTarget::renew() {
  engines_.clear();
  modules_.clear();
  const Footprint left = footprint();
  add_engine(scenario_.models.front());
  return left.device_bytes + left.host_bytes + (left.has_linear ? 1 : 0);
}

// What the root of the last model, or its reader, reads past its layer.
void EngineTarget::register_external() {
  nn::Module& root = *modules_.back();
  nn::Module* user = &root;
  for (const nn::NamedModule& named : root.named_modules())
    if (scenario_.spec->reads_late != 0 && named.name == CaseSpec::kReader) user = named.module;
  register_weight(engines_.size() - 1, *user, scenario_.spec->reads - 1);
}

void EngineTarget::register_at_root(int layer) {
  register_weight(0, *modules_[0], layer);
}

void EngineTarget::register_weight(std::size_t engine, nn::Module& user, int layer) {
  const std::string prefix = "l" + std::to_string(layer) + ".";
  for (const nn::NamedParameter& parameter : modules_[engine]->named_parameters())
    if (parameter.name.starts_with(prefix))
      return engines_[engine]->register_external_parameter(user, parameter.tensor);
}

TensorList EngineTarget::forward(std::size_t engine, const TensorList& inputs) {
  return engines_[engine]->forward(inputs);
}

Tensor EngineTarget::backward(std::size_t engine, const Tensor& loss,
                              const BackwardArguments& arguments) {
  return engines_[engine]->backward(loss, arguments);
}

void EngineTarget::tensor_backward(const TensorList& roots, const TensorList& grads,
                                   bool retain_graph) {
  const auto before = gradients();
  try {
    autograd_.backward(roots, grads, {.retain_graph = retain_graph});
  } catch (...) {
    has_changed_gradients_ = gradients() != before;
    throw;
  }
}

bool EngineTarget::needs_scaler(std::size_t engine) {
  return engines_[engine]->needs_scaler();
}

Tensor EngineTarget::scale(std::size_t engine, const Tensor& loss, bool retain_graph) {
  return engines_[engine]->scale(loss, retain_graph);
}

void EngineTarget::step(std::size_t engine) {
  const bool is_taken = early_ && early_->engine == engine;
  EarlyStep taken = is_taken ? *std::exchange(early_, std::nullopt) : take_and_see(engine);
  if (!taken.is_seen) return;
  append(values_.gradients, engine_prefix(engine), std::move(taken.gradients));
  values_.outcomes.push_back(taken.outcome);
  collect_counters(engine);
  collect([&] { collect_parameters(engine); });
}

void EngineTarget::step_early(std::size_t engine) {
  early_ = take_and_see(engine);
}

EngineTarget::EarlyStep EngineTarget::take_and_see(std::size_t engine) {
  EarlyStep step{.engine = engine, .is_seen = is_collected(engine), .gradients = {}, .outcome = {}};
  if (step.is_seen) collect([&] { step.gradients = seen_gradients(engine); });
  step.outcome = take_step(engine);
  return step;
}

bool EngineTarget::is_collected(std::size_t engine) const {
  const bool is_boundary = !config_.managed_gradient_accumulation ||
                           engines_[engine]->is_gradient_accumulation_boundary();
  return is_boundary && options_.collects_values;
}

bool EngineTarget::try_step(std::size_t engine) {
  try {
    step(engine);
    return true;
  } catch (const EngineError& error) {
    if (error.id() != EngineErrorId::offloaded_parameter_without_gradient &&
        error.id() != EngineErrorId::overflow_at_minimum_scale)
      throw;
  }
  return false;
}

// Whoever collects values gathers, and gives up what is whole.
StepOutcome EngineTarget::take_step(std::size_t engine) {
  const StepOutcome outcome = engines_[engine]->step();
  if (engine != 0) return outcome;
  last_outcome_ = outcome;
  whole_behind_step_ = 0;
  for (const nn::NamedParameter& parameter : modules_[0]->named_parameters())
    whole_behind_step_ += parameter.tensor.numel();
  return outcome;
}

void EngineTarget::collect(const std::function<void()>& look) {
  if (options_.on_collect) options_.on_collect(true);
  look();
  if (options_.on_collect) options_.on_collect(false);
}

// What step() itself reduces cannot be seen before it.
std::vector<FullTensor> EngineTarget::seen_gradients(std::size_t engine) {
  if (reduces_in_step(config_) || has_gradients_apart(scenario_)) return {};
  return engines_[engine]->full_gradients();
}

void EngineTarget::collect_counters(std::size_t engine) {
  const Engine& it = *engines_[engine];
  const StepCounters counters{.micro_steps = it.micro_steps(),
                              .global_steps = it.global_steps(),
                              .skipped_steps = it.skipped_steps(),
                              .global_samples = it.global_samples(),
                              .loss_scale = it.loss_scale()};
  values_.counters.push_back(counters.named(engine_prefix(engine)));
}

// Masters of what is trained; what the module computes with of everything, as each rank has it.
void EngineTarget::collect_parameters(std::size_t engine) {
  Engine& it = *engines_[engine];
  const std::string prefix = engine_prefix(engine);
  const auto named = modules_[engine]->named_parameters();
  append(values_.parameters, prefix, masters(engine));
  append(values_.states, prefix, it.full_optimizer_state());
  TensorList all;
  for (const nn::NamedParameter& parameter : named) all.push_back(parameter.tensor);
  const auto read = [&] {
    for (const nn::NamedParameter& parameter : named)
      values_.weights.push_back(
          {prefix + parameter.name, parameter.tensor.sizes(), parameter.tensor.values()});
  };
  if (config_.stage == 3) {
    it.gathered_parameters(all, std::nullopt, read);
  } else {
    read();
  }
}

void EngineTarget::set_boundary(std::size_t engine, bool is_boundary) {
  engines_[engine]->set_gradient_accumulation_boundary(is_boundary);
}

void EngineTarget::override_loss_scale(std::size_t engine, double loss_scale) {
  if (const auto done = engines_[engine]->override_loss_scale(loss_scale); !done)
    throw std::runtime_error(done.error().text);
}

std::vector<FullTensor> EngineTarget::masters(std::size_t engine) {
  const auto named = modules_[engine]->named_parameters();
  std::vector<FullTensor> all = engines_[engine]->full_parameters();
  std::erase_if(all, [&](const FullTensor& master) {
    const auto at = std::ranges::find(named, master.name, &nn::NamedParameter::name);
    if (scenario_.spec && is_left_out(*scenario_.spec, master.name)) return true;
    return at != named.end() && !at->tensor.requires_grad();
  });
  return all;
}

void EngineTarget::zero_grad(std::size_t engine) {
  engines_[engine]->zero_grad();
}

void EngineTarget::coalesce(std::size_t engine, const std::function<void()>& body) {
  engines_[engine]->coalesce_grad_reduction(body);
}

void EngineTarget::no_sync(std::size_t engine, const std::function<void()>& body) {
  engines_[engine]->no_sync(body);
}

void EngineTarget::record(const std::string& name, const Tensor& value) {
  values_.records.push_back({name, value.sizes(), value.values()});
}

// Of every parameter; empty where there is none.
std::vector<std::vector<double>> EngineTarget::gradients() const {
  std::vector<std::vector<double>> all;
  for (const auto& module : modules_)
    for (const nn::NamedParameter& parameter : module->named_parameters()) {
      const Tensor grad = parameter.tensor.grad();
      all.push_back(grad.is_defined() ? grad.values() : std::vector<double>());
    }
  return all;
}

}  // namespace zeroproof::train
