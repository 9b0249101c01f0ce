// Which trees of modules make sense, under which configuration.
#include <algorithm>
#include <set>

#include "props/program/model_traits.h"
#include "props/program/rules.h"

namespace zeroproof::program {
namespace {

constexpr int kSizeMost = 8;

bool is_between(std::int64_t value, std::int64_t least, std::int64_t most) {
  return value >= least && value <= most;
}

std::string problem_of(const Linear& linear) {
  return first_broken(
      {{!is_between(linear.inputs, 1, kSizeMost) || !is_between(linear.outputs, 0, kSizeMost),
        "a Linear out of range"},
       {!is_between(linear.dimensions, 1, 3) || !is_between(linear.activations, 1, 3),
        "an input out of range"},
       {linear.dimensions != 2 && linear.outputs == 0, "a shape of outputs that are not there"},
       {linear.trained == Trained::bias_only && (!linear.has_bias || linear.outputs == 0),
        "a bias alone that is not there"},
       {linear.watches_input && (linear.outputs == 0 || !linear.input_needs_grad),
        "no gradient to watch"}});
}

std::string problem_of(const Custom& custom) {
  const bool has_sizes = std::ranges::all_of(
      custom.shape, [](std::int64_t size) { return is_between(size, 0, kSizeMost); });
  const bool is_empty = std::ranges::find(custom.shape, 0) != custom.shape.end();
  return first_broken(
      {{custom.shape.size() > 3 || !has_sizes, "a weight out of range"},
       {!is_between(custom.weights, 1, 2) || !is_between(custom.activations, 1, 3),
        "a Custom module out of range"},
       {custom.trained == Trained::bias_only, "a Custom module has no bias"},
       {custom.watches_input && (custom.shape.size() != 2 || is_empty), "no gradient to watch"},
       {custom.returns_weight && (is_empty || custom.trained != Trained::all),
        "a weight that is returned and not trained"}});
}

std::string problem_of(const OwnWeight& own) {
  return is_between(own.elements, 1, kSizeMost) ? "" : "an own weight out of range";
}

std::string problem_of(const Experts& experts) {
  return experts.experts == 2 ? "" : "experts are two";
}

template <class Kind>
std::string problem_of(const Kind&) {
  return {};
}

// One model, node by node, with what is around each.
class ModelCheck {
 public:
  ModelCheck(const Program& program, const Model& model)
      : program_(program), model_(model), traits_(traits_of(model)) {}

  std::string run() {
    if (std::string problem = tree_problem(); !problem.empty()) return problem;
    for (const std::string& problem :
         {output_problem(), tile_problem(), expert_problem(), use_problem(), own_problem(),
          return_problem(), leaf_problem(), frame_problem(), magnitude_problem(program_, model_)})
      if (!problem.empty()) return problem;
    return trained_weights(model_).empty() ? "no parameter is trained" : "";
  }

 private:
  // --- the tree ---------------------------------------------------------------------------------

  std::string tree_problem() {
    if (std::string problem = list_problem(model_.body, Around::root); !problem.empty())
      return problem;
    for (const ModuleList& head : model_.heads)
      if (std::string problem = list_problem(head, Around::head); !problem.empty()) return problem;
    return {};
  }

  enum class Around { root, head, sequential, checkpoint, tiled, unused };

  std::string list_problem(const ModuleList& modules, Around around) {
    for (const Module& module : modules)
      if (std::string problem = node_problem(module, around); !problem.empty())
        return "'" + module.name + "': " + problem;
    return {};
  }

  std::string node_problem(const Module& module, Around around) {
    const bool is_new = seen_.insert(module.name).second;
    if (!is_new || module.name.empty() || module.name.find('/') != std::string::npos ||
        module.name.find('.') != std::string::npos)
      return "a module with a name of another, or none";
    const auto own = [](const auto& kind) { return problem_of(kind); };
    if (std::string problem = std::visit(own, module.kind); !problem.empty()) return problem;
    if (std::string problem = place_problem(module, around); !problem.empty()) return problem;
    if (std::string problem = reference_problem(module); !problem.empty()) return problem;
    const ModuleList* const body = body_of(module);
    if (!body) return {};
    return list_problem(*body, around_in(module, around));
  }

  static Around around_in(const Module& module, Around around) {
    if (std::holds_alternative<Checkpoint>(module.kind)) return Around::checkpoint;
    if (std::holds_alternative<Tiled>(module.kind)) return Around::tiled;
    if (std::holds_alternative<Unused>(module.kind)) return Around::unused;
    return around == Around::root ? Around::sequential : around;
  }

  static std::string place_problem(const Module& module, Around around) {
    const bool is_at_root = around == Around::root;
    const bool is_owner =
        std::holds_alternative<Linear>(module.kind) || std::holds_alternative<Custom>(module.kind);
    const bool is_reference =
        std::holds_alternative<Shared>(module.kind) || std::holds_alternative<Tied>(module.kind);
    const bool is_checkpoint = std::holds_alternative<Checkpoint>(module.kind);
    const bool is_in_body = around == Around::root || around == Around::sequential;
    if (is_owner || is_reference) return {};
    return first_broken(
        {{around == Around::unused, "a module of that kind that is never called"},
         {is_checkpoint && !is_in_body && around != Around::tiled,
          "a checkpoint in another or in a head"},
         {!is_checkpoint && !std::holds_alternative<Sequential>(module.kind) && !is_at_root,
          "a module of that kind below the root"}});
  }

  std::string reference_problem(const Module& module) const {
    const std::string* name = nullptr;
    if (const auto* const shared = std::get_if<Shared>(&module.kind)) name = &shared->module;
    if (const auto* const tied = std::get_if<Tied>(&module.kind)) name = &tied->module;
    if (const auto* const external = std::get_if<ExternalUse>(&module.kind))
      name = &external->module;
    if (!name) return {};
    const Module* const owner = find_module(model_, *name);
    const bool is_owner = owner && (std::holds_alternative<Linear>(owner->kind) ||
                                    std::holds_alternative<Custom>(owner->kind));
    const bool is_later_use = std::holds_alternative<ExternalUse>(module.kind);
    const bool is_call = std::holds_alternative<Shared>(module.kind);
    return first_broken(
        {{!is_owner, "a reference to no Linear or Custom module"},
         {!is_later_use && !seen_.contains(*name), "a reference to a later module"},
         {is_call && has_leaves() && is_nested(*name), "a call of a module below a leaf"},
         {is_owner && !is_call && elements_of(*owner) == 0,
          "a reference to a weight without elements"}});
  }

  bool has_leaves() const { return program_.config.stage3_module_granularity_threshold > 0; }

  // A leaf gathers for the modules below it, which do not gather (docs/spec/zero.md 3.7).
  bool is_nested(const std::string& module) const {
    return std::ranges::find(model_.body, module, &Module::name) == model_.body.end();
  }

  // --- the whole --------------------------------------------------------------------------------

  bool has_several_engines() const { return program_.engines.size() > 1; }
  bool is_autocast() const { return program_.config.torch_autocast.enabled; }

  std::string output_problem() const {
    return first_broken(
        {{model_.heads.size() == 1 || model_.heads.size() > 2, "heads are two"},
         {model_.losses() > 1 && has_several_engines(), "two losses beside another engine"},
         {model_.body.empty(), "a model without a body"},
         {model_.added_to_loss != 0.0 && (has_several_engines() || !program_.config.fp16.enabled),
          "a large loss that is added to another, or can be scaled"}});
  }

  std::string tile_problem() const {
    if (!traits_.has_tiles) return {};
    const Module& last = model_.body.back();
    const auto* const tiled = std::get_if<Tiled>(&last.kind);
    const auto is_tiled = [](const Module* const node) {
      return std::holds_alternative<Tiled>(node->kind);
    };
    return first_broken(
        {{!tiled || std::ranges::count_if(nodes_of(model_), is_tiled) != 1,
          "tiles that are not the end of the model"},
         {tiled && tiled->body.size() != 1, "tiles of several modules"},
         {!model_.heads.empty() || has_several_engines() || program_.world.skips_frames,
          "tiles of two losses, engines or frames"},
         {traits_.has_watches, "gradients of tiles that cannot be watched"},
         {is_autocast() && program_.config.torch_autocast.dtype == DType::float16,
          "tiles under a GradScaler"}});
  }

  std::string expert_problem() const {
    if (!traits_.has_experts) return {};
    const auto is_experts = [](const Module* const node) {
      return std::holds_alternative<Experts>(node->kind);
    };
    return first_broken(
        {{std::ranges::count_if(nodes_of(model_), is_experts) != 1, "experts twice"},
         {has_several_engines() || traits_.has_tiles || program_.world.skips_frames,
          "experts beside engines, tiles or frames"},
         {program_.config.is_offloaded() && !program_.config.ignore_unused_parameters,
          "experts where each gradient has to come"}});
  }

  std::string use_problem() const {
    if (!traits_.has_external_uses && !traits_.has_tied_weights) return {};
    const bool is_leaf = program_.config.stage3_module_granularity_threshold > 0;
    for (const Module* const node : nodes_of(model_)) {
      const auto* const use = std::get_if<ExternalUse>(&node->kind);
      if (!use) continue;
      const Module& owner = *find_module(model_, use->module);
      const bool is_late = use->when == ReadWhen::in_a_module;
      if (std::string problem = first_broken(
              {{program_.world.skips_frames &&
                    (use->when != ReadWhen::used_here || use->is_registered),
                "an external use of skipped frames that is more"},
               {is_late && (is_leaf || model_.losses() > 1), "a weight that is read late"},
               {use->watches_use && weight_dimensions(owner) != 2, "no gradient to watch"},
               {is_leaf && (trained_of(owner) != Trained::all ||
                            std::holds_alternative<Custom>(owner.kind)),
                "a weight of a leaf module is read"}});
          !problem.empty())
        return problem;
    }
    return first_broken({{has_several_engines() || traits_.has_tiles || is_autocast(),
                          "a weight is used twice with one engine, no tiles and no autocast"},
                         {traits_.has_tied_weights &&
                              (is_leaf || program_.world.skips_frames || model_.losses() > 1),
                          "a tied weight of leaf modules, frames or two losses"}});
  }

  std::string own_problem() const {
    if (!traits_.has_own_weights) return {};
    return first_broken({{traits_.has_experts || traits_.has_tiles || program_.world.skips_frames,
                          "a weight of a root that does not run"},
                         {program_.config.stage3_module_granularity_threshold > 0,
                          "a weight of a root beside leaf modules"}});
  }

  std::string return_problem() const {
    if (!traits_.returns_weights) return {};
    const ForwardFlow flow = flow_of(model_, {.inputs_need_grad = true});
    for (const Module* const node : nodes_of(model_)) {
      const auto* const custom = std::get_if<Custom>(&node->kind);
      if (!custom || !custom->returns_weight) continue;
      const bool is_called_again = std::ranges::any_of(nodes_of(model_), [&](const Module* other) {
        const auto* const shared = std::get_if<Shared>(&other->kind);
        return shared && shared->module == node->name;
      });
      if (is_called_again || !flow.unwrapped.contains(node->name) || !flow.ran.contains(node->name))
        return "a weight is returned by a module of one plain call";
    }
    return first_broken(
        {{has_several_engines() || model_.losses() > 1 || traits_.has_tiles ||
              traits_.has_external_uses || is_autocast() || program_.world.skips_frames ||
              program_.config.stage3_module_granularity_threshold > 0,
          "a weight is returned with one engine and loss, no tiles and no autocast"}});
  }

  // Below a module of the granularity all is fetched at once, by its inputs' gradients.
  std::string leaf_problem() const {
    if (program_.config.stage3_module_granularity_threshold == 0) return {};
    const bool are_linked = std::ranges::all_of(weight_owners(model_), [](const Module* owner) {
      const auto* const linear = std::get_if<Linear>(&owner->kind);
      return !linear || linear->input_needs_grad;
    });
    return first_broken({{!are_linked, "leaf modules need inputs that need a gradient"},
                         {program_.config.stage != 3 || has_several_engines() || traits_.has_tiles,
                          "leaf modules are of one engine of stage 3"}});
  }

  std::string frame_problem() const {
    if (!program_.world.skips_frames) return {};
    return first_broken({{model_.losses() > 1 || model_.container != Container::tensors ||
                              model_.has_constant_output || model_.returns_activations,
                          "skipped frames with several outputs"},
                         {traits_.has_checkpoints, "skipped frames in a checkpoint"}});
  }

  const Program& program_;
  const Model& model_;
  const ModelTraits traits_;
  std::set<std::string> seen_;
};

}  // namespace

std::string model_problem(const Program& program, const Model& model) {
  return ModelCheck(program, model).run();
}

}  // namespace zeroproof::program
