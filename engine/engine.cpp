#include "zeroproof/engine/engine.h"

#include <fmt/format.h>

#include "engine/engine_core.h"
#include "engine/group_check.h"
#include "engine/quirk_effect.h"
#include "engine/zero/stage3/leaf_modules.h"
#include "model/check.h"

namespace zeroproof {
namespace {

// What an engine that was destroyed in the middle of a backward leaves: its hooks and callbacks are
// still to come. The graph task under way owns it, and hands it to the one around it.
class DeferredDestruction final : public GraphTaskListener,
                                  public std::enable_shared_from_this<DeferredDestruction> {
 public:
  DeferredDestruction(Autograd& autograd, std::shared_ptr<void> core)
      : autograd_(autograd), core_(std::move(core)) {
    autograd_.add_listener(*this);
  }
  ~DeferredDestruction() override { autograd_.remove_listener(*this); }
  DeferredDestruction(const DeferredDestruction&) = delete;
  DeferredDestruction& operator=(const DeferredDestruction&) = delete;

  void stay() {
    autograd_.queue_callback([kept = shared_from_this()] {});
  }

 private:
  void on_graph_task_begin(GraphTaskId, bool) override {}
  void on_graph_task_end(GraphTaskId, bool) override {
    if (!autograd_.current_graph_task().is_none()) stay();
  }

  Autograd& autograd_;
  std::shared_ptr<void> core_;
};

}  // namespace

Result<std::unique_ptr<Engine>> Engine::initialize(Autograd& autograd, nn::Module& module,
                                                   const ZeroConfig& config, Runtime& runtime,
                                                   const EngineOptions& options) {
  if (const auto valid = validate(config); !valid) return tl::unexpected(valid.error());
  const auto policy = find_policy(options.policy);
  if (!policy) return tl::unexpected(policy.error());
  if (const auto fits = check_quirks(options.quirks, options.policy); !fits)
    return tl::unexpected(fits.error());
  // Before anything of the model is taken over: it stays as it is for a second try.
  if (config.stage == 3)
    if (const auto known = check_leaf_classes(config.leaf_module, module); !known)
      return tl::unexpected(known.error());
  LossScaler scaler = LossScaler::of(config);
  if (options.custom_loss_scale)
    if (const auto set = scaler.set_custom(*options.custom_loss_scale); !set)
      return tl::unexpected(set.error());
  if (const auto known = check_groups(module, options.parameter_groups); !known)
    return tl::unexpected(known.error());
  if (const auto rates = LearningRates::make(config, options.parameter_groups.size()); !rates)
    return tl::unexpected(rates.error());
  auto core = std::make_unique<Core>(autograd, module, config, runtime, options, scaler);
  return std::make_unique<Engine>(std::move(core));
}

Engine::Engine(std::unique_ptr<Core> core) : core_(std::move(core)) {}

// By a hook of the user in the middle of a backward: what was asked of it is done to the end.
Engine::~Engine() {
  Autograd& autograd = core_->context().autograd;
  if (autograd.current_graph_task().is_none()) return;
  std::make_shared<DeferredDestruction>(autograd, std::shared_ptr<Core>(std::move(core_)))->stay();
}

TensorList Engine::forward(const TensorList& inputs) {
  return core_->forward(inputs);
}
Tensor Engine::backward(const Tensor& loss, const BackwardArguments& arguments) {
  return core_->backward(loss, arguments);
}
Tensor Engine::scale(const Tensor& loss, bool) {
  return core_->scale(loss);
}
bool Engine::needs_scaler() const {
  return core_->needs_scaler();
}

StepOutcome Engine::step() {
  return core_->step();
}
void Engine::zero_grad() {
  core_->zero_grad();
}
void Engine::gather_parameters() {
  core_->optimizer().gather_ahead();
}
bool Engine::is_gradient_accumulation_boundary() const {
  return core_->is_boundary();
}
void Engine::set_gradient_accumulation_boundary(bool is_boundary) {
  core_->set_boundary(is_boundary);
}
Result<void> Engine::set_learning_rate(double learning_rate) {
  return core_->changed_rates(core_->learning_rates().set(learning_rate));
}
Result<void> Engine::set_learning_rate(std::size_t group, double learning_rate) {
  return core_->changed_rates(core_->learning_rates().set(group, learning_rate));
}
std::vector<double> Engine::learning_rates() const {
  std::vector<double> rates;
  for (const GroupRates& group : core_->learning_rates().groups())
    rates.push_back(group.learning_rate);
  return rates;
}
Result<void> Engine::capture(const std::function<void()>& iteration) {
  return core_->capture(iteration);
}
void Engine::replay() {
  core_->replay();
}
double Engine::replayed_grad_norm() const {
  return core_->replayed_grad_norm();
}
void Engine::no_sync(const std::function<void()>& body) {
  core_->no_sync(body);
}
void Engine::coalesce_grad_reduction(const std::function<void()>& body) {
  core_->coalesce(body);
}

void Engine::gathered_parameters(const TensorList& parameters, std::optional<int> modifier_rank,
                                 const std::function<void()>& body) {
  core_->optimizer().gathered_parameters(parameters, modifier_rank, body);
}
void Engine::set_gradient_ready(const Tensor& parameter, bool is_ready) {
  core_->parameter(parameter).is_gradient_ready = is_ready;
}
void Engine::release_gathered_parameters() {
  core_->optimizer().release_gathered_parameters();
}
void Engine::set_guard_evaluation(bool is_evaluating) {
  core_->optimizer().set_guard_evaluation(is_evaluating);
}
void Engine::set_leaf_module(nn::Module& module) {
  core_->set_leaf_module(module);
}
void Engine::register_external_parameter(nn::Module& module, const Tensor& parameter) {
  core_->optimizer().register_external_parameter(module, parameter);
}

std::int64_t Engine::micro_steps() const {
  return core_->counters().micro_steps;
}
std::int64_t Engine::global_steps() const {
  return core_->counters().global_steps;
}
std::int64_t Engine::skipped_steps() const {
  return core_->counters().skipped_steps;
}
std::int64_t Engine::global_samples() const {
  return core_->counters().global_samples;
}
Result<void> Engine::override_loss_scale(double loss_scale) {
  return core_->override_loss_scale(loss_scale);
}
double Engine::loss_scale() const {
  return core_->context().loss_scaler.scale();
}

std::vector<FullTensor> Engine::full_gradients() {
  return core_->optimizer().full_gradients();
}
std::vector<FullTensor> Engine::full_parameters() {
  return core_->optimizer().full_parameters();
}
std::vector<FullTensor> Engine::full_optimizer_state() {
  return core_->optimizer().full_optimizer_state();
}

Result<void> Engine::save_checkpoint(const std::string& folder,
                                     const EngineCheckpointOptions& options) {
  return core_->save_checkpoint(folder, options);
}
Result<void> Engine::async_save_checkpoint(const std::string& folder,
                                           const EngineCheckpointOptions& options) {
  return core_->async_save_checkpoint(folder, options);
}
Result<void> Engine::wait_checkpoint() {
  return core_->wait_checkpoint();
}
Result<void> Engine::load_checkpoint(const std::string& folder,
                                     const EngineCheckpointOptions& options) {
  return core_->load_checkpoint(folder, options);
}

const ZeroConfig& Engine::config() const {
  return core_->context().config;
}
Autograd& Engine::autograd() const {
  return core_->context().autograd;
}
nn::Module& Engine::module() const {
  return core_->context().module;
}
Runtime& Engine::runtime() const {
  return core_->context().runtime;
}
BackwardState Engine::hook_state() const {
  return core_->policy().state();
}

}  // namespace zeroproof
