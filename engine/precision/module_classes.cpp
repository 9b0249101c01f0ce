#include "engine/precision/module_classes.h"

#include <algorithm>
#include <array>
#include <typeinfo>

#include "model/nn/embedding.h"
#include "model/nn/language_model.h"
#include "model/nn/mixture.h"
#include "model/nn/norm.h"
#include "model/nn/self_attention.h"
#include "model/nn/sequential.h"
#include "zeroproof/model/nn/linear.h"
#include "zeroproof/model/nn/mlp.h"

namespace zeroproof {
namespace {

constexpr std::array<std::string_view, 17> kImportable = {
    "torch.nn.Linear",
    "torch.nn.Conv1d",
    "torch.nn.Conv2d",
    "torch.nn.Conv3d",
    "torch.nn.ConvTranspose1d",
    "torch.nn.ConvTranspose2d",
    "torch.nn.ConvTranspose3d",
    "torch.nn.Bilinear",
    "torch.nn.Embedding",
    "torch.nn.LayerNorm",
    "torch.nn.RMSNorm",
    "torch.nn.Sequential",
    "zeroproof.nn.LanguageModel",
    "zeroproof.nn.Mixture",
    "zeroproof.nn.Mlp",
    "zeroproof.nn.SelfAttention",
    "zeroproof.nn.TransformerBlock",
};

}  // namespace

std::string_view module_class(const nn::Module& module) {
  const std::type_info& type = typeid(module);
  if (type == typeid(nn::Linear)) return "torch.nn.Linear";
  if (type == typeid(nn::Embedding)) return "torch.nn.Embedding";
  if (type == typeid(nn::LayerNorm)) return "torch.nn.LayerNorm";
  if (type == typeid(nn::RmsNorm)) return "torch.nn.RMSNorm";
  if (type == typeid(nn::Sequential)) return "torch.nn.Sequential";
  if (type == typeid(nn::LanguageModel)) return "zeroproof.nn.LanguageModel";
  if (type == typeid(nn::Mixture)) return "zeroproof.nn.Mixture";
  if (type == typeid(nn::Mlp)) return "zeroproof.nn.Mlp";
  if (type == typeid(nn::SelfAttention)) return "zeroproof.nn.SelfAttention";
  if (type == typeid(nn::TransformerBlock)) return "zeroproof.nn.TransformerBlock";
  return {};
}

std::span<const std::string_view> importable_classes() {
  return kImportable;
}

bool is_importable_class(std::string_view name) {
  return std::ranges::find(kImportable, name) != kImportable.end();
}

const std::vector<std::string>& default_safe_classes() {
  static const std::vector<std::string> kDefault = {"torch.nn.Linear", "torch.nn.Conv1d",
                                                    "torch.nn.Conv2d", "torch.nn.Conv3d"};
  return kDefault;
}

}  // namespace zeroproof
