#include "props/reference/world.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <typeinfo>

namespace zeroproof::reference {
namespace {

constexpr std::int64_t kLeafElementsMax = 1'000'000'000;  // docs/spec/zero/stage3.md 3.7

std::string last_part(const std::string& name) {
  return name.substr(name.rfind('.') + 1);
}

bool is_named_below(const std::string& name, const std::string& module) {
  return module.empty() || name.starts_with(module + ".");
}

class Builder {
 public:
  Builder(World& world, nn::Module& module, const WorldOptions& options)
      : world_(world), options_(options), named_(module.named_modules()) {
    for (const nn::NamedParameter& one : module.named_parameters()) tensors_.push_back(one);
  }

  void build() {
    add_parameters();
    for (const nn::NamedModule& one : named_) add_module(one);
    for (std::size_t i = 0; i < named_.size(); ++i)
      if (is_leaf(i) && !world_.modules[i].is_below_leaf) make_leaf(i);
    if (world_.config.stage == 3 && !options_.skips_frames) mark_persistent();
  }

 private:
  std::size_t id_of(const Tensor& tensor) const {
    const auto is_it = [&](const nn::NamedParameter& one) { return one.tensor.is_same(tensor); };
    return static_cast<std::size_t>(std::ranges::find_if(tensors_, is_it) - tensors_.begin());
  }

  void add_parameters() {
    for (const nn::NamedParameter& one : tensors_) {
      const std::int32_t group = group_of(one.tensor);
      world_.parameters.push_back({.name = options_.prefix + one.name,
                                   .elements = one.tensor.numel(),
                                   .requires_grad = one.tensor.requires_grad(),
                                   .is_trained = group >= 0,
                                   .group = group,
                                   .wire = world_.config.communication_dtype(),
                                   .gathers_as = world_.config.model_dtype()});
    }
    if (world_.config.torch_autocast.enabled) set_autocast_dtypes();
  }

  std::int32_t group_of(const Tensor& tensor) const {
    if (!tensor.requires_grad()) return -1;
    if (options_.groups.empty()) return 0;
    for (std::size_t group = 0; group < options_.groups.size(); ++group)
      for (const Tensor& listed : options_.groups[group])
        if (listed.is_same(tensor)) return static_cast<std::int32_t>(group);
    return -1;
  }

  // docs/spec/zero/precision.md 6.1: what a module of a safe class owns travels in autocast's
  // dtype.
  void set_autocast_dtypes() {
    for (Parameter& parameter : world_.parameters) parameter.wire = world_.config.model_dtype();
    for (const nn::NamedModule& one : named_)
      if (is_safe(*one.module))
        for (const Tensor* own : one.module->own_parameters())
          world_.parameters.at(id_of(*own)).wire = world_.config.torch_autocast.dtype;
    for (Parameter& parameter : world_.parameters) parameter.gathers_as = parameter.wire;
  }

  bool is_safe(const nn::Module& module) const {
    static const std::vector<std::string> kDefault = {"Linear", "Conv1d", "Conv2d", "Conv3d"};
    const auto& given = world_.config.torch_autocast.lower_precision_safe_modules;
    const std::vector<std::string>& safe = given ? *given : kDefault;
    const std::string name = class_name(module);
    return std::ranges::any_of(safe, [&](const auto& one) { return last_part(one) == name; });
  }

  void add_module(const nn::NamedModule& one) {
    std::string name = options_.prefix + one.name;
    if (one.name.empty())
      name =
          options_.prefix.empty() ? "model" : options_.prefix.substr(0, options_.prefix.size() - 1);
    Module& added = world_.modules.emplace_back(Module{.name = std::move(name)});
    for (const Tensor* own : one.module->own_parameters()) add_once(added, id_of(*own));
  }

  static void add_once(Module& module, std::size_t id) {
    if (std::ranges::find(module.parameters, id) == module.parameters.end())
      module.parameters.push_back(id);
  }

  bool is_leaf(std::size_t index) const {
    const LeafModuleConfig& leaf = world_.config.leaf_module;
    const nn::NamedModule& one = named_[index];
    const std::string name = index == 0 ? "model" : one.name;
    const std::string own_class = class_name(*one.module);
    const auto is_class = [&](const auto& it) { return last_part(it) == own_class; };
    const auto is_suffix = [&](const auto& it) { return name.ends_with(it); };
    return std::ranges::any_of(leaf.classes, is_class) ||
           std::ranges::find(leaf.names, name) != leaf.names.end() ||
           std::ranges::any_of(leaf.name_suffixes, is_suffix) ||
           std::ranges::find(options_.leaves, one.name) != options_.leaves.end() ||
           is_fine_grained(index);
  }

  // A module of few elements for each module below it; containers stay as they are.
  bool is_fine_grained(std::size_t index) const {
    const std::int64_t threshold = world_.config.stage3_module_granularity_threshold;
    if (threshold <= 0 || index == 0 || class_name(*named_[index].module) == "Sequential")
      return false;
    const auto modules = std::ssize(named_[index].module->named_modules());
    std::int64_t elements = 0;
    for (const std::size_t id : ids_below(index)) elements += world_.parameters[id].elements;
    return modules > 1 && elements <= kLeafElementsMax && elements / modules <= threshold;
  }

  std::set<std::size_t> ids_below(std::size_t index) const {
    std::set<std::size_t> ids;
    for (const nn::NamedParameter& one : named_[index].module->named_parameters())
      ids.insert(id_of(one.tensor));
    return ids;
  }

  void make_leaf(std::size_t index) {
    Module& leaf = world_.modules[index];
    leaf.is_leaf = true;
    leaf.parameters.clear();
    for (const nn::NamedParameter& one : named_[index].module->named_parameters())
      add_once(leaf, id_of(one.tensor));
    for (std::size_t i = 0; i < named_.size(); ++i)
      if (i != index && is_named_below(named_[i].name, named_[index].name))
        world_.modules[i].is_below_leaf = true;
    for (const std::size_t id : leaf.parameters) world_.parameters[id].is_of_leaf = true;
  }

  void mark_persistent() {
    std::int64_t total = 0;
    for (Parameter& parameter : world_.parameters) {
      const std::int64_t more = parameter.elements;
      if (more > world_.config.stage3_param_persistence_threshold) continue;
      if (more + total > world_.config.stage3_model_persistence_threshold) continue;
      total += more;
      parameter.is_persistent = true;
    }
  }

  World& world_;
  const WorldOptions& options_;
  std::vector<nn::NamedModule> named_;
  std::vector<nn::NamedParameter> tensors_;
};

}  // namespace

std::string class_name(const nn::Module& module) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(typeid(module).name(), nullptr, nullptr, &status), std::free);
  const std::string name = status == 0 ? demangled.get() : typeid(module).name();
  return name.substr(name.rfind(':') + 1);
}

std::int64_t World::trained_elements() const {
  std::int64_t sum = 0;
  for (const Parameter& parameter : parameters)
    if (parameter.is_trained) sum += parameter.elements;
  return sum;
}

std::int64_t World::elements() const {
  std::int64_t sum = 0;
  for (const Parameter& parameter : parameters) sum += parameter.elements;
  return sum;
}

int World::groups() const {
  std::int32_t most = -1;
  for (const Parameter& parameter : parameters) most = std::max(most, parameter.group);
  return most + 1;
}

World world_of(const ZeroConfig& config, nn::Module& module, const WorldOptions& options) {
  World world{.config = config,
              .ranks = options.ranks,
              .sequence_ranks = options.sequence_ranks,
              .tensor_ranks = options.tensor_ranks,
              .prefix = options.prefix,
              .skips_frames = options.skips_frames,
              .other_groups = options.other_groups,
              .unseen = options.unseen};
  Builder(world, module, options).build();
  return world;
}

}  // namespace zeroproof::reference
