// Which dtype gradients have on the wire (docs/spec/zero.md 6.1), and the report of 6.4.
#include "engine/precision/communication_dtype.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "engine/precision/module_classes.h"
#include "model/nn/language_model.h"
#include "model/nn/norm.h"
#include "model/nn/sequential.h"
#include "zeroproof/model/nn/linear.h"

namespace zeroproof {
namespace {

Tensor parameter(DType dtype) {
  return Tensor::full({2, 2}, 0.0, dtype);
}

// A class that is on no list, with a parameter of its own beside a Linear.
class Adapter final : public nn::Module {
 public:
  explicit Adapter(Tensor base)
      : base_(register_module("base", std::make_shared<nn::Linear>(std::move(base)))) {
    register_parameter("scale", parameter(DType::float32));
  }

 protected:
  TensorList forward(Autograd&, const TensorList& inputs) const override { return inputs; }

 private:
  std::shared_ptr<nn::Linear> base_;
};

// A head tied to the first layer, between them a norm and an adapter on a bf16 base.
struct Model {
  std::shared_ptr<nn::Linear> first = std::make_shared<nn::Linear>(parameter(DType::float32));
  std::shared_ptr<nn::LayerNorm> norm = std::make_shared<nn::LayerNorm>(parameter(DType::float32));
  std::shared_ptr<Adapter> adapter = std::make_shared<Adapter>(parameter(DType::bfloat16));
  nn::Sequential root{{first, norm, adapter}};
};

std::map<std::string, DType> dtypes(nn::Module& root, const ZeroConfig& config) {
  ZeroParameters parameters;
  for (const nn::NamedParameter& named : root.named_parameters()) {
    ZeroParameter& parameter = parameters.emplace_back();
    parameter.name = named.name;
    parameter.tensor = named.tensor;
  }
  set_communication_dtypes(root, config, parameters);
  std::map<std::string, DType> dtypes;
  for (const ZeroParameter& parameter : parameters) {
    dtypes[parameter.name] = parameter.communication_dtype;
  }
  return dtypes;
}

ZeroConfig autocast(DType dtype) {
  ZeroConfig config;
  config.torch_autocast = {.enabled = true, .dtype = dtype};
  return config;
}

TEST(CommunicationDtype, Is_the_models_unless_it_is_configured) {
  Model model;
  ZeroConfig config;
  for (const auto& [name, dtype] : dtypes(model.root, config)) EXPECT_EQ(dtype, DType::float32);
  config.bf16.enabled = true;
  for (const auto& [name, dtype] : dtypes(model.root, config)) EXPECT_EQ(dtype, DType::bfloat16);
  config.communication_data_type = DType::float16;
  for (const auto& [name, dtype] : dtypes(model.root, config)) EXPECT_EQ(dtype, DType::float16);
}

TEST(CommunicationDtype, Is_autocasts_for_what_safe_classes_own_and_its_own_for_the_rest) {
  Model model;
  ZeroConfig config = autocast(DType::float16);
  config.communication_data_type = DType::bfloat16;  // autocast overrides it
  const std::map<std::string, DType> expected = {{"0.weight", DType::float16},
                                                 {"1.weight", DType::float32},
                                                 {"2.scale", DType::float32},
                                                 {"2.base.weight", DType::float16}};
  EXPECT_EQ(dtypes(model.root, config), expected);
}

TEST(CommunicationDtype, Follows_the_configured_classes_exactly) {
  Model model;
  ZeroConfig config = autocast(DType::bfloat16);
  config.torch_autocast.lower_precision_safe_modules = {"torch.nn.LayerNorm", "torch.nn.Conv2d"};
  const std::map<std::string, DType> expected = {{"0.weight", DType::float32},
                                                 {"1.weight", DType::bfloat16},
                                                 {"2.scale", DType::float32},
                                                 {"2.base.weight", DType::bfloat16}};
  // The adapter's base is a Linear, which is not listed: it keeps its own bfloat16.
  EXPECT_EQ(dtypes(model.root, config), expected);
  config.torch_autocast.lower_precision_safe_modules->clear();
  EXPECT_EQ(dtypes(model.root, config)["1.weight"], DType::float32);
}

TEST(CommunicationDtype, Of_a_tied_parameter_is_low_when_one_owner_is_safe) {
  const Tensor tied = parameter(DType::float32);
  auto norm = std::make_shared<nn::LayerNorm>(tied);
  auto head = std::make_shared<nn::Linear>(tied);
  nn::Sequential root({norm, head});
  EXPECT_EQ(dtypes(root, autocast(DType::bfloat16))["0.weight"], DType::bfloat16);
}

TEST(ModuleClass, Is_known_for_every_class_that_the_model_layer_has) {
  Model model;
  EXPECT_EQ(module_class(*model.first), "torch.nn.Linear");
  EXPECT_EQ(module_class(*model.norm), "torch.nn.LayerNorm");
  EXPECT_EQ(module_class(model.root), "torch.nn.Sequential");
  EXPECT_EQ(module_class(*model.adapter), "");
  EXPECT_TRUE(is_importable_class("torch.nn.Conv3d"));
  EXPECT_FALSE(is_importable_class("torch.nn.Linaer"));
  for (const std::string& name : default_safe_classes()) EXPECT_TRUE(is_importable_class(name));
}

}  // namespace
}  // namespace zeroproof
