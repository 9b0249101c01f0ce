// Two ranks train one model with ZeRO stage 3: parameters, gradients and optimizer state are
// partitioned, and every rank ends with the same values.
#include <cstdio>

#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/engine/zero_config.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/mlp.h"

namespace {

using namespace zeroproof;

constexpr const char* kConfig = R"({
  "train_micro_batch_size_per_gpu": 8,
  "gradient_accumulation_steps": 2,
  "optimizer": {"type": "AdamW", "params": {"lr": 0.01}},
  "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0},
  "bf16": {"enabled": true}
})";

// What the network is to say about rows that differ from rank to rank.
Tensor batch(int rank, int micro_batch) {
  std::vector<double> values;
  for (int i = 0; i < 8 * 4; ++i) values.push_back(((i * 5 + rank * 3 + micro_batch) % 9) / 8.0);
  return Tensor::of(values, {8, 4}, DType::bfloat16);
}

std::vector<FullTensor> train(Runtime& runtime, const ZeroConfig& config) {
  Autograd autograd(runtime.ops());
  nn::InitStream init(7);
  nn::Mlp net(init, {.width = 4, .hidden = 16, .dtype = DType::float32});
  auto engine = Engine::initialize(autograd, net, config, runtime);
  if (!engine) throw UsageError(engine.error().text);
  for (int step = 0; step < 20; ++step) {
    for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
      const Tensor x = batch(runtime.rank(), micro_batch);
      const Tensor error = sub(autograd, (*engine)->forward(x), x);
      const Tensor loss = mean(autograd, mul(autograd, error, error));
      autograd.backward(loss);  // as loss.backward(): hooks reduce the gradients
      if (runtime.rank() == 0 && micro_batch == 1 && step % 5 == 0)
        std::printf("step %2d: loss %.4f on rank 0\n", step, loss.item());
      (*engine)->step();  // updates after the second micro-batch
    }
  }
  return (*engine)->full_parameters();  // collected from all ranks
}

}  // namespace

int main() {
  const auto parsed = parse_ds_config(kConfig, "train_two_ranks");
  if (!parsed) return std::fprintf(stderr, "%s\n", parsed.error().text.c_str()), 2;
  HostWorld world({.world_size = 2});
  std::vector<std::vector<FullTensor>> of_ranks(2);
  world.run([&](Runtime& runtime) {
    of_ranks[static_cast<std::size_t>(runtime.rank())] = train(runtime, parsed->config);
  });
  bool are_equal = true;
  for (std::size_t i = 0; i < of_ranks[0].size(); ++i) {
    const FullTensor& parameter = of_ranks[0][i];
    are_equal = are_equal && parameter.values == of_ranks[1][i].values;
    std::printf("%-12s %2zu values, the first %+.4f\n", parameter.name.c_str(),
                parameter.values.size(), parameter.values.front());
  }
  std::printf("the ranks %s\n", are_equal ? "agree" : "differ");
  return are_equal ? 0 : 1;
}
