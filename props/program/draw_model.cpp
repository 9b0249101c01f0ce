// Trees of modules.
#include <array>
#include <utility>

#include "props/program/draw.h"
#include "props/program/forward_flow.h"
#include "props/program/rules.h"

namespace zeroproof::program {
namespace {

// Modules of one model, each of which makes sense where it is added.
class ModelDraw {
 public:
  ModelDraw(Source& source, const Policy& policy, const Program& program, std::string name)
      : source_(source), policy_(policy), program_(program) {
    model_.name = std::move(name);
    model_.body.push_back({.name = new_name(), .kind = Linear{.input_needs_grad = is_leaf()}});
  }

  Model run() {
    replace_first();
    const int more = source_.between(0, 3);
    for (int i = 0; i < more; ++i) add_node();
    if (policy_.has(Tag::experts)) add_experts();
    if (policy_.has(Tag::retained) || policy_.has(Tag::sharing)) add_heads();
    if (policy_.has(Tag::tiles)) add_tiles();
    draw_outputs();
    return std::move(model_);
  }

 private:
  bool is_leaf() const { return program_.config.stage3_module_granularity_threshold > 0; }
  std::string new_name() { return "l" + std::to_string(modules_++); }
  bool makes_sense(const Model& model) const {
    return policy_.can_do(model) && model_problem(program_, model).empty();
  }

  bool keep(Model changed) {
    if (!makes_sense(changed)) return false;
    model_ = std::move(changed);
    return true;
  }

  bool append(Module module) {
    Model changed = model_;
    changed.body.push_back(std::move(module));
    return keep(std::move(changed));
  }

  void replace_first() {
    const Source::Scope scope(source_, "module");
    Model changed = model_;
    changed.body.front().kind = draw_owner();
    keep(std::move(changed));
  }

  // --- the kinds
  // ----------------------------------------------------------------------------------

  ModuleKind draw_owner() {
    if (source_.one_in(4)) return draw_custom();
    return draw_linear();
  }

  Trained draw_trained(bool has_bias) {
    const bool is_often = policy_.has(Tag::parameters) || policy_.has(Tag::recompute);
    const std::uint32_t seldom = is_often ? 2 : 1;
    const std::array<std::uint32_t, 4> weights = {9, seldom, seldom, seldom};
    const auto trained = static_cast<Trained>(source_.weighted(weights));
    return trained == Trained::bias_only && !has_bias ? Trained::all : trained;
  }

  Linear draw_linear() {
    constexpr std::array<int, 6> kInputs = {1, 2, 3, 4, 5, 7};
    constexpr std::array<int, 6> kOutputs = {2, 1, 3, 4, 6, 0};
    constexpr std::array<std::uint32_t, 6> kWeights = {4, 4, 3, 2, 1, 1};
    Linear linear;
    linear.inputs = kInputs.at(source_.weighted(kWeights));
    constexpr std::array<std::uint32_t, 6> kManyEmpty = {4, 4, 3, 2, 1, 4};
    linear.outputs =
        kOutputs.at(source_.weighted(policy_.has(Tag::parameters) ? kManyEmpty : kWeights));
    linear.has_bias = source_.one_in(3);
    linear.trained = draw_trained(linear.has_bias && linear.outputs > 0);
    linear.input_needs_grad = is_leaf() || source_.one_in(2);
    linear.watches_input = linear.input_needs_grad && linear.outputs > 0 && source_.one_in(8);
    if (linear.outputs > 0 && source_.one_in(5)) linear.dimensions = source_.one_in(2) ? 3 : 1;
    if (source_.one_in(6)) linear.activations = source_.between(2, 3);
    linear.closes_over_factor = source_.one_in(8);
    return linear;
  }

  Custom draw_custom() {
    static const std::array<std::vector<std::int64_t>, 8> kShapes = {
        {{2}, {3}, {1}, {2, 2}, {1, 3}, {2, 1, 2}, {}, {5}}};
    Custom custom;
    custom.shape = kShapes.at(source_.below(8));
    custom.weights = source_.one_in(4) ? 2 : 1;
    const Trained trained = draw_trained(false);
    custom.trained = trained == Trained::bias_only ? Trained::all : trained;
    custom.returns_weight = policy_.has(Tag::external) && source_.one_in(3);
    custom.watches_input = custom.shape.size() == 2 && source_.one_in(4);
    if (source_.one_in(6)) custom.activations = source_.between(2, 3);
    custom.closes_over_factor = source_.one_in(8);
    return custom;
  }

  std::string some_owner() {
    const auto owners = weight_owners(model_);
    return owners[source_.below(static_cast<std::uint32_t>(owners.size()))]->name;
  }

  ExternalUse draw_use() {
    ExternalUse use{.module = some_owner()};
    use.when = static_cast<ReadWhen>(source_.below(3));
    use.is_registered = source_.one_in(2);
    use.watches_use = source_.one_in(5);
    return use;
  }

  ModuleList some_modules(int most) {
    ModuleList modules;
    const int count = source_.between(1, most);
    for (int i = 0; i < count; ++i) modules.push_back({.name = new_name(), .kind = draw_owner()});
    if (policy_.has(Tag::sharing) && source_.one_in(2))
      modules.push_back({.name = new_name(), .kind = Shared{.module = some_owner()}});
    return modules;
  }

  ModuleKind draw_checkpoint() {
    Checkpoint checkpoint;
    checkpoint.is_reentrant = !source_.one_in(2);
    checkpoint.body = some_modules(2);
    return checkpoint;
  }

  ModuleKind draw_unused() {
    Unused unused;
    if (source_.one_in(2))
      unused.body = some_modules(1);
    else if (source_.one_in(2))
      unused.body.push_back({.name = new_name(), .kind = Tied{.module = some_owner()}});
    else
      for (const Module* const owner : weight_owners(model_))
        unused.body.push_back({.name = new_name(), .kind = Shared{.module = owner->name}});
    return unused;
  }

  ModuleKind draw_kind() {
    const auto weight = [&](Tag tag, std::uint32_t with, std::uint32_t without) {
      return policy_.has(tag) ? with : without;
    };
    const std::array<std::uint32_t, 9> weights = {12,
                                                  weight(Tag::recompute, 10, 1),
                                                  weight(Tag::sharing, 8, 1),
                                                  weight(Tag::sharing, 4, 0),
                                                  weight(Tag::external, 8, 0),
                                                  2,
                                                  weight(Tag::parameters, 3, 1),
                                                  weight(Tag::parameters, 3, 1),
                                                  weight(Tag::worlds, 1, 0)};
    switch (source_.weighted(weights)) {
      case 1:
        return draw_checkpoint();
      case 2:
        return Shared{.module = some_owner()};
      case 3:
        return Tied{.module = some_owner()};
      case 4:
        return draw_use();
      case 5:
        return Sequential{.body = some_modules(2)};
      case 6:
        return OwnWeight{.elements = source_.between(1, 4)};
      case 7:
        return draw_unused();
      case 8:
        return Sequential{};  // calls no module, and has no parameters
      default:
        return draw_owner();
    }
  }

  void add_node() {
    const Source::Scope scope(source_, "module");
    Module module{.name = new_name(), .kind = draw_kind()};
    if (std::holds_alternative<OwnWeight>(module.kind) && source_.one_in(2)) {
      Model changed = model_;
      changed.body.insert(changed.body.begin(), std::move(module));
      keep(std::move(changed));
    } else {
      append(std::move(module));
    }
  }

  // --- what a model has once --------------------------------------------------------------------

  // The first, or after the other modules.
  void add_experts() {
    const Source::Scope scope(source_, "module");
    Model changed = model_;
    const Experts experts{.leaf_by = static_cast<LeafBy>(source_.below(4))};
    const Module module{.name = "experts", .kind = experts};
    const bool is_last = source_.one_in(3);
    changed.body.insert(is_last ? changed.body.end() : changed.body.begin(), module);
    keep(std::move(changed));
  }

  void add_heads() {
    if (!source_.one_in(2)) return;
    const Source::Scope scope(source_, "heads");
    Model changed = model_;
    for (int head = 0; head < 2; ++head)
      changed.heads.push_back({{.name = new_name(), .kind = draw_owner()}});
    keep(std::move(changed));
  }

  void add_tiles() {
    const Source::Scope scope(source_, "tiles");
    const Module inner{.name = new_name(), .kind = draw_owner()};
    Tiled tiled;
    if (source_.one_in(3)) {
      Checkpoint checkpoint;
      checkpoint.is_reentrant = !source_.one_in(2);
      checkpoint.body.push_back(inner);
      tiled.body.push_back({.name = new_name(), .kind = checkpoint});
    } else {
      tiled.body.push_back(inner);
    }
    append({.name = "tiles", .kind = tiled});
  }

  void draw_outputs() {
    Model changed = model_;
    if (source_.one_in(6))
      changed.container = source_.one_in(2) ? Container::dataclass : Container::dict;
    changed.has_constant_output = source_.one_in(10);
    changed.returns_activations = source_.one_in(policy_.has(Tag::misuse) ? 2 : 10);
    constexpr double kLift = 16384.0;
    if (program_.config.fp16.enabled && source_.one_in(8)) changed.added_to_loss = kLift;
    keep(std::move(changed));
  }

  Source& source_;
  const Policy& policy_;
  const Program& program_;
  Model model_;
  int modules_ = 0;
};

}  // namespace

Model draw_model(Source& source, const Policy& policy, const Program& program, std::string name) {
  const Source::Scope scope(source, "model");
  return ModelDraw(source, policy, program, std::move(name)).run();
}

}  // namespace zeroproof::program
