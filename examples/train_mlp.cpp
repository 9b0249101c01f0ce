// A network, a configuration, an engine, a loop: one rank learns the sine.
#include <cmath>
#include <cstdio>

#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/engine/zero_config.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/mlp.h"

namespace {

using namespace zeroproof;

// The configuration is a ds_config.json.
constexpr const char* kConfig = R"({
  "train_micro_batch_size_per_gpu": 32,
  "optimizer": {"type": "AdamW", "params": {"lr": 0.02}},
  "scheduler": {"type": "WarmupCosineLR",
                "params": {"total_num_steps": 300, "warmup_num_steps": 20}},
  "zero_optimization": {"stage": 1}
})";

class Net final : public nn::Module {
 public:
  explicit Net(nn::InitStream& init) {
    const auto layer = [&](std::int64_t inputs, std::int64_t outputs) {
      return nn::make_linear(init, {.inputs = inputs, .outputs = outputs, .dtype = DType::float32});
    };
    first_ = register_module("first", layer(1, 16));
    second_ = register_module("second", layer(16, 1));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {(*second_)(ag, tanh(ag, (*first_)(ag, inputs.at(0))))};
  }

 private:
  std::shared_ptr<nn::Linear> first_, second_;
};

double train(Runtime& runtime, const ZeroConfig& config) {
  Autograd autograd(runtime.ops());
  nn::InitStream init(7);
  Net net(init);
  auto engine = Engine::initialize(autograd, net, config, runtime);
  if (!engine) throw UsageError(engine.error().text);
  std::vector<double> x, y;
  for (int i = 0; i < 32; ++i) x.push_back(-3.0 + 6.0 * i / 31);
  for (const double at : x) y.push_back(std::sin(at));
  const Tensor inputs = Tensor::of(x, {32, 1}, DType::float32);
  const Tensor targets = Tensor::of(y, {32, 1}, DType::float32);
  double loss = 0.0;
  for (int step = 0; step <= 300; ++step) {
    const Tensor error = sub(autograd, (*engine)->forward(inputs), targets);
    const Tensor squares = mean(autograd, mul(autograd, error, error));
    (*engine)->backward(squares);
    loss = squares.item();
    if (step % 100 == 0)
      std::printf("step %3d: loss %.4f at learning rate %.5f\n", step, loss,
                  (*engine)->learning_rates().at(0));
    (*engine)->step();
  }
  return loss;
}

}  // namespace

int main() {
  const auto parsed = parse_ds_config(kConfig, "train_mlp");
  if (!parsed) return std::fprintf(stderr, "%s\n", parsed.error().text.c_str()), 2;
  HostWorld world({.world_size = 1});
  double loss = 1.0;
  world.run([&](Runtime& runtime) { loss = train(runtime, parsed->config); });
  return loss < 0.02 ? 0 : 1;
}
