#pragma once

#include "props/program/description.h"
#include "props/program/statement.h"

// Statements that compute: forwards, backwards and steps.

namespace zeroproof::program {

template <>
struct Description<Hook> {
  static constexpr std::string_view name = "hook";
  static constexpr std::string_view meaning = "code of the user inside a forward or its backward";
  static constexpr auto members =
      std::tuple(needs("at", &Hook::at), may("module", &Hook::module), needs("body", &Hook::body));
};

template <>
struct Description<Skip> {
  static constexpr std::string_view name = "skip";
  static constexpr std::string_view meaning = "a module that does not run";
  static constexpr auto members = std::tuple(needs("module", &Skip::module),
                                             may("rank", &Skip::rank, "missing: on every rank"));
};

template <>
struct Description<Spike> {
  static constexpr std::string_view name = "spike";
  static constexpr std::string_view meaning = "a gradient outside its dtype on one rank";
  static constexpr auto members = std::tuple(
      needs("module", &Spike::module), may("rank", &Spike::rank), may("value", &Spike::value));
};

template <>
struct Description<Forward> {
  static constexpr std::string_view name = "forward";
  static constexpr std::string_view meaning = "as = engine(inputs)";
  static constexpr auto members = std::tuple(
      needs("engine", &Forward::engine),
      needs("as", &Forward::as, "the first loss; `as.1` is the second, `as.h` the activations"),
      may("mode", &Forward::mode), may("inputs_need_grad", &Forward::inputs_need_grad),
      may("expert", &Forward::expert, "which runs; in stage 3 rank r runs the r-th after it"),
      may("skips", &Forward::skips, "modules that do not run"),
      may("spike", &Forward::spike, "makes an overflow"),
      may("around", &Forward::around, "a checkpoint of the user around it"),
      may("hooks", &Forward::hooks));
};

template <>
struct Description<CallModule> {
  static constexpr std::string_view name = "call_module";
  static constexpr std::string_view meaning = "as = module(inputs), without the engine's forward";
  static constexpr auto members =
      std::tuple(needs("engine", &CallModule::engine), needs("module", &CallModule::module),
                 needs("as", &CallModule::as), may("in_checkpoint", &CallModule::in_checkpoint),
                 may("uses_weight_alone", &CallModule::uses_weight_alone, "instead of the module"));
};

template <>
struct Description<Sum> {
  static constexpr std::string_view name = "sum";
  static constexpr std::string_view meaning = "as = the sum of the values";
  static constexpr auto members = std::tuple(needs("values", &Sum::values), needs("as", &Sum::as));
};

template <>
struct Description<Scale> {
  static constexpr std::string_view name = "scale";
  static constexpr std::string_view meaning = "as = engine.scale(value)";
  static constexpr auto members = std::tuple(
      needs("engine", &Scale::engine), needs("value", &Scale::value, "empty: an undefined tensor"),
      needs("as", &Scale::as));
};

template <>
struct Description<Backward> {
  static constexpr std::string_view name = "backward";
  static constexpr std::string_view meaning = "engine.backward(value), or value.backward()";
  static constexpr auto members = std::tuple(
      may("engine", &Backward::engine, "missing: value.backward()"),
      needs("value", &Backward::value, "empty: an undefined tensor"),
      may("retain_graph", &Backward::retain_graph), may("create_graph", &Backward::create_graph),
      may("scale_wrt_gas", &Backward::scale_wrt_gas),
      may("keeps_dimension", &Backward::keeps_dimension, "the loss has one dimension"));
};

template <>
struct Description<Step> {
  static constexpr std::string_view name = "step";
  static constexpr std::string_view meaning = "engine.step()";
  static constexpr auto members = std::tuple(needs("engine", &Step::engine));
};

template <>
struct Description<ZeroGrad> {
  static constexpr std::string_view name = "zero_grad";
  static constexpr std::string_view meaning = "engine.zero_grad()";
  static constexpr auto members = std::tuple(needs("engine", &ZeroGrad::engine));
};

template <>
struct Description<SetBoundary> {
  static constexpr std::string_view name = "set_boundary";
  static constexpr std::string_view meaning = "engine.set_gradient_accumulation_boundary()";
  static constexpr auto members = std::tuple(needs("engine", &SetBoundary::engine),
                                             needs("is_boundary", &SetBoundary::is_boundary));
};

template <>
struct Description<SetScale> {
  static constexpr std::string_view name = "set_scale";
  static constexpr std::string_view meaning = "engine.override_loss_scale()";
  static constexpr auto members =
      std::tuple(needs("engine", &SetScale::engine), needs("loss_scale", &SetScale::loss_scale));
};

template <>
struct Description<SetLearningRate> {
  static constexpr std::string_view name = "set_learning_rate";
  static constexpr std::string_view meaning = "the user writes `lr` of a parameter group";
  static constexpr auto members =
      std::tuple(needs("engine", &SetLearningRate::engine),
                 may("group", &SetLearningRate::group, "missing: all groups"),
                 needs("learning_rate", &SetLearningRate::learning_rate));
};

template <>
struct Description<SetGrad> {
  static constexpr std::string_view name = "set_grad";
  static constexpr std::string_view meaning =
      "the user writes .grad of every parameter, until zero_grad";
  static constexpr auto members = std::tuple(needs("engine", &SetGrad::engine));
};

template <>
struct Description<Freeze> {
  static constexpr std::string_view name = "freeze";
  static constexpr std::string_view meaning = "sets requires_grad of a module's parameters";
  static constexpr auto members =
      std::tuple(needs("engine", &Freeze::engine), needs("module", &Freeze::module),
                 may("is_trained", &Freeze::is_trained));
};

template <>
struct Description<Drop> {
  static constexpr std::string_view name = "drop";
  static constexpr std::string_view meaning = "the last reference to the value's graph goes";
  static constexpr auto members =
      std::tuple(needs("value", &Drop::value), may("rank", &Drop::rank, "missing: on every rank"));
};

template <>
struct Description<Transform> {
  static constexpr std::string_view name = "transform";
  static constexpr std::string_view meaning = "torch.func of the engine's forward";
  static constexpr auto members =
      std::tuple(needs("engine", &Transform::engine), needs("kind", &Transform::kind));
};

template <>
struct Description<ForeignBackward> {
  static constexpr std::string_view name = "foreign_backward";
  static constexpr std::string_view meaning = "backward of a loss that no engine is in";
  static constexpr auto members = std::tuple(may("throws", &ForeignBackward::throws));
};

}  // namespace zeroproof::program
