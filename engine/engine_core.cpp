#include "engine/engine_core.h"

#include <algorithm>

#include "engine/manager_events.h"
#include "engine/precision/communication_dtype.h"
#include "engine/zero/stage0.h"
#include "engine/zero/stage12.h"
#include "engine/zero/stages.h"
#include "engine/zero/zero3_api.h"
#include "model/check.h"
#include "zeroproof/model/usage_error.h"

namespace zeroproof {
namespace {

std::unique_ptr<HookPolicy> make_named(const EngineOptions& options) {
  if (options.policy == "exact") return make_exact(options.quirks);
  auto made = make_policy(options.policy, PolicyMode::graph_task_callback);
  ZP_CHECK(made.has_value(), "initialize() has looked the policy up");
  return std::move(*made);
}

std::unique_ptr<HookPolicy> make(const EngineOptions& options) {
  auto policy = make_named(options);
  if (options.decorate_policy) policy = options.decorate_policy(std::move(policy));
  require(policy != nullptr, "decorate_policy gave no policy back");
  return policy;
}

LearningRates rates_of(const ZeroConfig& config, const EngineOptions& options) {
  auto rates = LearningRates::make(config, options.parameter_groups.size());
  ZP_CHECK(rates, "initialize() has made them before");
  return std::move(*rates);
}

std::unique_ptr<ZeroOptimizer> make_optimizer(ZeroContext& context) {
  if (context.config.stage == 0) return std::make_unique<Stage0Optimizer>(context);
  if (context.config.stage == 3) return make_zero3_optimizer(context);
  return std::make_unique<Stage12Optimizer>(context);
}

}  // namespace

Engine::Core::Core(Autograd& autograd, nn::Module& module, const ZeroConfig& config_in,
                   Runtime& runtime, const EngineOptions& options_in, const LossScaler& loss_scaler)
    : config(config_in),
      options(options_in),
      context{.autograd = autograd,
              .module = module,
              .config = config,
              .runtime = runtime,
              .upstream = upstream_rules(options.quirks),
              .events = Events(runtime, options.id),
              .parameters = {},
              .loss_scaler = loss_scaler,
              .data = Communicator(runtime.group(GroupKind::data), context.events),
              .tensor = Communicator(runtime.group(GroupKind::tensor), context.events),
              .skips_frames = options.skips_frames,
              .fallback_rule = options.fallback_rule},
      policy(make(options)),
      learning_rates(rates_of(config, options)) {
  context.policy = policy.get();
  register_parameters();
  if (context.events.is_on()) manager_events = std::make_unique<ManagerEvents>(context.events);
  policy->set_observer(manager_events.get());
  register_root_hooks();
  optimizer = make_optimizer(context);
  optimizer->set_rates(learning_rates.groups());
  register_gradient_hooks();
  if (auto* zero3 = dynamic_cast<Zero3Api*>(optimizer.get())) {
    zero3->set_hook_runner([this](const std::function<void()>& work) { on_hook(work); });
    if (!options.name.empty()) zero3->set_module_prefix(options.name);
  }
  if (is_zero()) autograd.add_listener(*this);
}

Engine::Core::~Core() {
  context.autograd.remove_listener(*this);
  for (HookHandle& handle : handles_) handle.remove();
  for (HookHandle& handle : gradient_handles_) handle.remove();
}

void Engine::Core::set_leaf_module(nn::Module& module) {
  optimizer->set_leaf_module(module);
  register_gradient_hooks();
}

// In the configured dtype, with rank 0's values.
void Engine::Core::register_parameters() {
  Stream& stream = context.compute();
  ProcessGroup& ranks = context.data.group();
  for (const nn::NamedParameter& named : context.module.named_parameters()) {
    ZeroParameter& parameter = context.parameters.emplace_back();
    parameter.id = ParamId{static_cast<std::int32_t>(context.parameters.size()) - 1};
    parameter.name = named.name;
    parameter.name_id =
        context.events.name(options.name.empty() ? named.name : options.name + "." + named.name);
    parameter.tensor = named.tensor;
    parameter.sizes = named.tensor.sizes();
    parameter.elements = named.tensor.numel();
    parameter.requires_grad = named.tensor.requires_grad();
    const Ops& ops = context.runtime.ops();
    if (named.tensor.dtype() != config.model_dtype())
      named.tensor.set_data(ops.cast(named.tensor, config.model_dtype()));
    else if (const Tensor placed = ops.place(named.tensor); !placed.is_same(named.tensor))
      named.tensor.set_data(placed);
    if (ranks.size() > 1) ranks.wait(ranks.broadcast(stream, Span::of(named.tensor), 0), stream);
    if (options.parameter_groups.empty() && parameter.requires_grad) parameter.group = 0;
  }
  ZeroConfig wire = config;
  set_communication_dtypes(context.module, wire, context.parameters);
  for (std::size_t group = 0; group < options.parameter_groups.size(); ++group)
    for (const Tensor& tensor : options.parameter_groups[group])
      if (tensor.requires_grad()) parameter(tensor).group = static_cast<std::int32_t>(group);
}

ZeroParameter& Engine::Core::parameter(const Tensor& tensor) {
  const auto at = std::ranges::find_if(
      context.parameters, [&](const ZeroParameter& it) { return it.tensor.is_same(tensor); });
  require(at != context.parameters.end(), "the tensor is not a parameter of this engine's module");
  return *at;
}

void Engine::Core::on_hook(const std::function<void()>& work) {
  has_unreduced_gradients_ = true;
  const bool refreshes = policy->before_gradient(*this);
  work();
  policy->after_gradient(*this, refreshes);
}

// Before those that stage 3 puts on every module.
void Engine::Core::register_root_hooks() {
  handles_.push_back(context.module.register_forward_pre_hook([this](const TensorList&) {
    const Events::Call call(context.events, "engine.forward_prologue");
    return TensorList();
  }));
  handles_.push_back(
      context.module.register_forward_hook([this](const TensorList&, const TensorList&) {
        const Events::Call call(context.events, "engine.forward_epilogue");
        return TensorList();
      }));
}

// Gradients are divided where they arrive, unless nothing ever has to be (H8 divides at outputs).
void Engine::Core::register_gradient_hooks() {
  remove_gradient_hooks();
  has_leaf_hooks_ = !context.upstream.divides_at_outputs &&
                    (has_leaf_factor() || (is_exact() && !supports_manual_backward()));
  for (ZeroParameter& parameter : context.parameters) {
    if (parameter.group < 0 || !parameter.requires_grad) continue;
    if (has_leaf_hooks_)
      gradient_handles_.push_back(parameter.tensor.register_hook(
          [this](const Tensor& grad) { return on_leaf_gradient(grad); }));
    if (optimizer->has_gradient_hook(parameter))
      gradient_handles_.push_back(parameter.tensor.register_post_accumulate_grad_hook(
          [this, &parameter](const Tensor&) { on_gradient(parameter); }));
  }
}

void Engine::Core::remove_gradient_hooks() {
  for (HookHandle& handle : gradient_handles_) handle.remove();
  gradient_handles_.clear();
}

bool Engine::Core::supports_manual_backward() const {
  return is_zero() && options.has_count_apis && (options.has_callback_api || !is_exact());
}

}  // namespace zeroproof
