#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "props/train/models.h"
#include "props/train/program_watch.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof {

// The models of record_deepspeed.py, layer by layer under the same names. All give one scalar loss
// unless their line says otherwise.
enum class DeepspeedModel : std::uint8_t {
  mlp,
  mlp_without_loss,  // what the last layer gives
  reentrant,
  non_reentrant,
  reentrant_frozen,
  non_reentrant_frozen,
  two_losses,  // {loss a, loss b}
  unused,
  tied,  // one layer twice
  tiled,
  undefined_grad,
  raising,  // its first backward throws train::Injected
  leaf,
};

struct DeepspeedModelOptions {
  // A parameter by its full name in the model.
  std::function<Tensor(const std::string& name)> parameter;
  train::ProgramWatch* watch = nullptr;  // must outlive the graphs; null for none
  train::ReadyMark mark_ready = {};
};

std::shared_ptr<nn::Module> make_deepspeed_model(DeepspeedModel kind,
                                                 const DeepspeedModelOptions& options);

}  // namespace zeroproof
