#include "sim/world/fiber.h"

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <utility>
#include <vector>

#include "model/check.h"
#include "sim/world/exception_state.h"
#include "sim/world/stack_switch.h"

namespace zeroproof::sim {
namespace {

constexpr std::size_t kStackBytes = std::size_t{1} << 20;  // reserved; pages come as they are used

// A stack, and what its sanitizer knows of it.
struct Stack {
  boost::context::stack_context context;
  StackPlace place;
};

// The stacks of fibers that have ended, for the next ones: mapping one costs more than a short run.
class StackPool {
 public:
  ~StackPool() {
    for (Stack& stack : free_) drop(stack);
  }
  Stack take() {
    if (free_.empty()) return make();
    const Stack stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void give_back(Stack stack) {
    if (free_.size() < kStacksMax) return free_.push_back(stack);
    drop(stack);
  }

 private:
  Stack make() {
    Stack stack{fresh_.allocate(), {}};
    stack.place.bottom = static_cast<const char*>(stack.context.sp) - stack.context.size;
    stack.place.bytes = stack.context.size;
    announce_stack(stack.place);
    return stack;
  }
  void drop(Stack& stack) {
    withdraw_stack(stack.place);
    fresh_.deallocate(stack.context);
  }

  static constexpr std::size_t kStacksMax = 64;
  boost::context::protected_fixedsize_stack fresh_{kStackBytes};
  std::vector<Stack> free_;
};

StackPool& pool() {
  thread_local StackPool of_thread;
  return of_thread;
}

// What Boost asks for stacks; `place` is where the fiber's lies. A fiber starts and ends on one
// thread.
struct PooledStacks {
  StackPlace* place;

  boost::context::stack_context allocate() {
    const Stack stack = pool().take();
    *place = stack.place;
    return stack.context;
  }
  void deallocate(boost::context::stack_context& context) { pool().give_back({context, *place}); }
};

}  // namespace

struct Fiber::State {
  StackPlace inside_stack;
  StackPlace outside_stack;
  boost::context::fiber inside;   // where the body goes on; empty while it runs
  boost::context::fiber outside;  // who resumed it
  ExceptionState exceptions;
  bool has_started = false;
  bool is_done = false;
};

Fiber::Fiber(std::function<void()> body) : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.inside =
      boost::context::fiber(std::allocator_arg, PooledStacks{&state.inside_stack},
                            [&state, body = std::move(body)](boost::context::fiber&& caller) {
                              state.outside_stack = after_switch(nullptr);
                              state.outside = std::move(caller);
                              body();
                              state.is_done = true;
                              before_switch(state.outside_stack, true);
                              return std::move(state.outside);
                            });
}

Fiber::~Fiber() {
  ZP_CHECK(!state_->has_started || state_->is_done, "a fiber destroyed before its body ended");
}

void Fiber::resume() {
  State& state = *state_;
  ZP_CHECK(!state.is_done, "a fiber resumed after its end");
  state.has_started = true;
  state.exceptions.swap();
  void* const own = before_switch(state.inside_stack, false);
  state.inside = std::move(state.inside).resume();
  after_switch(own);
  state.exceptions.swap();
}

void Fiber::suspend() {
  State& state = *state_;
  void* const own = before_switch(state.outside_stack, false);
  state.outside = std::move(state.outside).resume();
  state.outside_stack = after_switch(own);
}

bool Fiber::is_done() const {
  return state_->is_done;
}

}  // namespace zeroproof::sim
