#include "props/train/baseline_target.h"

#include <algorithm>
#include <optional>

#include "model/autocast/autocast.h"
#include "zeroproof/engine/engine_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::train {

namespace {

// Ends however `body` ends.
void run_block(const std::function<void()>& body, const std::function<void()>& end) {
  try {
    body();
  } catch (...) {
    end();
    throw;
  }
  end();
}

}  // namespace

BaselineTarget::BaselineTarget(Autograd& autograd, std::vector<reference::WholeEngine>& engines,
                               int rank, WindowValues* values)
    : autograd_(autograd),
      engines_(engines),
      rank_(rank),
      values_(values),
      windows_(engines.size()) {}

TensorList BaselineTarget::forward(std::size_t engine, const TensorList& inputs) {
  const TorchAutocastConfig& config = engines_[engine].config().torch_autocast;
  const Autocast region(autograd_, inputs.front().device().type(),
                        {.is_enabled = config.enabled, .dtype = config.dtype});
  return engines_[engine].module()(autograd_, inputs);
}

double BaselineTarget::accumulation_factor(std::size_t engine) const {
  return 1.0 / static_cast<double>(engines_[engine].config().gradient_accumulation_steps);
}

Tensor BaselineTarget::backward(std::size_t engine, const Tensor& loss,
                                const BackwardArguments& arguments) {
  const double factor = arguments.scale_wrt_gas ? accumulation_factor(engine) : 1.0;
  const Tensor root = mul(autograd_, loss, engines_[engine].loss_scale() * factor);
  run_backward(
      [&] {
        autograd_.backward(root,
                           {.create_graph = arguments.create_graph,
                            .retain_graph = arguments.retain_graph || arguments.create_graph});
      },
      arguments.scale_wrt_gas ? std::optional(engine) : std::nullopt);
  const GradMode disabled(autograd_, false);
  return mul(autograd_, loss, factor);
}

// What the caller did not divide by the accumulation steps comes in divided.
void BaselineTarget::tensor_backward(const TensorList& roots, const TensorList& grads,
                                     bool retain_graph) {
  const bool has_forgotten = engines_.size() == 1 && needs_scaler(0) && !windows_[0].is_scaled;
  if (has_forgotten)
    throw EngineError(EngineErrorId::backward_without_loss_scaling, "the baseline's rule");
  windows_[0].is_scaled = false;
  const double factor = accumulation_factor(0);
  TensorList given;
  for (std::size_t i = 0; i < roots.size(); ++i) {
    const bool has_grad = i < grads.size() && grads[i].is_defined();
    const Tensor grad = has_grad ? grads[i] : Tensor::full(roots[i].sizes(), 1.0, roots[i].dtype());
    const GradMode disabled(autograd_, false);
    given.push_back(mul(autograd_, grad, factor));
  }
  run_backward([&] { autograd_.backward(roots, given, {.retain_graph = retain_graph}); }, 0);
}

// A backward that throws leaves no gradients.
void BaselineTarget::run_backward(const std::function<void()>& backward,
                                  std::optional<std::size_t> divided_by) {
  try {
    backward();
  } catch (...) {
    for (const reference::WholeEngine& engine : engines_) engine.clear_grads();
    throw;
  }
  finish_backward(divided_by);
}

// What belongs to other engines than the one that divided has steps of its own.
void BaselineTarget::finish_backward(std::optional<std::size_t> divided_by) {
  for (std::size_t engine = 0; engine < engines_.size(); ++engine) {
    Window& window = windows_[engine];
    ++window.counts.backwards;
    engines_[engine].collect(
        window.sums,
        divided_by ? accumulation_factor(engine) / accumulation_factor(*divided_by) : 1.0);
    if (reduces_now(engine)) close(window);
  }
}

// Stages 2 and 3 after every backward, the others when a micro-batch ends the window.
bool BaselineTarget::reduces_now(std::size_t engine) const {
  const Window& window = windows_[engine];
  const ZeroConfig& config = engines_[engine].config();
  if (window.is_coalescing) return false;
  if (config.stage >= 2) return true;
  if (!config.managed_gradient_accumulation) return false;
  if (window.is_boundary) return *window.is_boundary;
  return (window.counts.micro_steps + 1) % config.gradient_accumulation_steps == 0;
}

void BaselineTarget::close(Window& window) {
  const auto has_gradient = [](const Tensor& grad) { return grad.is_defined(); };
  if (std::ranges::any_of(window.sums, has_gradient)) window.reductions.push_back(window.sums);
  window.sums.clear();
}

bool BaselineTarget::needs_scaler(std::size_t engine) {
  return engines_[engine].needs_scaler();
}

Tensor BaselineTarget::scale(std::size_t engine, const Tensor& loss, bool) {
  windows_[engine].is_scaled = true;
  const bool is_half = item_bytes(loss.dtype()) == 2;  // which might not hold the product
  return mul(autograd_, is_half ? to(autograd_, loss, DType::float32) : loss,
             engines_[engine].loss_scale());
}

void BaselineTarget::step(std::size_t engine) {
  Window& window = windows_[engine];
  ++window.counts.micro_steps;
  if (!engines_[engine].config().managed_gradient_accumulation) close(window);
}

void BaselineTarget::zero_grad(std::size_t engine) {
  engines_[engine].clear_grads();
  windows_[engine].sums.clear();
  windows_[engine].reductions.clear();
}

void BaselineTarget::coalesce(std::size_t engine, const std::function<void()>& body) {
  windows_[engine].is_coalescing = true;
  const auto end = [&] {
    windows_[engine].is_coalescing = false;
    close(windows_[engine]);
  };
  run_block(body, end);
}

void BaselineTarget::set_boundary(std::size_t engine, bool is_boundary) {
  windows_[engine].is_boundary = is_boundary;
}

void BaselineTarget::record(const std::string& name, const Tensor& value) {
  if (values_) values_->records.push_back({name, value.sizes(), value.values()});
}

}  // namespace zeroproof::train
