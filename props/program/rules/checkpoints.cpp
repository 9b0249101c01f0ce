// What is saved, loaded and made again.
#include <utility>

#include "props/program/model_traits.h"
#include "props/program/rules.h"

namespace zeroproof::program {
namespace {

using FrameKind = Frame::Kind;

// The latest checkpoint has no tag of its own.
constexpr const char* kLatest = "";

const SavedState* find_saved(const State& state, const std::string& engine,
                             const std::string& tag) {
  const auto saved = state.saved.find(tag);
  if (saved == state.saved.end()) return nullptr;
  const auto at = saved->second.find(engine);
  return at == saved->second.end() ? nullptr : &at->second;
}

void take_over(EngineState& engine, const SavedState& saved) {
  clear_window(engine);
  renew_weights(engine);
  engine.micro_steps = saved.micro_steps;
  engine.scaler.restore(saved.scaler);
  engine.has_changed_weights = engine.all_changed_them = false;
  engine.is_spoiled = false;
  engine.owes = EngineState::Owes::none;
}

void drop_values_of(State& state, const std::string& engine) {
  std::erase_if(state.values, [&](const auto& named) {
    for (const Term& term : named.second.terms)
      if (state.graphs.at(term.graph).engine == engine) return true;
    return false;
  });
  state.forget_unused_graphs();
}

std::string place_problem(const State& state, const EngineState& engine) {
  return first_broken({{state.program->world.tensor > 1, "a checkpoint of replicas"},
                       {engine.tiled.has_value(), "a checkpoint before the backward of tiles"},
                       {engine.is_spoiled, "a checkpoint of weights that are no numbers"},
                       {!engine.frozen.empty(), "a checkpoint while a module is frozen"}});
}

// What each stage does in its own way.
std::string stage_problem(const State& state, const Resume& resume) {
  if (resume.stage == state.stage) return {};
  for (const EngineSpec& engine : state.program->engines) {
    const ModelTraits traits = traits_of(state.model(engine.name));
    if (traits.has_experts || traits.has_external_uses || traits.returns_weights)
      return "another stage for experts or external parameters";
  }
  ZeroConfig config = state.config();
  config.stage = resume.stage;
  if (const auto valid = validate(config); !valid) return valid.error().text;
  return first_broken(
      {{resume.stage == 0 && state.program->world.autograd != World::Autograd::full,
        "stage 0 without the autograd's counts"},
       {resume.stage != 3 && state.program->world.skips_frames, "skipped frames without stage 3"},
       {resume.stage != 3 && config.stage3_module_granularity_threshold > 0,
        "leaf modules without stage 3"}});
}

// What is damaged is the latest one, or what says that it is; it stays so.
Verdict damaged_load(State& state, const Load& load) {
  if (state.latest[load.engine] != load.tag)
    return no_sense("a checkpoint is damaged that is not the latest");
  state.saved[load.tag].erase(load.engine);
  state.saved[kLatest].erase(load.engine);
  return refused_otherwise();
}

}  // namespace

Verdict check(Walk& walk, const Save& save) {
  State& state = walk.state();
  const auto found = engine_of(state, save.engine);
  if (!found) return tl::unexpected(found.error());
  if (const std::string why = place_problem(state, **found); !why.empty()) return no_sense(why);
  if (save.failure != Save::Failure::none) return refused_otherwise();
  const SavedState saved{.micro_steps = (*found)->micro_steps, .scaler = (*found)->scaler};
  state.saved[save.tag][save.engine] = saved;
  state.saved[kLatest][save.engine] = saved;
  state.latest[save.engine] = save.tag;
  return Expectation{};
}

Verdict check(Walk& walk, const Load& load) {
  State& state = walk.state();
  const auto found = engine_of(state, load.engine);
  if (!found) return tl::unexpected(found.error());
  if (std::string why = place_problem(state, **found); !why.empty() && !(*found)->is_spoiled)
    return no_sense(std::move(why));
  if (state.backward_around() || state.is_in(FrameKind::forward_hook))
    return no_sense("a load in the middle of a pass");
  if (state.program->engine(load.engine).grows_in > 0)
    return no_sense("a load that undoes the steps of a scale that grows");
  const SavedState* const saved = find_saved(state, load.engine, load.tag);
  const bool owes = (*found)->owes == EngineState::Owes::load;
  if (load.failure == Load::Failure::missing) {
    if (saved || owes) return no_sense("a checkpoint that is there is missing: " + load.tag);
    return refused_otherwise();
  }
  if (!saved) return no_sense("no checkpoint has the tag '" + load.tag + "'");
  if (load.failure != Load::Failure::none && owes)
    return no_sense("the new engine has to load a checkpoint first");
  if (load.failure != Load::Failure::none && load.tag == kLatest)
    return no_sense("the latest checkpoint is damaged for all that follows");
  if (load.failure == Load::Failure::damaged) return damaged_load(state, load);
  if (load.failure != Load::Failure::none) return refused_otherwise();
  take_over(**found, *saved);
  return Expectation{};
}

Verdict check(Walk& walk, const Recreate& recreate) {
  State& state = walk.state();
  const auto found = engine_of(state, recreate.engine);
  if (!found) return tl::unexpected(found.error());
  const EngineState& engine = **found;
  const std::string why =
      first_broken({{!state.is_at_top(), "an engine that goes in the middle of something"},
                    {engine.has_created_graph || state.has_live_graph(recreate.engine),
                     "an engine whose graphs are kept"},
                    {!engine.frozen.empty() || engine.tiled.has_value(),
                     "an engine in the middle of a window"}});
  if (!why.empty()) return no_sense(why);
  drop_values_of(state, recreate.engine);
  EngineState made = new_engine(state, state.program->engine(recreate.engine));
  made.weights = engine.weights + 1;
  made.owes = EngineState::Owes::load;
  **found = std::move(made);
  return Expectation{};
}

Verdict check(Walk& walk, const Resume& resume) {
  State& state = walk.state();
  const World& world = state.program->world;
  std::string why = first_broken(
      {{!state.is_at_top(), "a job that ends in the middle of something"},
       {resume.ranks < 1 || resume.ranks > World::kMost, "a job of no or too many ranks"},
       {resume.stage < 0 || resume.stage > 3, "a job of no stage"},
       {world.tensor > 1 || world.sequence > 1, "other ranks of groups"},
       {state.program->data.mode == Data::Mode::magnitude,
        "other ranks of gradients at their limits"}});
  if (why.empty()) why = leaf_names_problem(*state.program, resume.stage);
  if (why.empty()) why = stage_problem(state, resume);
  if (!why.empty()) return no_sense(why);
  for (const auto& [name, engine] : state.engines) {
    if (!find_saved(state, name, resume.tag))
      return no_sense("engine '" + name + "' has not saved '" + resume.tag + "'");
    if (state.program->engine(name).grows_in > 0)
      return no_sense("a job that undoes the steps of a scale that grows");
    if (!engine.frozen.empty() || engine.tiled || engine.owes == EngineState::Owes::load)
      return no_sense("a job that ends with engine '" + name + "' in the middle of something");
  }
  state.values.clear();
  state.graphs.clear();
  state.ranks = resume.ranks;
  state.stage = resume.stage;
  for (const EngineSpec& engine : state.program->engines) {
    EngineState made = new_engine(state, engine);
    take_over(made, *find_saved(state, engine.name, resume.tag));
    state.engines[engine.name] = std::move(made);
  }
  return Expectation{};
}

}  // namespace zeroproof::program
