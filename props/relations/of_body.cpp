// Relations whose other program has other statements.
#include <algorithm>
#include <string>
#include <utility>

#include "props/interpreter/program_count.h"
#include "props/relations/relation_table.h"
#include "props/relations/rewrite.h"

namespace zeroproof::relations {
namespace {

using program::Backward;
using program::Block;
using program::Body;
using program::EngineState;
using program::Forward;
using program::Load;
using program::Program;
using program::Resume;
using program::Save;
using program::State;
using program::Statement;
using program::Step;
using program::Sum;
using program::ZeroGrad;

constexpr const char* kSilent = "silent";  // begins the names of what is added

// Bodies of such blocks stand alone.
std::optional<Other> without_blocks(const Program& program, Block::Kind kind) {
  const auto is_it = [kind](const Statement& it) {
    const auto* const block = as<Block>(it);
    return block && block->kind == kind;
  };
  if (!any_statement(program.body, is_it)) return std::nullopt;
  Other other{program};
  other.program.body = rewritten(program.body, [&](Statement statement) {
    return is_it(statement) ? std::get<Block>(statement.kind).body : Body{std::move(statement)};
  });
  return other;
}

// No gradient or graph of the engine waits for its next step.
bool is_between_windows(const State& state, const std::string& name) {
  const EngineState& engine = state.engines.at(name);
  return !engine.window.has_gradients && !engine.window.has_local && !state.has_live_graph(name);
}

// The program with `added` after each step that ends a window.
std::optional<Other> with_after_steps(const Program& program,
                                      Body (*added)(const std::string& engine)) {
  const std::vector<State> states = states_of(program);
  if (states.empty()) return std::nullopt;
  Other other{program};
  Body& body = other.program.body;
  body.clear();
  for (std::size_t i = 0; i < program.body.size(); ++i) {
    body.push_back(program.body[i]);
    const auto* const step = as<Step>(program.body[i]);
    if (!step || !is_between_windows(states[i + 1], step->engine)) continue;
    const Body more = added(step->engine);
    body.insert(body.end(), more.begin(), more.end());
  }
  if (body.size() == program.body.size()) return std::nullopt;
  other.change.silent = {kSilent};
  return other;
}

}  // namespace

std::optional<Other> without_coalescing(const Program& program) {
  return without_blocks(program, Block::Kind::coalesce);
}

std::optional<Other> without_no_sync(const Program& program) {
  return without_blocks(program, Block::Kind::no_sync);
}

// Each managed backward of a forward's loss gets the same forward of zeros once more.
std::optional<Other> with_zero_output(const Program& program) {
  if (adds_to_losses(program)) return std::nullopt;
  Other other{program};
  std::vector<Forward> forwards;
  bool is_changed = false;
  other.program.body.clear();
  for (const Statement& statement : program.body) {
    if (const auto* const forward = as<Forward>(statement)) forwards.push_back(*forward);
    const auto* const backward = as<Backward>(statement);
    const auto of = std::ranges::find_if(forwards, [&](const Forward& it) {
      return backward && it.as == backward->value && it.engine == backward->engine;
    });
    if (of != forwards.end() && of->around == Forward::Around::none) {
      Forward zeros = *of;
      zeros.as = kSilent;
      zeros.hooks.clear();
      zeros.spike.reset();
      other.program.body.push_back({zeros});
      other.program.body.push_back({Sum{.values = {of->as, kSilent}, .as = of->as}});
      is_changed = true;
    }
    other.program.body.push_back(statement);
  }
  if (!is_changed) return std::nullopt;
  other.change.silent = {kSilent};
  return other;
}

// A load without a tag takes what was saved last.
std::optional<Other> with_round_trip(const Program& program) {
  const bool takes_latest = any_statement(program.body, [](const Statement& it) {
    const auto* const load = as<Load>(it);
    const auto* const resume = as<Resume>(it);
    return (load && load->tag.empty()) || (resume && resume->tag.empty());
  });
  if (takes_latest) return std::nullopt;
  return with_after_steps(program, [](const std::string& engine) -> Body {
    return {{Save{.engine = engine, .tag = kSilent}}, {Load{.engine = engine, .tag = kSilent}}};
  });
}

std::optional<Other> with_evaluation(const Program& program) {
  Other other{program};
  Body& body = other.program.body;
  body.clear();
  for (const Statement& statement : program.body) {
    const auto* const forward = as<Forward>(statement);
    if (forward && forward->mode == Forward::Mode::train)
      body.push_back(
          {Forward{.engine = forward->engine, .as = kSilent, .mode = Forward::Mode::no_grad}});
    body.push_back(statement);
  }
  if (body.size() == program.body.size()) return std::nullopt;
  other.change.silent = {kSilent};
  return other;
}

std::optional<Other> with_zero_grad(const Program& program) {
  return with_after_steps(
      program, [](const std::string& engine) -> Body { return {{ZeroGrad{.engine = engine}}}; });
}

}  // namespace zeroproof::relations
