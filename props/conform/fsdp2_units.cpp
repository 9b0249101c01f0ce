#include "props/conform/fsdp2_units.h"

#include <utility>

#include "model/custom_function.h"

namespace zeroproof {

Fsdp2Units::Fsdp2Units(Autograd& autograd, Report report)
    : autograd_(autograd), report_(std::move(report)) {}

Fsdp2Units::~Fsdp2Units() {
  for (HookHandle& handle : handles_) handle.remove();
}

void Fsdp2Units::add(nn::Module& module, std::string name) {
  units_.push_back(std::make_unique<Unit>(Unit{std::move(name)}));
  Unit& unit = *units_.back();
  handles_.push_back(module.register_forward_pre_hook(
      [this, &unit](const TensorList& inputs) { return pre_forward(unit, inputs); }));
  handles_.push_back(
      module.register_forward_hook([this, &unit](const TensorList&, const TensorList& outputs) {
        post_forward(unit, outputs);
        return TensorList{};
      }));
}

// A module that is called during its own backward is being recomputed: its backward hooks are
// there already.
TensorList Fsdp2Units::pre_forward(Unit& unit, const TensorList& inputs) {
  if (unit.module == State::pre_backward) return {};
  unit.module = unit.state = State::forward;
  if (!autograd_.is_grad_enabled()) return {};
  std::vector<std::size_t> indices;
  TensorList with_grad;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_defined() || !inputs[i].requires_grad()) continue;
    indices.push_back(i);
    with_grad.push_back(inputs[i]);
  }
  if (indices.empty()) return {};
  const CustomFunction identity = {
      .name = "RegisterPostBackwardFunctionBackward",
      .forward = [](FunctionContext&, const TensorList& tensors) { return tensors; },
      .backward =
          [this, &unit](FunctionContext&, const TensorList& grads) {
            post_backward(unit);
            return grads;
          }};
  const TensorList behind = apply_function(autograd_, identity, with_grad);
  TensorList replaced = inputs;
  for (std::size_t i = 0; i < indices.size(); ++i) replaced[indices[i]] = behind[i];
  return replaced;
}

void Fsdp2Units::post_forward(Unit& unit, const TensorList& outputs) {
  if (unit.module == State::pre_backward) return;
  unit.module = unit.state = State::idle;
  if (!autograd_.is_grad_enabled()) return;
  for (const Tensor& output : outputs) {
    if (!output.is_defined() || !output.requires_grad()) continue;
    output.register_hook([this, &unit](const Tensor&) {
      pre_backward(unit);
      return Tensor();
    });
  }
}

void Fsdp2Units::pre_backward(Unit& unit) {
  unit.module = State::pre_backward;
  if (!std::exchange(has_queued_, true)) {
    autograd_.queue_callback([this] { finish(); });
    report_("cb_queued");
  }
  if (unit.state == State::pre_backward) return;
  unit.state = State::pre_backward;
  report_("pre_bwd:" + unit.name);
}

void Fsdp2Units::post_backward(Unit& unit) {
  unit.state = State::post_backward;
  report_("post_bwd:" + unit.name);
}

void Fsdp2Units::finish() {
  report_("final+");
  for (const auto& unit : units_) {
    if (unit->state == State::post_backward) continue;
    unit->is_pending = is_manual_;
    if (!is_manual_) post_backward(*unit);
  }
  reset();
  report_("final-");
}

void Fsdp2Units::finalize_backward() {
  for (auto unit = units_.rbegin(); unit != units_.rend(); ++unit)
    if (std::exchange((*unit)->is_pending, false)) post_backward(**unit);
  reset();
}

void Fsdp2Units::reset() {
  for (const auto& unit : units_) unit->module = unit->state = State::idle;
  has_queued_ = false;
}

}  // namespace zeroproof
