#include "engine/zero/stage3/leaf_modules.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <typeinfo>

#include "model/nn/sequential.h"

namespace zeroproof {
namespace {

constexpr std::int64_t kGranularElementsMax = 1'000'000'000;

// "Linear" for zeroproof::nn::Linear.
std::string class_name(const nn::Module& module) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(typeid(module).name(), nullptr, nullptr, &status), std::free);
  const std::string name = status == 0 ? demangled.get() : typeid(module).name();
  return name.substr(name.rfind(':') + 1);
}

// What Python calls "torch.nn.Linear" is "Linear" here.
std::string last_part(const std::string& name) {
  return name.substr(name.rfind('.') + 1);
}

bool is_below_any(const Zero3Module& module, const std::vector<Zero3Module*>& leaves) {
  const auto is_above = [&](const Zero3Module* leaf) {
    for (const nn::NamedModule& below : leaf->module->named_modules())
      if (below.module == module.module) return true;
    return false;
  };
  return std::any_of(leaves.begin(), leaves.end(), is_above);
}

bool is_named(const LeafModuleConfig& leaf, const std::string& name) {
  const auto is_suffix = [&](const std::string& suffix) { return name.ends_with(suffix); };
  return std::ranges::find(leaf.names, name) != leaf.names.end() ||
         std::any_of(leaf.name_suffixes.begin(), leaf.name_suffixes.end(), is_suffix);
}

// Few elements a module below: one fetch for all is cheaper.
bool is_fine_grained(const ZeroConfig& config, Zero3Modules& modules, const Zero3Module& module) {
  const std::int64_t threshold = config.stage3_module_granularity_threshold;
  const bool is_container = dynamic_cast<const nn::Sequential*>(module.module) != nullptr;
  if (threshold <= 0 || is_container || module.is_root) return false;
  const auto count = std::ssize(module.module->named_modules());
  const std::int64_t elements = modules.elements_below(module);
  return count > 1 && elements <= kGranularElementsMax && elements / count <= threshold;
}

}  // namespace

Result<void> check_leaf_classes(const LeafModuleConfig& leaf, nn::Module& root) {
  const auto modules = root.named_modules();
  const auto is_known = [&](const std::string& name) {
    return std::ranges::any_of(modules, [&](const nn::NamedModule& named) {
      return class_name(*named.module) == last_part(name);
    });
  };
  for (const std::string& name : leaf.classes) {
    if (!is_known(name))
      return fail(ErrorCode::usage, "/zero_optimization/leaf_module/classes: no module of class " +
                                        name +
                                        " is in the model; name one that is, or leave it out");
  }
  return {};
}

std::vector<Zero3Module*> configured_leaf_modules(const ZeroConfig& config, Zero3Modules& modules) {
  const LeafModuleConfig& leaf = config.leaf_module;
  std::vector<Zero3Module*> leaves;
  for (Zero3Module& module : modules.all()) {
    const auto is_class = [&](const std::string& name) {
      return class_name(*module.module) == last_part(name);
    };
    const bool is_leaf = std::any_of(leaf.classes.begin(), leaf.classes.end(), is_class) ||
                         is_named(leaf, module.name) || is_fine_grained(config, modules, module);
    if (is_leaf && !is_below_any(module, leaves)) leaves.push_back(&module);
  }
  return leaves;
}

}  // namespace zeroproof
