#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "engine/config/config_reader.h"
#include "model/nearest_name.h"

namespace zeroproof {
namespace {

constexpr std::array<std::string_view, 3> kTypes = {"Adam", "AdamW", "SGD"};
// What DeepSpeed makes besides; in lower case.
constexpr std::array<std::string_view, 7> kOthers = {"adagrad", "lamb", "muadam", "muadamw",
                                                     "musgd",   "lion", "muon"};
// Classes of torch.optim, which DeepSpeed takes under their exact names.
constexpr std::array<std::string_view, 10> kTorchClasses = {
    "ASGD",  "Adadelta", "Adafactor", "Adagrad", "Adamax",
    "LBFGS", "NAdam",    "RAdam",     "RMSprop", "Rprop"};

void read_betas(const ConfigSection& params, optim::AdamOptions& adam) {
  params.note_auto("betas", fmt::format("[{}, {}]", adam.beta1, adam.beta2));
  const JsonValue* const betas = params.find("betas");
  if (betas == nullptr) return;
  const bool is_pair = betas->kind == JsonKind::list && betas->values.size() == 2;
  const auto is_beta = [](const JsonValue& value) {
    return value.kind == JsonKind::number && value.number >= 0.0 && value.number < 1.0;
  };
  if (!is_pair || !std::ranges::all_of(betas->values, is_beta)) {
    params.reject("betas", fmt::format("is {}; give two numbers in [0, 1)", betas->described()));
  }
  adam.beta1 = betas->values[0].number;
  adam.beta2 = betas->values[1].number;
}

// "Adam" means AdamW unless adam_w_mode is off, as upstream; its decay is 0 unless the class is
// PyTorch's own AdamW.
void read_adam(const ConfigSection& params, OptimizerConfig& optimizer) {
  bool is_adam_w = true;
  params.read("adam_w_mode", is_adam_w);
  params.read("torch_adam", optimizer.is_torch_class);
  bool is_corrected = true;
  params.read("bias_correction", is_corrected);
  if (!is_corrected) params.reject("bias_correction", "is false, which is not modelled");

  optim::AdamOptions& adam = optimizer.adam;
  adam.is_decay_decoupled = optimizer.type == OptimizerType::adamw || is_adam_w;
  const bool is_torch_adam_w = optimizer.is_torch_class && adam.is_decay_decoupled;
  adam.weight_decay = is_torch_adam_w ? optim::adamw_options().weight_decay : 0.0;
  params.read("lr", adam.lr);
  read_betas(params, adam);
  params.read("eps", adam.eps);
  params.read("weight_decay", adam.weight_decay);
  params.read("maximize", adam.is_maximizing);
}

void read_sgd(const ConfigSection& params, optim::SgdOptions& sgd) {
  params.read("lr", sgd.lr);
  params.read("momentum", sgd.momentum);
  params.read("dampening", sgd.dampening, {.least = -1e308});
  params.read("weight_decay", sgd.weight_decay);
  params.read("nesterov", sgd.is_nesterov);
  params.read("maximize", sgd.is_maximizing);
  if (sgd.is_nesterov && (sgd.momentum <= 0.0 || sgd.dampening != 0.0)) {
    params.reject("nesterov", "is true; it needs a momentum and no dampening");
  }
}

}  // namespace

std::string in_lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string_view optimizer_family(OptimizerType type) {
  return type == OptimizerType::sgd ? "sgd" : "adam";
}

OptimizerType read_optimizer_type(const ConfigSection& document) {
  const ConfigSection optimizer = document.below("optimizer");
  const std::optional<std::string> type = optimizer.text("type");
  if (!type) return OptimizerType::adam;
  const std::string name = in_lower_case(*type);
  if (name == "adam") return OptimizerType::adam;
  if (name == "adamw") return OptimizerType::adamw;
  if (*type == "SGD") return OptimizerType::sgd;
  const std::string shown = optimizer.find("type")->described();
  const bool is_torchs = std::ranges::find(kTorchClasses, *type) != kTorchClasses.end();
  if (is_torchs || std::ranges::find(kOthers, name) != kOthers.end()) {
    optimizer.reject("type",
                     fmt::format("is {}, which is not modelled; use Adam, AdamW or SGD", shown));
  }
  optimizer.reject("type", fmt::format("is {}; {}", shown, did_you_mean(*type, kTypes)));
}

void read_optimizer(const ConfigSection& document, ZeroConfig& config) {
  const JsonValue* const block = document.find("optimizer");
  if (block == nullptr || block->kind != JsonKind::object) return;
  const ConfigSection optimizer = document.below("optimizer");
  if (!optimizer.text("type")) {
    optimizer.reject("type", "is missing; give Adam, AdamW or SGD");
  }
  config.optimizer.type = read_optimizer_type(document);
  const ConfigSection params = optimizer.below("params");
  if (config.optimizer.type == OptimizerType::sgd) {
    read_sgd(params, config.optimizer.sgd);
  } else {
    read_adam(params, config.optimizer);
  }
}

}  // namespace zeroproof
