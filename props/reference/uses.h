#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "props/reference/world.h"

namespace zeroproof::reference {

// One call of a module. A recording need not say which: then its number is -1.
struct ModuleCall {
  std::size_t module = 0;
  std::int64_t number = -1;

  bool is_known() const { return number >= 0; }
  friend auto operator<=>(const ModuleCall&, const ModuleCall&) = default;
};

// Which modules are under way, and so which parameters are in use: docs/spec/zero/stage3.md 3.2 to
// 3.4, 3.8 and 3.12. Where calls have no numbers and two of one module may overlap in a backward,
// it is not known which of them has ended.
class Uses {
 public:
  using Ids = std::vector<std::size_t>;
  struct Backward {
    ModuleCall call;
    std::set<std::size_t> recomputed = {};  // frozen parameters that recomputes have left to it
  };

  explicit Uses(const World& world) : world_(world) {}

  // Its own parameters, then those of others that it uses.
  Ids parameters(std::size_t module) const;
  void add_external(std::size_t module, std::size_t parameter);

  void begin_forward(ModuleCall call) { forwards_.push_back(call); }
  void end_forward(ModuleCall call);
  std::size_t depth() const { return forwards_.size(); }
  void shrink_to(std::size_t depth);
  std::size_t innermost() const { return forwards_.back().module; }

  void begin_backward(ModuleCall call);
  // None: no such backward is under way.
  std::optional<Backward> end_backward(ModuleCall call);
  // The newest backward uses it as well (3.12).
  void lend(std::size_t parameter);
  std::vector<ModuleCall> backwards() const;
  // All of them. In the middle of a task, calls without numbers may end once more.
  void end_backwards(bool is_in_task);
  void end_task() { unsure_.clear(); }
  void clear();

  bool is_used(std::size_t parameter) const;
  bool is_used_by_forward(std::size_t parameter) const;
  // Whether what is under way for it is not known.
  bool is_unsure(std::size_t parameter) const;
  bool is_unsure_module(std::size_t module) const { return unsure_.contains(module); }

 private:
  bool has(std::size_t module, std::size_t parameter) const;

  const World& world_;
  std::map<std::size_t, Ids> external_;  // by module
  std::vector<ModuleCall> forwards_;
  std::vector<Backward> backwards_;
  std::set<std::size_t> unsure_;  // modules
};

}  // namespace zeroproof::reference
