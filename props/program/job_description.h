#pragma once

#include "props/program/description.h"
#include "props/program/statement.h"

// Statements around those that compute: blocks, failures, checkpoints and what belongs to a job.

namespace zeroproof::program {

template <>
struct Description<Block> {
  static constexpr std::string_view name = "block";
  static constexpr std::string_view meaning = "a context manager around the body";
  static constexpr auto members =
      std::tuple(needs("kind", &Block::kind), may("engine", &Block::engine),
                 may("modules", &Block::modules, "gathered; empty: all parameters"),
                 may("modifier", &Block::modifier, "modifier_rank"),
                 may("change", &Block::change, "what happens to gathered weights"),
                 needs("body", &Block::body));
};

template <>
struct Description<Raise> {
  static constexpr std::string_view name = "raise";
  static constexpr std::string_view meaning = "the user's own code throws";
  static constexpr auto members = std::tuple();
};

template <>
struct Description<Catch> {
  static constexpr std::string_view name = "catch";
  static constexpr std::string_view meaning = "goes on after its body, when the body throws";
  static constexpr auto members = std::tuple(needs("body", &Catch::body));
};

template <>
struct Description<OutOfMemory> {
  static constexpr std::string_view name = "out_of_memory";
  static constexpr std::string_view meaning =
      "the k-th allocation of the body fails on every rank, and the body runs again";
  static constexpr auto members = std::tuple(
      may("allocation", &OutOfMemory::allocation),
      may("clears", &OutOfMemory::clears, "zero_grad() of every engine before the second run"),
      needs("body", &OutOfMemory::body));
};

template <>
struct Description<Save> {
  static constexpr std::string_view name = "save";
  static constexpr std::string_view meaning = "engine.save_checkpoint(tag)";
  static constexpr auto members =
      std::tuple(needs("engine", &Save::engine), quotes("tag", &Save::tag),
                 may("failure", &Save::failure), may("at", &Save::at, "which file fails"));
};

template <>
struct Description<Load> {
  static constexpr std::string_view name = "load";
  static constexpr std::string_view meaning = "engine.load_checkpoint(tag)";
  static constexpr auto members = std::tuple(
      needs("engine", &Load::engine), quotes("tag", &Load::tag), may("failure", &Load::failure),
      may("at", &Load::at, "which file, byte or kind of misfit"));
};

template <>
struct Description<Recreate> {
  static constexpr std::string_view name = "recreate";
  static constexpr std::string_view meaning = "a new engine around a new model in its place";
  static constexpr auto members = std::tuple(needs("engine", &Recreate::engine));
};

template <>
struct Description<Resume> {
  static constexpr std::string_view name = "resume";
  static constexpr std::string_view meaning =
      "another job begins, whose engines load the tag; at the top level only";
  static constexpr auto members = std::tuple(
      may("ranks", &Resume::ranks), may("stage", &Resume::stage), quotes("tag", &Resume::tag));
};

template <>
struct Description<Inspect> {
  static constexpr std::string_view name = "inspect";
  static constexpr std::string_view meaning = "the user reads whole values";
  static constexpr auto members =
      std::tuple(needs("engine", &Inspect::engine), needs("what", &Inspect::what));
};

template <>
struct Description<RegisterExternal> {
  static constexpr std::string_view name = "register_external";
  static constexpr std::string_view meaning = "register_external_parameter of the root";
  static constexpr auto members = std::tuple(needs("engine", &RegisterExternal::engine),
                                             needs("module", &RegisterExternal::module));
};

template <>
struct Description<SetLeaf> {
  static constexpr std::string_view name = "set_leaf";
  static constexpr std::string_view meaning = "set_leaf_module of the experts once more";
  static constexpr auto members =
      std::tuple(needs("engine", &SetLeaf::engine), needs("module", &SetLeaf::module));
};

template <>
struct Description<EvaluateGuards> {
  static constexpr std::string_view name = "evaluate_guards";
  static constexpr std::string_view meaning = "a guard of DeepCompile reads every weight";
  static constexpr auto members = std::tuple(needs("engine", &EvaluateGuards::engine));
};

template <>
struct Description<ReleaseGathered> {
  static constexpr std::string_view name = "release_gathered";
  static constexpr std::string_view meaning = "a forward without a backward ends (DeepCompile)";
  static constexpr auto members = std::tuple(needs("engine", &ReleaseGathered::engine));
};

template <>
struct Description<TemporaryEngine> {
  static constexpr std::string_view name = "temporary_engine";
  static constexpr std::string_view meaning = "another engine like this one is made, and goes";
  static constexpr auto members = std::tuple(needs("engine", &TemporaryEngine::engine));
};

template <>
struct Description<TryConfig> {
  static constexpr std::string_view name = "try_config";
  static constexpr std::string_view meaning =
      "one more engine is asked for, with one key of its configuration changed";
  static constexpr auto members = std::tuple(needs("engine", &TryConfig::engine),
                                             quotes("key", &TryConfig::key, "a JSON pointer"),
                                             quotes("value", &TryConfig::value, "JSON"));
};

template <>
struct Description<Statement> {
  static constexpr std::string_view name = "statement";
  static constexpr std::string_view meaning = "one line of what the user does";
  static constexpr auto members = std::tuple(one_of(&Statement::kind));
};

}  // namespace zeroproof::program
