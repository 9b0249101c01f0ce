// Rules of docs/spec/autograd.md that no conformance program shows. True values are those of
// PyTorch 2.11.0. Where each rule is held:
//   N  P54, P59, P93, linear and autocast programs         G1 here, P95     G2 P83, here (H8)
//   G3 P11, P93, random_program   G4 here   G5 scale, random_program        G6 here
//   Q1 ready_queue, exception     Q2 P07, random_program   Q3 here   Q4 here, P80   Q5 here, P51
//   Q6 here, P11                  Q7 here, P81             E1 P22, P92, random_program
//   E2 random_program (what is below never runs)           E3 here, random_program  E4 here, P54
//   E5 here, exception            X1 P14, random_program   X2 P15, here      X3 P15, P78
//   X4 P79                        X5 here, P74             A1 P82            A2 P50, P82
//   A3 P55, P56, here             A4 P54                   A5 P16            A6 P59, here
//   A7 P31 to P33                 H1 here, hook_order      H2 P57, here      H3 P83, here
//   H4 P79, hook_order            H5 P19, P20              H6 P21, P92, hook_order, multi_grad
//   H7 P88, hook_order, here      H8 P83, here             R1 P42            R2 random_program
//   R3 here (two devices)         R4 P45, autograd_test    R5 exception      C1 P38 to P40, here
//   C2 P81, P83                   C3 P39, P74              C4 P41            C5 P47, exception
//   C6 P46, P48, exception        C7 P85, P86              F1 F2 exception   F3 P49, here
//   D1 P13, exception             D2 P12, random_program   D3 P58, here      D4 P58
//   S1 here                       S2 here                  S3 here
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/accumulate_grad.h"
#include "model/cpu_ops.h"
#include "model/custom_function.h"
#include "model/saved_tensor.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

using Events = std::vector<std::string>;
using Values = std::vector<double>;

class AutogradRules : public ::testing::Test {
 protected:
  static Tensor leaf(double value, Device device = Device::cpu()) {
    const Tensor tensor = Tensor::full({1}, value).on(device);
    tensor.set_requires_grad(true);
    return tensor;
  }

  Tensor::Hook note(const std::string& event) {
    return [this, event](const Tensor&) {
      events.push_back(event);
      return Tensor();
    };
  }

  // x times 1 with a backward that returns what it is given.
  Tensor with_backward(const Tensor& x, const Tensor& grad) {
    CustomFunction function{.name = "Given"};
    function.forward = [this](FunctionContext&, const TensorList& in) {
      return TensorList{mul(ag, in[0], 1.0)};
    };
    function.backward = [grad](FunctionContext&, const TensorList&) { return TensorList{grad}; };
    return apply_function(ag, function, {x})[0];
  }

  // Keep the tensor itself.
  static SavedTensorHooks noting_hooks(std::function<void(const std::string&)> see) {
    return {[see](const Tensor& tensor) -> std::shared_ptr<void> {
              see("pack");
              return std::make_shared<Tensor>(tensor);
            },
            [see](const std::shared_ptr<void>& packed) {
              see("unpack");
              return *std::static_pointer_cast<Tensor>(packed);
            }};
  }
  static SavedTensorHooks counting_hooks(int& packed) {
    return noting_hooks([&packed](const std::string& what) { packed += what == "pack" ? 1 : 0; });
  }

  // Runs in a hook of its own backward.
  void in_a_hook(const std::function<void()>& body) {
    const Tensor y = mul(ag, leaf(1.0), 2.0);
    y.register_hook([&body](const Tensor&) {
      body();
      return Tensor();
    });
    ag.backward(y);
  }

  CpuOps ops;
  Autograd ag{ops};
  Events events;
};

TEST_F(AutogradRules, G1_counts_a_task_when_it_begins_whatever_becomes_of_it) {
  std::vector<std::int64_t> ids;
  const auto note_id = [&] { ids.push_back(ag.current_graph_task().value); };
  in_a_hook(note_id);
  in_a_hook([&] {
    note_id();
    const GradMode enabled(ag, true);
    in_a_hook(note_id);
    note_id();
  });
  const Tensor x = leaf(1.0);
  x.register_hook([](const Tensor&) -> Tensor { throw AutogradError("injected"); });
  EXPECT_THROW(ag.backward(x), AutogradError);
  in_a_hook(note_id);
  EXPECT_EQ((std::vector<std::int64_t>{0, 1, 2, 1, 4}), ids);
}

TEST_F(AutogradRules, G4_G6_refuse_a_root_before_there_is_a_task) {
  const Tensor x = Tensor::full({2}, 1.0);
  x.set_requires_grad(true);
  EXPECT_THROW(ag.backward(mul(ag, x, 2.0)), AutogradError) << "not one element";
  EXPECT_THROW(ag.backward(Tensor::full({}, 1.0)), AutogradError) << "no gradient";
  EXPECT_THROW(ag.backward({sum(ag, x)}, {Tensor::full({3}, 1.0)}), AutogradError) << "shape";
  EXPECT_THROW(ag.backward({mul(ag, x, 2.0)}, {Tensor::full({3, 2}, 1.0)}), AutogradError);
  EXPECT_THROW(ag.backward({sum(ag, x)}, {Tensor(), Tensor()}), AutogradError) << "count";
  EXPECT_FALSE(x.grad().is_defined());
  in_a_hook([&] { EXPECT_EQ(GraphTaskId{0}, ag.current_graph_task()); });
}

TEST_F(AutogradRules, G6_retain_graph_is_create_graph_unless_it_is_given) {
  const Tensor x = leaf(3.0);
  const auto is_kept = [&](const BackwardOptions& options) {
    const Tensor y = mul(ag, x, x);
    ag.backward(y, options);
    try {
      ag.backward(y);
    } catch (const AutogradError&) {
      return false;
    }
    return true;
  };
  EXPECT_FALSE(is_kept({}));
  EXPECT_TRUE(is_kept({.retain_graph = true}));
  EXPECT_TRUE(is_kept({.create_graph = true}));
  x.set_grad({});  // which the graph owns that owns it (rule D3)
  EXPECT_FALSE(is_kept({.create_graph = true, .retain_graph = false}));
  x.set_grad({});
}

TEST_F(AutogradRules, Q3_Q5_nodes_and_hooks_run_on_the_thread_of_their_device) {
  const Tensor on_cpu = leaf(1.0);
  const Tensor on_cuda = leaf(1.0, Device::cuda(0));
  std::vector<std::int32_t> threads;
  for (const Tensor& x : {on_cpu, on_cuda})
    x.register_hook([&](const Tensor&) {
      threads.push_back(ag.current_thread());
      return Tensor();
    });
  ag.backward(mul(ag, on_cpu, 2.0));
  ag.backward(mul(ag, on_cuda, 2.0));
  ag.set_multithreading_enabled(false);
  ag.backward(mul(ag, on_cuda, 2.0));
  ASSERT_EQ(3U, threads.size());
  EXPECT_EQ(0, threads[0]);
  EXPECT_NE(0, threads[1]);
  EXPECT_EQ(0, threads[2]) << "rule Q4: all on the caller";
}

TEST_F(AutogradRules, Q4_callers_share_the_thread_of_a_device_and_fail_alone) {
  std::vector<std::int32_t> threads;
  const Tensor good = leaf(1.0, Device::cuda(0));
  const Tensor bad = leaf(1.0, Device::cuda(0));
  const auto note_thread = [&](const Tensor& x, bool is_bad) {
    x.register_hook([&threads, this, is_bad](const Tensor&) {
      threads.push_back(ag.current_thread());
      if (is_bad) throw AutogradError("injected");
      return Tensor();
    });
  };
  const Tensor left_over = leaf(1.0, Device::cuda(0));
  note_thread(good, false);
  note_thread(bad, true);
  note_thread(left_over, false);
  const Tensor good_root = mul(ag, good, 2.0);
  const Tensor not_run = mul(ag, left_over, 2.0);
  const Tensor bad_root = add(ag, not_run, mul(ag, bad, 2.0));
  const std::int32_t second = ag.add_thread();
  const std::int32_t third = ag.add_thread();
  const auto errors = ag.backward_together(
      {{0, {bad_root}}, {second, {good_root}}, {third, {Tensor::full({2}, 1.0)}}});
  ASSERT_EQ(3U, errors.size());
  EXPECT_NE(nullptr, errors[0]);
  EXPECT_EQ(nullptr, errors[1]);
  EXPECT_NE(nullptr, errors[2]) << "refused before it had a task";
  EXPECT_EQ((Values{2}), good.grad().values());
  EXPECT_FALSE(bad.grad().is_defined());
  EXPECT_FALSE(left_over.grad().is_defined());
  ASSERT_EQ(2U, threads.size()) << "what the failed task left in the queue does not run (F1)";
  EXPECT_EQ(threads[0], threads[1]);
  EXPECT_EQ(0, ag.current_thread());
  in_a_hook([&] { EXPECT_FALSE(ag.current_graph_task().is_none()); });
}

// Takes the given choices, then the first option.
class Script final : public Chooser {
 public:
  explicit Script(std::vector<std::size_t> choices) : choices_(std::move(choices)) {}
  std::size_t choose(const ChoicePoint& at) override {
    const std::size_t choice = next_ < choices_.size() ? choices_[next_] : 0;
    ++next_;
    return choice < at.options.size() ? choice : 0;
  }

 private:
  std::vector<std::size_t> choices_;
  std::size_t next_ = 0;
};

TEST_F(AutogradRules, Q6_the_device_may_run_the_first_root_before_the_second_is_pushed) {
  const auto order_with = [&](std::vector<std::size_t> choices) {
    const CpuOps cpu;
    Autograd other(cpu);
    Script script(std::move(choices));
    other.set_scheduling(script);
    events.clear();
    TensorList roots;
    for (const char* name : {"early", "late"}) {
      roots.push_back(mul(other, leaf(1.0, Device::cuda(0)), 2.0));
      roots.back().register_hook(note(name));
    }
    other.backward(roots);
    return events;
  };
  EXPECT_EQ((Events{"late", "early"}), order_with({})) << "both wait: the larger number first";
  EXPECT_EQ((Events{"early", "late"}), order_with({1}));
}

TEST_F(AutogradRules, Q7_a_node_runs_with_the_stream_of_its_forward_current) {
  const Device device = Device::cuda(0);
  const Tensor x = leaf(1.0, device);
  const StreamIndex before = ag.set_current_stream(device, 7);
  const Tensor y = mul(ag, x, 2.0);
  ag.set_current_stream(device, before);
  std::vector<StreamIndex> streams;
  y.register_hook([&](const Tensor&) {
    streams.push_back(ag.current_stream(device));
    ag.queue_callback([&] { streams.push_back(ag.current_stream(device)); });
    return Tensor();
  });
  ag.set_current_stream(device, 3);
  ag.backward(y);
  EXPECT_EQ((std::vector<StreamIndex>{7, 3}), streams) << "the callback: the caller's (C2)";
  EXPECT_EQ(3, ag.current_stream(device));
}

TEST_F(AutogradRules, E3_a_node_runs_once_even_when_nothing_arrives) {
  const Tensor x = leaf(1.0);
  x.register_hook([&](const Tensor& grad) {
    events.push_back(grad.is_defined() ? "defined" : "undefined");
    return Tensor();
  });
  x.register_post_accumulate_grad_hook([&](const Tensor&) { events.push_back("accumulated"); });
  ag.backward(add(ag, with_backward(x, {}), with_backward(x, {})));
  EXPECT_EQ((Events{"undefined", "accumulated"}), events) << "rule A3";
  EXPECT_FALSE(x.grad().is_defined());
}

TEST_F(AutogradRules, E4_adds_in_place_only_what_nobody_else_holds) {
  const Tensor x = leaf(1.0);
  TensorList held;
  const Tensor a = mul(ag, x, 2.0);
  const Tensor b = mul(ag, x, 3.0);
  for (const Tensor& each : {a, b})
    each.grad_fn()->register_hook([&](const TensorList& grad_inputs, const TensorList&) {
      held.push_back(grad_inputs[0]);
      return TensorList();
    });
  ag.backward(add(ag, a, b));
  EXPECT_EQ((Values{3}), held[0].values());
  EXPECT_EQ((Values{2}), held[1].values());
  EXPECT_EQ((Values{5}), x.grad().values());
}

TEST_F(AutogradRules, E5_sums_casts_or_refuses_what_a_function_returns) {
  const auto grad_of = [&](const Tensor& returned) {
    const Tensor x = Tensor::full({2}, 1.0);
    x.set_requires_grad(true);
    ag.backward(sum(ag, with_backward(x, returned)));
    EXPECT_EQ(DType::float64, x.grad().dtype());
    return x.grad().values();
  };
  EXPECT_EQ((Values{3, 3}), grad_of(Tensor::full({3, 2}, 1.0)));
  EXPECT_EQ((Values{1, 1}), grad_of(Tensor::full({1, 1, 2}, 1.0)));
  EXPECT_EQ((Values{1, 1}), grad_of(Tensor::full({2}, 1.0, DType::float32)));
  EXPECT_THROW(grad_of(Tensor::full({3}, 1.0)), AutogradError);
  EXPECT_THROW(grad_of(Tensor::full({1}, 1.0)), AutogradError);
  EXPECT_THROW(grad_of(Tensor::full({}, 1.0)), AutogradError);
}

TEST_F(AutogradRules, X2_X5_answer_for_the_current_task) {
  const Tensor x = leaf(1.0);
  const Tensor other = leaf(1.0);
  const Tensor y = mul(ag, x, 2.0);
  const auto leaf_node = find_accumulate_grad(x);
  bool is_refused = false;
  std::vector<bool> answers;
  const HookHandle handle = y.register_hook([&](const Tensor&) {
    try {
      answers.push_back(ag.will_execute(*leaf_node));
    } catch (const AutogradError&) {
      is_refused = true;
    }
    answers.push_back(ag.will_execute(*y.grad_fn()));
    return Tensor();
  });
  const Tensor loss = sum(ag, y);
  const TensorList grads = ag.grad({loss}, {x, other}, {.retain_graph = true});
  EXPECT_TRUE(is_refused);
  EXPECT_FALSE(grads[1].is_defined()) << "not in the graph";
  ag.backward(y, {.retain_graph = true});
  EXPECT_EQ((std::vector<bool>{true, true, false}), answers) << "a single root: False (P22)";
  EXPECT_THROW((void)ag.will_execute(*leaf_node), AutogradError) << "no task";
}

TEST_F(AutogradRules, A6_another_dtype_drops_the_node_of_the_leaf_and_another_shape_does_not) {
  const Tensor x = leaf(1.0);
  const Tensor y = mul(ag, x, 2.0);
  const auto node = find_accumulate_grad(x);
  x.set_data(Tensor::full({3}, 1.0));
  EXPECT_EQ(node, find_accumulate_grad(x));
  x.set_data(Tensor::full({1}, 1.0, DType::float32));
  EXPECT_EQ(nullptr, find_accumulate_grad(x));
  node->register_prehook([&](const TensorList&) { return events.push_back("old"), TensorList(); });
  ag.backward(mul(ag, x, 2.0));
  EXPECT_TRUE(events.empty());
  ag.backward(y);
  EXPECT_EQ((Events{"old"}), events);
  EXPECT_EQ((Values{4}), x.grad().values());
  EXPECT_EQ(DType::float32, x.grad().dtype());
}

// As ZeRO does with a parameter that it gave back too early: its data is empty by now.
TEST_F(AutogradRules, A4_a_leaf_without_data_takes_a_gradient_of_its_layout_and_no_other) {
  const auto accumulate = [this](const Shape& sizes, bool is_restored) {
    const Tensor x = Tensor::full(sizes, 1.0);
    x.set_requires_grad(true);
    const Tensor y = sum(ag, mul(ag, x, 2.0));
    const Tensor data = x.detach();
    x.set_data(Tensor::of({}, {0}));
    if (is_restored) x.set_data(data);
    ag.backward(y);
    return x.grad().values();
  };
  EXPECT_EQ((Values{2, 2, 2}), accumulate({3}, false));
  EXPECT_EQ((Values{2, 2}), accumulate({1, 2}, true));
  try {
    accumulate({2, 3}, false);
    FAIL() << "the gradient has more dimensions than the leaf";
  } catch (const AutogradError& error) {
    EXPECT_EQ(
        "The size of tensor a (0) must match the size of tensor b (3) at non-singleton "
        "dimension 1",
        std::string(error.what()));
  }
}

TEST_F(AutogradRules, H1_what_a_hook_adds_or_removes_counts_from_the_next_time_on) {
  const Tensor y = mul(ag, leaf(1.0), 2.0);
  HookHandle later;
  bool is_first = true;
  y.register_hook([&](const Tensor& grad) {
    if (std::exchange(is_first, false)) {
      y.register_hook(note("new"));
      later.remove();
    }
    return note("first")(grad);
  });
  later = y.register_hook(note("later"));
  ag.backward(y, {.retain_graph = true});
  EXPECT_EQ((Events{"first", "later"}), events);
  events.clear();
  ag.backward(y);
  EXPECT_EQ((Events{"first", "new"}), events);
}

TEST_F(AutogradRules, H1_hooks_of_one_output_stay_together) {
  const Tensor x = leaf(1.0);
  const TensorList parts = unbind(ag, stack(ag, {x, x}, 0), 0);
  parts[1].register_hook(note("1a"));
  parts[0].register_hook(note("0a"));
  parts[1].register_hook(note("1b"));
  ag.backward(add(ag, parts[0], parts[1]));
  EXPECT_EQ((Events{"1a", "1b", "0a"}), events);
}

TEST_F(AutogradRules, H2_retain_grad_moves_with_the_tensor) {
  const Tensor x = leaf(3.0);
  Tensor y = mul(ag, x, 2.0);
  y.retain_grad();
  mul_in_place(ag, y, 5.0);
  ag.backward(y);
  EXPECT_EQ((Values{1}), y.grad().values());
  EXPECT_EQ((Values{10}), x.grad().values());
}

TEST_F(AutogradRules, H3_refuses_hooks_where_nothing_could_call_them) {
  const Tensor y = mul(ag, leaf(1.0), 2.0);
  EXPECT_THROW(y.register_post_accumulate_grad_hook([](const Tensor&) {}), AutogradError);
  EXPECT_THROW(Tensor::full({1}, 1.0).register_hook(note("never")), AutogradError);
  EXPECT_THROW(Tensor::full({1}, 1.0).retain_grad(), AutogradError);
}

TEST_F(AutogradRules, H7_refuses_replacements_of_another_form) {
  const Tensor bad_size = Tensor::full({3}, 1.0);
  const Tensor bad_type = Tensor::full({1}, 1.0, DType::float32);
  for (const Tensor& bad : {bad_size, bad_type}) {
    const Tensor x = leaf(1.0);
    const Tensor y = mul(ag, x, 2.0);
    HookHandle hook = y.register_hook([&](const Tensor&) { return bad; });
    EXPECT_THROW(ag.backward(y), AutogradError) << "tensor hook";
    hook.remove();
    hook = y.grad_fn()->register_prehook([&](const TensorList&) { return TensorList{bad}; });
    EXPECT_THROW(ag.backward(y), AutogradError) << "prehook";
    hook.remove();
    const auto replace_inputs = [&](std::size_t more) {
      return y.grad_fn()->register_hook([&bad, more](const TensorList& in, const TensorList&) {
        TensorList changed(in.size() + more);
        if (more == 0) changed[0] = bad;
        return changed;
      });
    };
    hook = replace_inputs(0);
    EXPECT_THROW(ag.backward(y), AutogradError) << "posthook";
    hook.remove();
    hook = replace_inputs(1);
    EXPECT_THROW(ag.backward(y), AutogradError) << "count";
  }
  const TensorList parts = unbind(ag, stack(ag, {leaf(1.0), leaf(1.0)}, 0), 0);
  parts[1].register_hook([](const Tensor&) { return Tensor::full({1}, 1.0); });
  EXPECT_THROW(ag.backward(parts[0]), AutogradError) << "something in place of nothing";
}

// The state of the caller, with the grad mode of the task, wherever nodes run.
TEST_F(AutogradRules, H8_hooks_see_the_state_of_the_backward_call) {
  for (const Device device : {Device::cpu(), Device::cuda(0)}) {
    const Tensor y = mul(ag, leaf(1.0, device), 2.0);
    std::vector<bool> seen;
    int packed = 0;
    y.register_hook([&](const Tensor&) {
      seen.insert(seen.end(), {ag.is_grad_enabled(), ag.local().autocast.cpu.is_enabled});
      const GradMode enabled(ag, true);
      mul(ag, leaf(2.0), leaf(3.0));
      return Tensor();
    });
    ag.backward(y, {.retain_graph = true});
    ag.local().autocast.cpu.is_enabled = true;
    {
      const SavedTensorHooksScope scope(ag, counting_hooks(packed));
      const GradMode no_grad(ag, false);
      ag.backward(y, {.create_graph = true});
    }
    ag.local().autocast.cpu.is_enabled = false;
    EXPECT_EQ((std::vector<bool>{false, false, true, true}), seen);
    EXPECT_EQ(2, packed);
  }
}

// The thread that waits for a nested task elsewhere may go on with the outer one.
TEST_F(AutogradRules, R3_tasks_on_several_devices_need_not_nest) {
  const auto order_with = [this](unsigned bits) {
    const CpuOps cpu;
    Autograd other(cpu);
    std::vector<std::size_t> choices;
    for (int i = 0; i < 8; ++i) choices.push_back((bits >> i) & 1U);
    Script script(choices);
    other.set_scheduling(script);
    events.clear();
    const Tensor second = mul(other, leaf(1.0, Device::cuda(0)), 2.0);
    const Tensor first = mul(other, leaf(1.0, Device::cuda(0)), 2.0);
    second.register_hook(note("outer"));
    first.register_hook([&](const Tensor&) {
      events.push_back("begin");
      const GradMode enabled(other, true);
      const Tensor nested = mul(other, leaf(1.0, Device::cuda(1)), 2.0);
      nested.register_hook(note("nested"));
      other.backward(nested);
      events.push_back("end");
      return Tensor();
    });
    other.backward(add(other, first, second));
    return events;
  };
  std::set<Events> orders;
  for (unsigned bits = 0; bits < 256; ++bits) orders.insert(order_with(bits));
  EXPECT_TRUE(orders.contains({"begin", "nested", "end", "outer"})) << "as a stack";
  EXPECT_TRUE(orders.contains({"begin", "outer", "nested", "end"}));
}

TEST_F(AutogradRules, C1_callbacks_belong_to_the_innermost_task_and_may_add_more) {
  EXPECT_THROW(ag.queue_callback([] {}), AutogradError);
  in_a_hook([&] {
    ag.queue_callback([&] {
      events.push_back("outer");
      ag.queue_callback([&] { events.push_back("added"); });
    });
    const GradMode enabled(ag, true);
    in_a_hook([&] { ag.queue_callback([&] { events.push_back("inner"); }); });
    events.push_back("hook");
  });
  EXPECT_EQ((Events{"inner", "hook", "outer", "added"}), events);
}

TEST_F(AutogradRules, F3_a_nan_fails_after_the_posthooks_and_before_delivery) {
  const Tensor x = leaf(0.0);
  const Tensor y = sqrt(ag, x);
  x.register_hook(note("leaf"));
  y.grad_fn()->register_hook([&](auto&, auto&) { return events.push_back("post"), TensorList(); });
  const Tensor loss = mul(ag, y, 0.0);
  ag.backward(loss, {.retain_graph = true});
  EXPECT_EQ((Events{"post", "leaf"}), events) << "unnoticed";
  events.clear();
  ag.set_anomaly_enabled(true);
  EXPECT_THROW(ag.backward(loss), AutogradError);
  EXPECT_EQ((Events{"post"}), events);
}

TEST_F(AutogradRules, D3_create_graph_stores_clones_and_adds_out_of_place) {
  const Tensor x = leaf(3.0);
  ag.backward(mul(ag, x, x), {.create_graph = true});
  const Tensor first = x.grad();
  EXPECT_TRUE(first.requires_grad());
  ag.backward(mul(ag, x, x), {.create_graph = true});
  EXPECT_FALSE(x.grad().is_same(first));
  EXPECT_EQ((Values{6}), first.values());
  EXPECT_EQ((Values{12}), x.grad().values());
  x.set_grad({});
  ag.backward(mul(ag, x, x));
  const Tensor plain = x.grad();
  ag.backward(mul(ag, x, x));
  EXPECT_TRUE(x.grad().is_same(plain)) << "in place (A4)";
  x.set_grad({});
}

TEST_F(AutogradRules, S1_packs_without_grad_mode_and_unpacks_after_prehooks) {
  const Tensor x = leaf(3.0);
  const auto note_mode = [&](const std::string& what) {
    events.push_back(what + (ag.is_grad_enabled() ? " grad" : ""));
  };
  Tensor y;
  {
    int outer = 0;
    const SavedTensorHooksScope below(ag, counting_hooks(outer));
    const SavedTensorHooksScope scope(ag, noting_hooks(note_mode));
    y = mul(ag, x, x);
    EXPECT_EQ(0, outer) << "the innermost pair alone";
  }
  y.register_hook(note("hook"));
  y.grad_fn()->register_prehook([&](auto&) { return events.push_back("pre"), TensorList(); });
  y.grad_fn()->register_hook([&](auto&, auto&) { return events.push_back("post"), TensorList(); });
  ag.backward(y);
  EXPECT_EQ((Events{"pack", "pack", "hook", "pre", "unpack", "unpack", "post"}), events);
}

TEST_F(AutogradRules, S2_a_saved_tensor_that_changed_is_refused_unless_hooks_packed_it) {
  const auto grad_of = [&](bool has_hooks) {
    const Tensor x = leaf(3.0);
    Tensor y = mul(ag, x, 1.0);
    Tensor z;
    int packed = 0;
    if (has_hooks) {
      const SavedTensorHooksScope scope(ag, counting_hooks(packed));
      z = mul(ag, y, y);
    } else {
      z = mul(ag, y, y);
    }
    mul_in_place(ag, y, 2.0);
    ag.backward(z);
    return x.grad().values();
  };
  EXPECT_THROW(grad_of(false), AutogradError);
  EXPECT_EQ((Values{12}), grad_of(true));
}

TEST_F(AutogradRules, S3_a_leaf_from_hooks_leads_to_the_same_sink) {
  const Tensor x = leaf(3.0);
  int packed = 0;
  Tensor y;
  {
    const SavedTensorHooksScope scope(ag, counting_hooks(packed));
    y = mul(ag, x, x);
  }
  EXPECT_EQ(2, packed);
  ag.backward(ag.grad({y}, {x}, {.create_graph = true})[0]);
  EXPECT_EQ((Values{2}), x.grad().values());
}

}  // namespace
}  // namespace zeroproof
