// A leaf module whose outputs lie on two accelerators: autograd runs their nodes on two
// threads, in any order (#7825, P71).
//
// Simulated threads change between nodes, and a fetch happens inside one: no thread can come upon
// another one's fetch here. What a second thread must not do is gather again, or compute before
// the parameters are whole.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "engine/journal.h"
#include "model/cpu_ops.h"
#include "model/custom_function.h"
#include "sim/schedulers/exhaustive.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/engine.h"
#include "zeroproof/engine/runtime/host/host_world.h"

namespace zeroproof {
namespace {

Tensor moved(Autograd& ag, const Tensor& x, Device to) {
  const Device from = x.device();
  return apply_function(
             ag,
             {.name = "ToCopyBackward",
              .backward = [from](
                              FunctionContext&,
                              const TensorList& grads) { return TensorList{grads.at(0).on(from)}; },
              .forward_alone = [to](const TensorList& in) { return TensorList{in.at(0).on(to)}; },
              .setup_context = [](FunctionContext&, const TensorList&, const TensorList&) {}},
             {x})
      .at(0);
}

class TwoDevices final : public nn::Module {
 public:
  TwoDevices() {
    a_ = register_module("a", linear_layer(4, 3));
    b_ = register_module("b", linear_layer(4, 3));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {moved(ag, (*a_)(ag, inputs.at(0)), Device::cuda(0)),
            moved(ag, (*b_)(ag, inputs.at(0)), Device::cuda(1))};
  }

 private:
  std::shared_ptr<nn::Linear> a_, b_;
};

class LeafModel final : public nn::Module {
 public:
  LeafModel() {
    inp_ = register_module("inp", linear_layer(4, 4));
    leaf = register_module("leaf", std::make_shared<TwoDevices>());
  }
  std::shared_ptr<TwoDevices> leaf;

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const TensorList both = (*leaf)(ag, TensorList{(*inp_)(ag, inputs.at(0))});
    return {add(ag, mean_square(ag, moved(ag, both[0], Device::cpu())),
                mean_square(ag, moved(ag, both[1], Device::cpu())))};
  }

 private:
  std::shared_ptr<nn::Linear> inp_;
};

// What the backwards of the leaf module did.
class LeafLog final : public EventSink {
 public:
  void on_event(const HookEvent& event) override {
    if (is_gathering_ && event.thread != gatherer_) has_been_interrupted = true;
    if (event.kind == EventKind::zmod_fetch && !event.is_forward &&
        names.text(event.name).ends_with("leaf"))
      fetching.push_back(event.thread);
    const bool is_begin = event.kind == EventKind::zparam_gather_begin;
    if (!is_begin && event.kind != EventKind::zparam_gather_end) return;
    is_gathering_ = is_begin;
    gatherer_ = event.thread;
    if (!is_begin || event.graph_task.is_none()) return;
    for (const NameId param : event.params)
      if (names.text(param).find("leaf.") != std::string_view::npos) ++gathers[param];
  }

  NameTable names;
  std::vector<std::int32_t> fetching;  // threads
  std::map<NameId, int> gathers;       // in backwards, by parameter
  bool has_been_interrupted = false;

 private:
  bool is_gathering_ = false;
  std::int32_t gatherer_ = 0;
};

std::vector<std::vector<double>> gradients(Chooser& chooser) {
  LeafLog log;
  Journal journal(log, log.names, 0);
  HostWorld world({.world_size = 1, .observers = {{.journal = &journal}}});
  const CpuOps ops;
  Autograd ag(ops);
  journal.set_autograd(&ag);
  ag.set_scheduling(chooser);
  LeafModel model;
  ZeroConfig config{.stage = 3};
  config.stage3_param_persistence_threshold = 0;
  config.stage3_max_reuse_distance = 0;
  auto engine = Engine::initialize(ag, model, config, world.runtime(0)).value();
  engine->set_leaf_module(*model.leaf);
  engine->backward(engine->forward(filled({2, 4}, 0.1)));

  EXPECT_EQ(std::set(log.fetching.begin(), log.fetching.end()).size(), 2U) << "two threads";
  EXPECT_EQ(log.gathers.size(), 4U);
  for (const auto& [param, count] : log.gathers) EXPECT_EQ(count, 1) << log.names.text(param);
  EXPECT_FALSE(log.has_been_interrupted);
  for (const nn::NamedParameter& named : model.named_parameters())
    EXPECT_EQ(named.tensor.numel(), 0) << named.name;
  std::vector<std::vector<double>> values;
  for (const FullTensor& gradient : engine->full_gradients()) values.push_back(gradient.values);
  return values;
}

TEST(LeafThreads, Gather_once_in_every_order) {
  ExhaustiveScheduler orders(Pruning::off);
  std::set<std::vector<std::vector<double>>> outcomes;
  int count = 0;
  for (; orders.new_execution() && !HasFailure(); ++count) {
    outcomes.insert(gradients(orders));
    orders.end_execution({});
  }
  EXPECT_GT(count, 1);
  EXPECT_EQ(outcomes.size(), 1U) << "P38";
}

}  // namespace
}  // namespace zeroproof
