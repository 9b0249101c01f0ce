// Relations whose other program differentiates sums of losses.
#include <algorithm>
#include <bit>
#include <set>
#include <string>

#include "props/interpreter/program_count.h"
#include "props/program/contract.h"
#include "props/relations/relation_table.h"
#include "props/relations/rewrite.h"

namespace zeroproof::relations {
namespace {

using program::as;
using program::Backward;
using program::Body;
using program::Forward;
using program::Program;
using program::Statement;
using program::Sum;

bool is_plain(const Backward& backward) {
  return !backward.engine.empty() && !backward.value.empty() && !backward.create_graph &&
         !backward.keeps_dimension;
}

// Whether a sum that is divided by the accumulation steps is the sum of what was divided.
bool divides_exactly(const Program& program) {
  const std::int64_t steps = program.config.gradient_accumulation_steps;
  return std::has_single_bit(static_cast<std::uint64_t>(std::max<std::int64_t>(steps, 1)));
}

// The losses whose backward is refused, or runs code of the user, which a sum runs once.
std::set<std::string> lone_losses(const Program& program) {
  std::set<std::string> losses;
  const auto contract = program::Contract::of(program);
  if (!contract) return losses;
  for (const Statement& statement : program.body) {
    const auto* const backward = as<Backward>(statement);
    const auto* const forward = as<Forward>(statement);
    if (backward && contract->of(statement).is_refused()) losses.insert(backward->value);
    if (!forward || forward->hooks.empty()) continue;
    const int heads = program.model_of(forward->engine).losses();
    losses.insert(forward->as);
    for (int i = 1; i < heads; ++i) losses.insert(forward->as + "." + std::to_string(i));
  }
  return losses;
}

// Backwards that follow each other, and may be one of a sum.
bool can_join(const Statement& first, const Statement& second, const std::set<std::string>& alone) {
  const auto* const a = as<Backward>(first);
  const auto* const b = as<Backward>(second);
  return a && b && is_plain(*a) && is_plain(*b) && a->engine == b->engine && a->value != b->value &&
         a->scale_wrt_gas == b->scale_wrt_gas && !b->retain_graph && !alone.contains(a->value) &&
         !alone.contains(b->value);
}

// Whether a backward runs forwards, which take their data in its place.
bool forwards_in_backwards(const Program& program) {
  return any_statement(program.body, [](const Statement& it) {
    const auto* const forward = as<Forward>(it);
    return forward && std::ranges::any_of(forward->hooks, [](const program::Hook& hook) {
             bool found = false;
             program::visit_statements(
                 hook.body, [&](const Statement& inner) { found = found || as<Forward>(inner); });
             return found;
           });
  });
}

// Forwards between two backwards come before both.
Body with_forwards_first(const Program& program, const Body& body) {
  Body result = body;
  if (forwards_in_backwards(program)) return result;
  for (std::size_t i = 1; i < result.size(); ++i) {
    const auto* const forward = as<Forward>(result[i]);
    if (forward && forward->hooks.empty() && as<Backward>(result[i - 1]))
      std::swap(result[i - 1], result[i]);
  }
  return result;
}

// Joins the first such pair, or all.
bool join_backwards(Body& body, const std::set<std::string>& alone, bool joins_all) {
  int joined = 0;
  for (std::size_t i = 1; i < body.size(); ++i) {
    if (!can_join(body[i - 1], body[i], alone)) continue;
    Backward last = std::get<Backward>(body[i].kind);
    const Sum sum{.values = {as<Backward>(body[i - 1])->value, last.value},
                  .as = "sum" + std::to_string(joined++)};
    last.value = sum.as;
    body[i - 1] = {sum};
    body[i] = {last};
    if (!joins_all) break;
  }
  return joined != 0;
}

}  // namespace

// Losses are a fraction of what they were instead of gradients.
std::optional<Other> with_one_batch(const Program& program) {
  const bool is_undivided = any_statement(program.body, [](const Statement& it) {
    const auto* const backward = as<Backward>(it);
    return backward && !backward->scale_wrt_gas;
  });
  const std::int64_t steps = program.config.gradient_accumulation_steps;
  if (steps < 2 || !divides_exactly(program) || is_undivided ||
      !program.config.managed_gradient_accumulation || !can_scale(program))
    return std::nullopt;
  auto body = boundaries_alone(program);
  if (!body) return std::nullopt;
  const int exponent = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(steps))) - 1;
  Other other{program, {.exponent = -exponent}};
  other.program.config.gradient_accumulation_steps = 1;
  other.program.body = with_forwards_first(program, *body);
  if (!join_backwards(other.program.body, lone_losses(program), true)) return std::nullopt;
  return other;
}

std::optional<Other> with_summed_losses(const Program& program) {
  // Unmanaged accumulation counts samples by backwards, and saves what it counts.
  const bool saves_backwards =
      !program.config.managed_gradient_accumulation && program::has<program::Save>(program.body);
  if (!divides_exactly(program) || adds_to_losses(program) || saves_backwards) return std::nullopt;
  Other other{program};
  other.program.body = with_forwards_first(program, program.body);
  if (!join_backwards(other.program.body, lone_losses(program), false)) return std::nullopt;
  return other;
}

}  // namespace zeroproof::relations
