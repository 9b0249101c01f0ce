#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "props/reference/world.h"

namespace zeroproof::reference {

// Which modules are under way, and so which parameters are in use: docs/spec/zero/stage3.md 3.2 to
// 3.4, 3.8 and 3.12. Events name modules and not their calls: where two calls of one module may
// overlap in a backward, it is not known which of them has ended.
class Uses {
 public:
  using Ids = std::vector<std::size_t>;
  struct Backward {
    std::size_t module;
    std::set<std::size_t> recomputed = {};  // frozen parameters that recomputes have left to it
  };

  explicit Uses(const World& world) : world_(world) {}

  // Its own parameters, then those of others that it uses.
  Ids parameters(std::size_t module) const;
  void add_external(std::size_t module, std::size_t parameter);

  void begin_forward(std::size_t module) { forwards_.push_back(module); }
  void end_forward(std::size_t module);
  std::size_t depth() const { return forwards_.size(); }
  void shrink_to(std::size_t depth);
  std::size_t innermost() const { return forwards_.back(); }

  void begin_backward(std::size_t module);
  // None: no such backward is under way.
  std::optional<Backward> end_backward(std::size_t module);
  // The newest backward uses it as well (3.12).
  void lend(std::size_t parameter);
  Ids backwards() const;  // modules
  // All of them. In the middle of a task those modules may end once more.
  void end_backwards(bool is_in_task);
  void end_task() { unsure_.clear(); }
  void clear();

  bool is_used(std::size_t parameter) const;
  bool is_used_by_forward(std::size_t parameter) const;
  // Whether what is under way for it is not known.
  bool is_unsure(std::size_t parameter) const;
  bool is_unsure_module(std::size_t module) const { return unsure_.contains(module); }
  bool has_unsure() const { return !unsure_.empty(); }

 private:
  bool has(std::size_t module, std::size_t parameter) const;

  const World& world_;
  std::map<std::size_t, Ids> external_;  // by module
  std::vector<std::size_t> forwards_;
  std::vector<Backward> backwards_;
  std::set<std::size_t> unsure_;  // modules
};

}  // namespace zeroproof::reference
