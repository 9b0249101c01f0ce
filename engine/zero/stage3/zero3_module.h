#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "engine/zero/stage3/parameter_gatherer.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof {

// What stage 3 knows of one module of the engine.
struct Zero3Module {
  std::int32_t id = -1;
  std::string name;
  NameId name_id;
  nn::Module* module = nullptr;
  ParameterList own;            // of a leaf module: those of all below it, too
  ParameterList external = {};  // used here, owned elsewhere (docs/spec/zero.md 3.8)
  bool is_root = false;
  bool is_leaf = false;        // one fetch for everything below (docs/spec/zero.md 3.7)
  bool is_below_leaf = false;  // no hooks of its own

  ParameterList parameters() const;  // own ones first
};

// All modules of an engine, in the order of named_modules(). Addresses stay.
class Zero3Modules {
 public:
  // All must outlive it.
  Zero3Modules(nn::Module& module, ParameterGatherer& gatherer, const Events& events);

  std::deque<Zero3Module>& all() { return modules_; }
  Zero3Module& root() { return modules_.front(); }
  Zero3Module* find(const nn::Module& module);
  // It names the root and goes before the others' names with a dot; empty: the root is "model".
  void set_prefix(const std::string& prefix);

  void set_leaf(Zero3Module& leaf);
  // Of its parameters and of those below it.
  std::int64_t elements_below(const Zero3Module& module) const;
  // Adds it unless the module has it, its own or not; whether it did.
  static bool add_external(Zero3Module& module, PartitionedParameter& parameter);

 private:
  ParameterList parameters_below(const Zero3Module& module) const;

  const Events& events_;
  ParameterGatherer& gatherer_;
  std::deque<Zero3Module> modules_;
  std::vector<std::string> names_;  // below the root
};

}  // namespace zeroproof
