#pragma once

#include "props/program/job_description.h"
#include "props/program/model_description.h"
#include "props/program/program.h"
#include "props/program/statement_description.h"

namespace zeroproof::program {

template <>
struct Description<World> {
  static constexpr std::string_view name = "world";
  static constexpr std::string_view meaning = "who runs the job";
  static constexpr auto members = std::tuple(
      may("ranks", &World::ranks, "of different data"),
      may("tensor", &World::tensor, "so many ranks train the same, as one tensor-parallel group"),
      may("sequence", &World::sequence, "so many ranks share a sequence"),
      may("ranks_differ", &World::ranks_differ, "in the weights that engines are given"),
      may("autograd", &World::autograd, "what the job's autograd can be asked"),
      may("skips_frames", &World::skips_frames, "stage 3 under DeepCompile, every frame skipped"));
};

template <>
struct Description<Data> {
  static constexpr std::string_view name = "data";
  static constexpr std::string_view meaning = "what contributions to gradients look like";
  static constexpr auto members = std::tuple(
      may("mode", &Data::mode), may("seed", &Data::seed),
      may("magnitude", &Data::magnitude, "which limit, of the mode `magnitude`: 0 to 4"));
};

template <>
struct Description<EngineSpec> {
  static constexpr std::string_view name = "engine";
  static constexpr std::string_view meaning = "initialize(model)";
  static constexpr auto members = std::tuple(
      needs("name", &EngineSpec::name), needs("model", &EngineSpec::model),
      may("parameter_groups", &EngineSpec::parameter_groups, "parameters go to them in turns"),
      may("lists_frozen", &EngineSpec::lists_frozen, "groups list frozen parameters, too"),
      may("custom_loss_scale", &EngineSpec::custom_loss_scale),
      may("grows_in", &EngineSpec::grows_in,
          "good steps before a GradScaler grows; 0: as it begins"),
      may("reads_document", &EngineSpec::reads_document, "configured with a ds_config.json"));
};

template <>
struct Description<Program> {
  static constexpr std::string_view name = "program";
  static constexpr std::string_view meaning = "a training job of zeroproof";
  static constexpr auto members =
      std::tuple(may("world", &Program::world),
                 may("config", &Program::config, "what differs from the default ds_config.json"),
                 may("data", &Program::data), needs("models", &Program::models),
                 needs("engines", &Program::engines), needs("body", &Program::body));
};

}  // namespace zeroproof::program
