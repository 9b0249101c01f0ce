#include "props/train/fault_target.h"

#include <limits>

namespace zeroproof::train {
namespace {

// For a while.
class Raised {
 public:
  explicit Raised(int& count) : count_(count) { ++count_; }
  ~Raised() { --count_; }
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

 private:
  int& count_;
};

}  // namespace

void FaultHooks::on_model(Autograd&, nn::Module& module, const std::string&) {
  for (const nn::NamedModule& inner : module.named_modules()) {
    handles_.push_back(inner.module->register_forward_pre_hook([this](const TensorList&) {
      reach(EventKind::module_fwd_pre);
      return TensorList();
    }));
    handles_.push_back(
        inner.module->register_forward_hook([this](const TensorList&, const TensorList&) {
          reach(EventKind::module_fwd_post);
          return TensorList();
        }));
  }
  for (const nn::NamedParameter& parameter : module.named_parameters())
    if (parameter.tensor.requires_grad()) watch_parameter(parameter.tensor);
}

void FaultHooks::watch_parameter(const Tensor& parameter) {
  handles_.push_back(parameter.register_hook([this](const Tensor& grad) -> Tensor {
    reach(EventKind::param_tensor_hook);
    if (!grad.is_defined() || grad.wrapper() != nullptr) return {};
    if (!faults_.strikes(sim::FaultPlace::gradient, rank_)) return {};
    return Tensor::full(grad.sizes(), std::numeric_limits<double>::infinity(), grad.dtype());
  }));
  handles_.push_back(parameter.register_post_accumulate_grad_hook([this](const Tensor&) {
    reach(EventKind::param_post_acc);
    if (on_gradient) on_gradient();
  }));
}

TensorList FaultHooks::run_checkpoint(std::string_view, const std::function<TensorList()>& body) {
  reach(EventKind::ckpt_forward_begin);
  TensorList outputs = body();
  reach(EventKind::ckpt_forward_end);
  return outputs;
}

void FaultHooks::on_function(EventKind kind, std::string_view) {
  reach(kind);
}

void FaultHooks::remove_all() {
  for (HookHandle& handle : handles_) handle.remove();
}

FaultTarget::FaultTarget(const TrainScenario& scenario, const TrainCell& cell, Runtime& runtime,
                         sim::PlannedFaults& faults)
    : faults_(faults),
      rank_(runtime.rank()),
      hooks_(faults, rank_),
      inner_(scenario, cell, runtime, options()) {
  faults.set_hook_remover(rank_, [this] { hooks_.remove_all(); });
}

// Values are only looked at: no place for a fault.
EngineTarget::Options FaultTarget::options() {
  EngineTarget::Options options{.models = &hooks_, .autograd = &hooks_};
  options.on_collect = [this](bool begins) {
    if (begins) {
      faults_.pause(rank_);
    } else {
      faults_.resume(rank_);
    }
  };
  return options;
}

void FaultTarget::destroy_when_due() {
  if (calls_ > 0 || !has_engines()) return;
  if (faults_.strikes(sim::FaultPlace::call, rank_)) inner_.destroy_engines();
}

void FaultTarget::begin_call() {
  destroy_when_due();
  if (!has_engines()) throw EnginesGone();
}

TensorList FaultTarget::forward(std::size_t engine, const TensorList& inputs) {
  begin_call();
  const Raised calling(calls_);
  return inner_.forward(engine, inputs);
}

Tensor FaultTarget::backward(std::size_t engine, const Tensor& loss,
                             const BackwardArguments& arguments) {
  begin_call();
  const Raised calling(calls_);
  return inner_.backward(engine, loss, arguments);
}

// No engine is called here, so a hook of the user may give all up in the middle.
void FaultTarget::tensor_backward(const TensorList& roots, const TensorList& grads,
                                  bool retain_graph) {
  begin_call();
  hooks_.on_gradient = [this] { destroy_when_due(); };
  try {
    inner_.tensor_backward(roots, grads, retain_graph);
  } catch (...) {
    hooks_.on_gradient = nullptr;
    throw;
  }
  hooks_.on_gradient = nullptr;
}

bool FaultTarget::needs_scaler(std::size_t engine) {
  begin_call();
  return inner_.needs_scaler(engine);
}

Tensor FaultTarget::scale(std::size_t engine, const Tensor& loss, bool retain_graph) {
  begin_call();
  const Raised calling(calls_);
  return inner_.scale(engine, loss, retain_graph);
}

void FaultTarget::step(std::size_t engine) {
  begin_call();
  if (faults_.strikes(sim::FaultPlace::step, rank_)) return;
  const Raised calling(calls_);
  is_in_step_ = true;
  inner_.step(engine);
  is_in_step_ = false;
}

void FaultTarget::set_boundary(std::size_t engine, bool is_boundary) {
  begin_call();
  const Raised calling(calls_);
  inner_.set_boundary(engine, is_boundary);
}

void FaultTarget::zero_grad(std::size_t engine) {
  begin_call();
  const Raised calling(calls_);
  inner_.zero_grad(engine);
}

void FaultTarget::coalesce(std::size_t engine, const std::function<void()>& body) {
  begin_call();
  const Raised calling(calls_);
  inner_.coalesce(engine, body);
}

void FaultTarget::record(const std::string& name, const Tensor& value) {
  inner_.record(name, value);
}

}  // namespace zeroproof::train
