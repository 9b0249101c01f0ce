#include "engine/zero/stage3/zero3_module.h"

#include <algorithm>

namespace zeroproof {
namespace {

void add_once(ParameterList& list, PartitionedParameter* parameter) {
  if (parameter && !contains(list, parameter)) list.push_back(parameter);
}

}  // namespace

ParameterList Zero3Module::parameters() const {
  ParameterList all = own;
  all.insert(all.end(), external.begin(), external.end());
  return all;
}

Zero3Modules::Zero3Modules(nn::Module& module, ParameterGatherer& gatherer, const Events& events)
    : events_(events), gatherer_(gatherer) {
  for (const nn::NamedModule& named : module.named_modules()) {
    Zero3Module& added = modules_.emplace_back();
    added.id = static_cast<std::int32_t>(modules_.size()) - 1;
    added.module = named.module;
    added.is_root = added.id == 0;
    for (const Tensor* own : named.module->own_parameters())
      add_once(added.own, gatherer.find(*own));
    names_.push_back(named.name);
  }
  set_prefix({});
}

void Zero3Modules::set_prefix(const std::string& prefix) {
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    Zero3Module& module = modules_[i];
    if (module.is_root) {
      module.name = prefix.empty() ? "model" : prefix;
    } else {
      module.name = prefix.empty() ? names_[i] : prefix + "." + names_[i];
    }
    module.name_id = events_.name(module.name);
  }
}

Zero3Module* Zero3Modules::find(const nn::Module& module) {
  const auto is_it = [&](const Zero3Module& known) { return known.module == &module; };
  const auto at = std::ranges::find_if(modules_, is_it);
  return at == modules_.end() ? nullptr : &*at;
}

void Zero3Modules::set_leaf(Zero3Module& leaf) {
  leaf.is_leaf = true;
  for (const nn::NamedModule& below : leaf.module->named_modules()) {
    Zero3Module* known = find(*below.module);
    if (known && known != &leaf) known->is_below_leaf = true;
  }
  leaf.own = parameters_below(leaf);
  for (PartitionedParameter* parameter : leaf.own) parameter->set_of_leaf_module(true);
}

ParameterList Zero3Modules::parameters_below(const Zero3Module& module) const {
  ParameterList parameters;
  for (const nn::NamedParameter& named : module.module->named_parameters())
    add_once(parameters, gatherer_.find(named.tensor));
  return parameters;
}

std::int64_t Zero3Modules::elements_below(const Zero3Module& module) const {
  std::int64_t elements = 0;
  for (const PartitionedParameter* parameter : parameters_below(module))
    elements += parameter->elements();
  return elements;
}

bool Zero3Modules::add_external(Zero3Module& module, PartitionedParameter& parameter) {
  if (contains(module.own, &parameter) || contains(module.external, &parameter)) return false;
  module.external.push_back(&parameter);
  return true;
}

}  // namespace zeroproof
