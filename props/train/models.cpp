#include "props/train/models.h"

#include <utility>

#include "model/check.h"

namespace zeroproof::train {

namespace {

std::shared_ptr<nn::Module> on(Device device, std::shared_ptr<nn::Module> model) {
  if (device.is_cpu()) return model;
  for (const nn::NamedParameter& named : model->named_parameters())
    named.tensor.set_data(named.tensor.on(device));
  return model;
}

}  // namespace

std::shared_ptr<nn::Module> make_model(ModelKind kind, const ModelOptions& options) {
  for (const auto factory : {make_plain_model, make_checkpoint_model, make_function_model,
                             make_kd_model, make_structured_model}) {
    if (auto model = factory(kind, options)) return on(options.device, std::move(model));
  }
  ZP_CHECK(false, "a model that no file makes");
  return nullptr;
}

bool takes_row_numbers(ModelKind kind) {
  return kind == ModelKind::skipped_frame;
}

std::int64_t input_width(ModelKind kind) {
  return kind == ModelKind::stage_pair ? 3 : 4;
}

}  // namespace zeroproof::train
