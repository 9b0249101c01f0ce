#include "props/interpreter/program_count.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace zeroproof::program {
namespace {

// The forward that a loss of it is named after: "g1" for "g1", "g1.1" and "g1.h".
std::string forward_of(const std::string& value) {
  return value.substr(0, value.find('.'));
}

// Which forwards a value is made of, and how much each head weighs in it.
class ValueParts {
 public:
  using Parts = std::map<std::string, std::int64_t>;

  void see(const Statement& statement) {
    if (const auto* const sum = as<Sum>(statement)) {
      Parts parts;
      for (const std::string& value : sum->values)
        for (const auto& [forward, weight] : of(value)) parts[forward] += weight;
      parts_[sum->as] = std::move(parts);
    } else if (const auto* const scale = as<Scale>(statement)) {
      parts_[scale->as] = of(scale->value);
    } else if (const auto* const call = as<CallModule>(statement)) {
      parts_[call->as] = {{call->as, 1}};
    }
  }

  Parts of(const std::string& value) const {
    if (const auto at = parts_.find(value); at != parts_.end()) return at->second;
    const std::size_t dot = value.find('.');
    const bool is_head = dot != std::string::npos && value[dot + 1] != 'h';
    const int head = is_head ? std::stoi(value.substr(dot + 1)) : 0;
    return {{forward_of(value), std::int64_t{1} << head}};
  }

 private:
  std::map<std::string, Parts> parts_;
};

// Forwards of one engine until its updates; a hook's as often as backwards may run it. A step in a
// body may be refused or may not run: it ends no window.
class WindowCounter {
 public:
  WindowCounter(const Program& program, const std::string& engine) : engine_(engine) {
    const auto steps = std::max<std::int64_t>(program.config.gradient_accumulation_steps, 1);
    const bool sets_boundary = any_statement(program.body, [&](const Statement& statement) {
      const auto* const set = as<SetBoundary>(statement);
      return set && set->engine == engine;
    });
    if (!sets_boundary) segments_of_window_ = static_cast<std::size_t>(steps);
    for (const Statement& statement : program.body) {
      add(statement, 1);
      const auto* const step = as<Step>(statement);
      if (step && step->engine == engine) end_segment();
    }
    end_segment();
  }

  std::int64_t most() const {
    std::int64_t most = 1;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const std::size_t count = std::min(segments_of_window_, segments_.size() - i);
      const auto first = segments_.begin() + static_cast<std::ptrdiff_t>(i);
      const auto last = first + static_cast<std::ptrdiff_t>(count);
      most = std::max(most, std::accumulate(first, last, std::int64_t{0}));
    }
    return most;
  }

 private:
  static constexpr std::int64_t kRunsOfHook = 2;

  void add(const Statement& statement, std::int64_t times) {
    if (const auto* const forward = as<Forward>(statement)) {
      if (forward->engine == engine_) current_ += times;
      for (const Hook& hook : forward->hooks) add(hook.body, times * kRunsOfHook);
    }
    const auto* const call = as<CallModule>(statement);
    if (call && call->engine == engine_) current_ += times;
    if (const Body* const inner = body_of(statement)) add(*inner, times);
  }
  void add(const Body& body, std::int64_t times) {
    for (const Statement& statement : body) add(statement, times);
  }

  void end_segment() { segments_.push_back(std::exchange(current_, 0)); }

  const std::string& engine_;
  std::size_t segments_of_window_ = std::numeric_limits<std::size_t>::max();
  std::int64_t current_ = 0;
  std::vector<std::int64_t> segments_;
};

}  // namespace

const Body* body_of(const Statement& statement) {
  const auto body = [](const auto& kind) -> const Body* {
    if constexpr (requires { kind.body; }) return &kind.body;
    return nullptr;
  };
  return std::visit(body, statement.kind);
}

void visit_statement(const Statement& statement,
                     const std::function<void(const Statement&)>& visit) {
  visit(statement);
  if (const auto* const forward = as<Forward>(statement))
    for (const Hook& hook : forward->hooks) visit_statements(hook.body, visit);
  if (const Body* const inner = body_of(statement)) visit_statements(*inner, visit);
}

void visit_statements(const Body& body, const std::function<void(const Statement&)>& visit) {
  for (const Statement& statement : body) visit_statement(statement, visit);
}

bool any_statement(const Body& body, const std::function<bool(const Statement&)>& is_it) {
  bool found = false;
  visit_statements(body, [&](const Statement& it) { found = found || is_it(it); });
  return found;
}

bool any_module(const Program& program, const std::function<bool(const Module&)>& is_it) {
  return std::ranges::any_of(program.models, [&](const Model& model) {
    const auto nodes = nodes_of(model);
    return std::ranges::any_of(nodes, [&](const Module* node) { return is_it(*node); });
  });
}

WindowBounds window_bounds(const Program& program) {
  WindowBounds bounds;
  for (const EngineSpec& engine : program.engines)
    bounds.forwards = std::max(bounds.forwards, WindowCounter(program, engine.name).most());
  ValueParts values;
  std::map<std::string, std::int64_t> additions;  // of the forwards that have these names now
  visit_statements(program.body, [&](const Statement& statement) {
    values.see(statement);
    if (const auto* const forward = as<Forward>(statement)) additions[forward->as] = 0;
    const auto* const backward = as<Backward>(statement);
    if (!backward) return;
    for (const auto& [forward, weight] : values.of(backward->value))
      bounds.additions = std::max(bounds.additions, additions[forward] += weight);
  });
  return bounds;
}

std::optional<DType> autocast_dtype(const Block& block, const ZeroConfig& config) {
  const bool is_other = block.kind == Block::Kind::other_autocast;
  if (block.kind != Block::Kind::autocast && !is_other) return std::nullopt;
  const DType own = config.torch_autocast.enabled ? config.torch_autocast.dtype : DType::bfloat16;
  if (!is_other) return own;
  return own == DType::bfloat16 ? DType::float16 : DType::bfloat16;
}

}  // namespace zeroproof::program
