// A hook policy decides when all gradients of a backward are in. This policy watches another one,
// and prints what upstream's policy does in a backward that its user starts by loss.backward().
#include <cstdio>

#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/hooks/policy_decorator.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"
#include "zeroproof/model/nn/mlp.h"

namespace {

using namespace zeroproof;

class WatchedPolicy final : public PolicyDecorator {
 public:
  using PolicyDecorator::PolicyDecorator;

  void on_prologue(HookHost& host) override {
    inner().on_prologue(host);
    std::printf("  prologue: the count of running backwards is %d\n",
                static_cast<int>(inner().state().active_depth));
  }
  bool before_gradient(HookHost& host) override {
    ++hooks_;
    return inner().before_gradient(host);
  }
  void on_epilogue(HookHost& host) override {
    inner().on_epilogue(host);
    std::printf("  epilogue after %d gradient hooks\n", hooks_);
    hooks_ = 0;
  }

 private:
  int hooks_ = 0;
};

void train(Runtime& runtime, const std::string& policy) {
  Autograd autograd(runtime.ops());
  nn::InitStream init(7);
  nn::Mlp net(init, {.width = 4, .hidden = 8, .dtype = DType::float32});
  EngineOptions options{.policy = policy};
  options.decorate_policy = [](std::unique_ptr<HookPolicy> inner) {
    return std::make_unique<WatchedPolicy>(std::move(inner));
  };
  auto engine = Engine::initialize(autograd, net, {.stage = 2}, runtime, options);
  if (!engine) throw UsageError(engine.error().text);
  const Tensor y = (*engine)->forward(Tensor::full({2, 4}, 0.5, DType::float32));
  const Tensor losses[] = {sum(autograd, y), mean(autograd, mul(autograd, y, y))};
  std::printf("%s, the first backward:\n", policy.c_str());
  autograd.backward(losses[0], {.retain_graph = true});
  std::printf("%s, the second backward:\n", policy.c_str());
  autograd.backward(losses[1]);
  (*engine)->step();
}

}  // namespace

int main() {
  HostWorld world({.world_size = 1});
  for (const char* policy : {"exact", "deepspeed-0.18.5"})
    world.run([&](Runtime& runtime) { train(runtime, policy); });
  return 0;
}
