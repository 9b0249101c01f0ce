#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof::reference {

// What is under way in one engine: its open calls and the open graph tasks of the rank. A call is
// open from its engine.call up to and including its engine.return.
class Scene {
 public:
  explicit Scene(const NameTable& names) : names_(names) {}

  void before(const HookEvent& event);  // opens
  void after(const HookEvent& event);   // closes

  bool is_in(std::string_view method) const;
  // The parameter of the innermost call of `method`; none outside any.
  NameId param_of(std::string_view method) const;
  // The innermost call's method; empty outside any.
  std::string_view innermost() const {
    return calls_.empty() ? std::string_view() : std::string_view(calls_.back().method);
  }
  // Whether a call whose method begins so is open, other than contexts of the user.
  bool is_in_any(std::string_view prefix) const;
  // The number of the outermost open graph task's call; -1 outside any.
  std::int64_t outermost_task() const { return tasks_.empty() ? -1 : tasks_.front(); }
  int graph_tasks() const { return static_cast<int>(tasks_.size()); }

 private:
  struct Call {
    std::string method;
    NameId param;
  };

  const NameTable& names_;
  std::vector<Call> calls_;
  std::vector<std::int64_t> tasks_;  // numbers of their calls
};

}  // namespace zeroproof::reference
