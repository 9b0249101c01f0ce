#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace zeroproof {

// Takes one registered hook away again. Harmless when the hook or its list is gone.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}
  void remove() {
    if (remove_) std::exchange(remove_, nullptr)();
  }

 private:
  std::function<void()> remove_;
};

// Hooks of one kind at one place, in the order of registration. What is added or removed while
// they run counts from the next evaluation on (rule H1). An empty list owns no memory.
template <class Hook>
class HookList {
 public:
  using Snapshot = std::vector<std::shared_ptr<Hook>>;

  HookHandle add(Hook hook) {
    if (!state_) state_ = std::make_shared<State>();
    const std::uint64_t id = state_->next_id++;
    state_->hooks[id] = std::make_shared<Hook>(std::move(hook));
    return HookHandle([weak = std::weak_ptr<State>(state_), id] {
      if (const auto state = weak.lock()) state->hooks.erase(id);
    });
  }

  bool is_empty() const { return !state_ || state_->hooks.empty(); }

  Snapshot snapshot() const {
    Snapshot hooks;
    if (!state_) return hooks;
    for (const auto& [id, hook] : state_->hooks) hooks.push_back(hook);
    return hooks;
  }

 private:
  struct State {
    std::map<std::uint64_t, std::shared_ptr<Hook>> hooks;
    std::uint64_t next_id = 0;
  };
  std::shared_ptr<State> state_;
};

}  // namespace zeroproof
