#include "engine/runtime/host/elements.h"
#include "engine/runtime/host/host_kernels.h"
#include "engine/runtime/host/rounding.h"
#include "engine/runtime/update_rules.h"
#include "model/check.h"

namespace zeroproof::host {
namespace {

double* flat(Span span, std::int64_t elements) {
  ZP_CHECK(span.elements == elements, "an update of spans of different lengths");
  ZP_CHECK(span.is_empty() || is_dense(span), "an update of a tensor with gaps");
  return span.is_empty() ? nullptr : begin_of(span);
}

}  // namespace

void HostKernels::adam(Stream& stream, const AdamUpdate& update) {
  const std::int64_t elements = update.parameter.elements;
  note(stream, update.parameter, update.grad);
  note_target(stream, update.exp_avg);
  note_target(stream, update.exp_avg_sq);
  double* const parameter = flat(update.parameter, elements);
  const double* const grad = flat(update.grad, elements);
  double* const avg = flat(update.exp_avg, elements);
  double* const square = flat(update.exp_avg_sq, elements);
  double* const copy = update.copy.is_empty() ? nullptr : flat(update.copy, elements);
  if (copy != nullptr) note_target(stream, update.copy);
  const Rounding round_copy{copy == nullptr ? DType::float64 : update.copy.dtype()};
  const AdamRule rule = adam_rule(update);
  for (std::int64_t i = 0; i < elements; ++i) {
    AdamElement element = {parameter[i], grad[i], avg[i], square[i]};
    update_adam<Rounding>(rule, element);
    parameter[i] = element.parameter;
    avg[i] = element.exp_avg;
    square[i] = element.exp_avg_sq;
    if (copy != nullptr) copy[i] = round_copy(element.parameter);
  }
}

void HostKernels::sgd(Stream& stream, const SgdUpdate& update) {
  const std::int64_t elements = update.parameter.elements;
  const SgdRule rule = sgd_rule(update);
  note(stream, update.parameter, update.grad);
  if (rule.has_momentum) note_target(stream, update.momentum_buffer);
  double* const parameter = flat(update.parameter, elements);
  const double* const grad = flat(update.grad, elements);
  double* const buffer = rule.has_momentum ? flat(update.momentum_buffer, elements) : nullptr;
  for (std::int64_t i = 0; i < elements; ++i) {
    SgdElement element = {parameter[i], grad[i], buffer ? buffer[i] : 0.0};
    update_sgd<Rounding>(rule, element);
    parameter[i] = element.parameter;
    if (buffer) buffer[i] = element.momentum_buffer;
  }
}

}  // namespace zeroproof::host
