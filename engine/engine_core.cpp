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

Engine::Core::Core(Autograd& autograd, nn::Module& module, const ZeroConfig& config,
                   Runtime& runtime, const EngineOptions& options, const LossScaler& loss_scaler)
    : config_(config),
      options_(options),
      context_{.autograd = autograd,
               .module = module,
               .config = config_,
               .runtime = runtime,
               .upstream = upstream_rules(options_.quirks),
               .tracker = tracker_,
               .events = Events(runtime, options_.id),
               .parameters = {},
               .loss_scaler = loss_scaler,
               .data = Communicator(runtime.group(GroupKind::data), context_.events),
               .tensor = Communicator(runtime.group(GroupKind::tensor), context_.events),
               .skips_frames = options_.skips_frames,
               .fallback_rule = options_.fallback_rule,
               .gathers_ahead = options_.gathers_ahead},
      policy_(make(options_)),
      learning_rates_(rates_of(config_, options_)) {
  context_.policy = policy_.get();
  tracker_.set_running_mark(policy_->running_mark());
  register_parameters();
  if (context_.events.is_on()) manager_events_ = std::make_unique<ManagerEvents>(context_.events);
  policy_->set_observer(manager_events_.get());
  register_root_hooks();
  optimizer_ = make_optimizer(context_);
  optimizer_->set_rates(learning_rates_.groups());
  register_gradient_hooks();
  if (auto* zero3 = dynamic_cast<Zero3Api*>(optimizer_.get())) {
    zero3->set_hook_runner([this](const std::function<void()>& work) { on_hook(work); });
    if (!options_.name.empty()) zero3->set_module_prefix(options_.name);
  }
  if (is_zero()) autograd.add_listener(*this);
}

Engine::Core::~Core() {
  context_.autograd.remove_listener(*this);
  for (HookHandle& handle : handles_) handle.remove();
  for (HookHandle& handle : gradient_handles_) handle.remove();
}

void Engine::Core::set_leaf_module(nn::Module& module) {
  optimizer_->set_leaf_module(module);
  register_gradient_hooks();
}

// In the configured dtype, with rank 0's values.
void Engine::Core::register_parameters() {
  Stream& stream = context_.compute();
  ProcessGroup& ranks = context_.data.group();
  for (const nn::NamedParameter& named : context_.module.named_parameters()) {
    ZeroParameter& parameter = context_.parameters.emplace_back();
    parameter.id = ParamId{static_cast<std::int32_t>(context_.parameters.size()) - 1};
    parameter.name = named.name;
    parameter.name_id =
        context_.events.name(options_.name.empty() ? named.name : options_.name + "." + named.name);
    parameter.tensor = named.tensor;
    parameter.sizes = named.tensor.sizes();
    parameter.elements = named.tensor.numel();
    parameter.requires_grad = named.tensor.requires_grad();
    const Ops& ops = context_.runtime.ops();
    if (named.tensor.dtype() != config_.model_dtype())
      named.tensor.set_data(ops.cast(named.tensor, config_.model_dtype()));
    else if (const Tensor placed = ops.place(named.tensor); !placed.is_same(named.tensor))
      named.tensor.set_data(placed);
    if (ranks.size() > 1) ranks.wait(ranks.broadcast(stream, Span::of(named.tensor), 0), stream);
    if (options_.parameter_groups.empty() && parameter.requires_grad) parameter.group = 0;
  }
  ZeroConfig wire = config_;
  set_communication_dtypes(context_.module, wire, context_.parameters);
  for (std::size_t group = 0; group < options_.parameter_groups.size(); ++group)
    for (const Tensor& tensor : options_.parameter_groups[group])
      if (tensor.requires_grad()) parameter(tensor).group = static_cast<std::int32_t>(group);
}

ZeroParameter& Engine::Core::parameter(const Tensor& tensor) {
  const auto at = std::ranges::find_if(
      context_.parameters, [&](const ZeroParameter& it) { return it.tensor.is_same(tensor); });
  require(at != context_.parameters.end(), "the tensor is not a parameter of this engine's module");
  return *at;
}

void Engine::Core::on_hook(const std::function<void()>& work) {
  has_unreduced_gradients_ = true;
  const bool refreshes = policy_->before_gradient(*this);
  work();
  policy_->after_gradient(*this, refreshes);
}

// Before those that stage 3 puts on every module.
void Engine::Core::register_root_hooks() {
  handles_.push_back(context_.module.register_forward_pre_hook([this](const TensorList&) {
    const Events::Call call(context_.events, "engine.forward_prologue");
    return TensorList();
  }));
  handles_.push_back(
      context_.module.register_forward_hook([this](const TensorList&, const TensorList&) {
        const Events::Call call(context_.events, "engine.forward_epilogue");
        return TensorList();
      }));
}

// Gradients are divided where they arrive, unless no division is due (H8 divides at outputs).
void Engine::Core::register_gradient_hooks() {
  remove_gradient_hooks();
  has_leaf_hooks_ =
      !context_.upstream.divides_at_outputs &&
      (loss_factor_.is_needed_at_leaves() || (is_exact() && !supports_manual_backward()));
  for (ZeroParameter& parameter : context_.parameters) {
    if (parameter.group < 0 || !parameter.requires_grad) continue;
    if (has_leaf_hooks_)
      gradient_handles_.push_back(parameter.tensor.register_hook(
          [this](const Tensor& grad) { return on_leaf_gradient(grad); }));
    if (optimizer_->has_gradient_hook(parameter))
      gradient_handles_.push_back(parameter.tensor.register_post_accumulate_grad_hook(
          [this, &parameter](const Tensor&) { on_gradient(parameter); }));
  }
}

void Engine::Core::remove_gradient_hooks() {
  for (HookHandle& handle : gradient_handles_) handle.remove();
  gradient_handles_.clear();
}

bool Engine::Core::supports_manual_backward() const {
  return is_zero() && options_.has_count_apis && (options_.has_callback_api || !is_exact());
}

}  // namespace zeroproof
