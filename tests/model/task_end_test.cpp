// Listeners to graph tasks, one of which throws.
#include <gtest/gtest.h>

#include <stdexcept>

#include "model/cpu_ops.h"
#include "zeroproof/internal/model/autograd_observer.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

class EndCount final : public GraphTaskListener {
 public:
  explicit EndCount(bool throws) : throws_(throws) {}
  void on_graph_task_begin(GraphTaskId, bool) override {}
  void on_graph_task_end(GraphTaskId, bool raised) override {
    ++ends;
    failures += raised ? 1 : 0;
    if (throws_) throw std::runtime_error("a listener");
  }

  int ends = 0;
  int failures = 0;

 private:
  bool throws_;
};

TEST(TaskEnd, Is_heard_by_all_listeners_though_one_throws) {
  const CpuOps ops;
  Autograd ag(ops);
  EndCount first(false);
  EndCount thrower(true);
  EndCount last(false);
  for (EndCount* listener : {&first, &thrower, &last}) ag.add_listener(*listener);
  Tensor x = Tensor::of({1.0, 2.0}, {2}, DType::float32);
  x.set_requires_grad(true);
  try {
    ag.backward(mean(ag, mul(ag, x, x)));
    FAIL() << "the listener's exception is lost";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ("a listener", error.what());
  }
  for (const EndCount* listener : {&first, &thrower, &last}) EXPECT_EQ(1, listener->ends);
  for (EndCount* listener : {&first, &thrower, &last}) ag.remove_listener(*listener);
  ag.backward(mean(ag, mul(ag, x, x)));
}

}  // namespace
}  // namespace zeroproof
