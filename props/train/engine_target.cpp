#include "props/train/engine_target.h"

#include <algorithm>
#include <stdexcept>

#include "model/check.h"
#include "props/train/subject.h"

namespace zeroproof::train {
namespace {

void append(std::vector<FullTensor>& all, const std::string& prefix, std::vector<FullTensor> more) {
  for (FullTensor& tensor : more) {
    tensor.name = prefix + tensor.name;
    all.push_back(std::move(tensor));
  }
}

EngineOptions engine_options(const TrainScenario& scenario, const TrainCell& cell,
                             std::size_t index) {
  EngineOptions options;
  options.id = EngineId{static_cast<std::int32_t>(index)};
  options.name = engine_prefix(index);
  if (!options.name.empty()) options.name.pop_back();  // its dot
  options.policy = cell.policy;
  options.skips_frames = scenario.skips_frames && cell.stage == 3;
  options.fallback_rule = cell.fallback_rule;
  options.quirks = cell.quirks;
  if (cell.subject && cell.subject->decorate_policy)
    options.decorate_policy = cell.subject->decorate_policy;
  options.has_count_apis = cell.api != AutogradApi::none;
  options.has_callback_api = cell.api == AutogradApi::full;
  return options;
}

}  // namespace

EngineTarget::EngineTarget(const TrainScenario& scenario, const TrainCell& cell, Runtime& runtime,
                           const Options& options)
    : scenario_(scenario),
      cell_(cell),
      runtime_(runtime),
      options_(options),
      config_(config_of(scenario, cell)),
      autograd_(runtime.ops(), options.autograd) {
  if (options.order) autograd_.set_scheduling(*options.order, OrderModel::any_topological);
  for (const ModelKind kind : scenario.models) add_engine(kind);
}

std::shared_ptr<nn::Module> EngineTarget::new_model(ModelKind kind, std::size_t index) {
  ModelOptions model{.data = cell_.data,
                     .seed = cell_.seed + index,
                     .device = cell_.device,
                     .watch = options_.models};
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
  const EngineOptions of_engine = engine_options(scenario_, cell_, index);
  auto engine = Engine::initialize(autograd_, *modules_.back(), config_of(scenario_, cell_, index),
                                   runtime_, of_engine);
  if (!engine) throw ConfigurationRefused(engine.error().text);
  engines_.push_back(std::move(*engine));
  if (scenario_.leaf_module.empty() || cell_.stage != 3) return;
  for (const nn::NamedModule& inner : modules_.back()->named_modules())
    if (inner.name == scenario_.leaf_module) engines_.back()->set_leaf_module(*inner.module);
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
  const bool is_seen = is_collected(engine);
  std::vector<FullTensor> gradients;
  if (is_seen) collect([&] { gradients = seen_gradients(engine); });
  const StepOutcome outcome = engines_[engine]->step();
  if (!is_seen) return;
  append(values_.gradients, engine_prefix(engine), std::move(gradients));
  values_.outcomes.push_back(outcome);
  collect_counters(engine);
  collect([&] { collect_parameters(engine); });
}

bool EngineTarget::is_collected(std::size_t engine) const {
  const bool is_boundary = !config_.managed_gradient_accumulation ||
                           engines_[engine]->is_gradient_accumulation_boundary();
  return is_boundary && options_.collects_values;
}

void EngineTarget::collect(const std::function<void()>& look) {
  if (options_.on_collect) options_.on_collect(true);
  look();
  if (options_.on_collect) options_.on_collect(false);
}

// What step() itself reduces cannot be seen before it.
std::vector<FullTensor> EngineTarget::seen_gradients(std::size_t engine) {
  if (reduces_in_step(config_)) return {};
  return engines_[engine]->full_gradients();
}

void EngineTarget::collect_counters(std::size_t engine) {
  values_.counters.push_back(
      {engine_prefix(engine) + "counters", {}, counters_of(*engines_[engine])});
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

std::vector<FullTensor> EngineTarget::masters(std::size_t engine) {
  const auto named = modules_[engine]->named_parameters();
  std::vector<FullTensor> all = engines_[engine]->full_parameters();
  std::erase_if(all, [&](const FullTensor& master) {
    const auto at = std::ranges::find(named, master.name, &nn::NamedParameter::name);
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
