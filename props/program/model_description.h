#pragma once

#include "props/program/description.h"
#include "props/program/model_tree.h"

namespace zeroproof::program {

template <>
struct Description<Linear> {
  static constexpr std::string_view name = "linear";
  static constexpr std::string_view meaning = "torch.nn.Linear";
  static constexpr auto members = std::tuple(
      needs("inputs", &Linear::inputs), needs("outputs", &Linear::outputs, "0: no elements"),
      may("has_bias", &Linear::has_bias),
      may("trained", &Linear::trained, "which parameters the optimizer trains"),
      may("input_needs_grad", &Linear::input_needs_grad, "its factor depends on activations"),
      may("watches_input", &Linear::watches_input, "a tensor hook sees the input's gradient"),
      may("dimensions", &Linear::dimensions, "of its input: 1 to 3"),
      may("activations", &Linear::activations, "2: one argument twice; 3: and an undefined one"),
      may("closes_over_factor", &Linear::closes_over_factor, "the factor is no argument"));
};

template <>
struct Description<Custom> {
  static constexpr std::string_view name = "custom";
  static constexpr std::string_view meaning = "a module of the user's own, without nn.Linear";
  static constexpr auto members =
      std::tuple(needs("shape", &Custom::shape, "of each weight"), may("weights", &Custom::weights),
                 may("trained", &Custom::trained, "as of linear"),
                 may("returns_weight", &Custom::returns_weight, "its caller uses the weight"),
                 may("watches_input", &Custom::watches_input, "as of linear"),
                 may("activations", &Custom::activations, "as of linear"),
                 may("closes_over_factor", &Custom::closes_over_factor, "as of linear"));
};

template <>
struct Description<OwnWeight> {
  static constexpr std::string_view name = "own_weight";
  static constexpr std::string_view meaning = "a parameter that the module around it uses itself";
  static constexpr auto members = std::tuple(needs("elements", &OwnWeight::elements));
};

template <>
struct Description<Sequential> {
  static constexpr std::string_view name = "sequential";
  static constexpr std::string_view meaning = "modules that are called in their order";
  static constexpr auto members = std::tuple(needs("body", &Sequential::body));
};

template <>
struct Description<Shared> {
  static constexpr std::string_view name = "shared";
  static constexpr std::string_view meaning = "calls an earlier module once more";
  static constexpr auto members = std::tuple(needs("module", &Shared::module));
};

template <>
struct Description<Tied> {
  static constexpr std::string_view name = "tied";
  static constexpr std::string_view meaning = "a module with the weight of an earlier module";
  static constexpr auto members = std::tuple(needs("module", &Tied::module));
};

template <>
struct Description<Checkpoint> {
  static constexpr std::string_view name = "checkpoint";
  static constexpr std::string_view meaning = "torch.utils.checkpoint around the body";
  static constexpr auto members =
      std::tuple(may("is_reentrant", &Checkpoint::is_reentrant), needs("body", &Checkpoint::body));
};

template <>
struct Description<Tiled> {
  static constexpr std::string_view name = "tiled";
  static constexpr std::string_view meaning =
      "the body tile by tile, with each tile's backward inside forward (TiledMLP)";
  static constexpr auto members = std::tuple(needs("body", &Tiled::body));
};

template <>
struct Description<Experts> {
  static constexpr std::string_view name = "experts";
  static constexpr std::string_view meaning =
      "a leaf module of stage 3, of which each forward runs one expert";
  static constexpr auto members =
      std::tuple(may("leaf_by", &Experts::leaf_by, "how it is made a leaf"),
                 needs("experts", &Experts::experts));
};

template <>
struct Description<ExternalUse> {
  static constexpr std::string_view name = "external_use";
  static constexpr std::string_view meaning = "uses a weight of another module";
  static constexpr auto members = std::tuple(
      needs("module", &ExternalUse::module), may("when", &ExternalUse::when),
      may("is_registered", &ExternalUse::is_registered, "register_external_parameter"),
      may("watches_use", &ExternalUse::watches_use, "a tensor hook sees the factor's gradient"));
};

template <>
struct Description<Unused> {
  static constexpr std::string_view name = "unused";
  static constexpr std::string_view meaning = "registered, and never called";
  static constexpr auto members = std::tuple(needs("body", &Unused::body));
};

template <>
struct Description<Module> {
  static constexpr std::string_view name = "module";
  static constexpr std::string_view meaning = "a node of a model";
  static constexpr auto members = std::tuple(
      needs("name", &Module::name, "no other node of the model has it"), one_of(&Module::kind));
};

template <>
struct Description<Model> {
  static constexpr std::string_view name = "model";
  static constexpr std::string_view meaning = "the body, then heads that make a loss each";
  static constexpr auto members =
      std::tuple(needs("name", &Model::name), needs("body", &Model::body),
                 may("heads", &Model::heads, "none: the mean of the activations is the loss"),
                 may("container", &Model::container, "of what forward returns"),
                 may("has_constant_output", &Model::has_constant_output, "before the losses"),
                 may("returns_activations", &Model::returns_activations, "after the losses"),
                 may("added_to_loss", &Model::added_to_loss));
};

}  // namespace zeroproof::program
