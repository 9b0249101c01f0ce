#include <algorithm>
#include <string>

#include "props/train/case_asides.h"
#include "props/train/case_config.h"
#include "props/train/case_detours.h"
#include "props/train/case_ends.h"
#include "props/train/case_habits.h"
#include "props/train/case_inputs.h"
#include "props/train/case_manners.h"
#include "props/train/case_memory.h"
#include "props/train/case_micros.h"
#include "props/train/case_modes.h"
#include "props/train/case_options.h"
#include "props/train/case_orders.h"
#include "props/train/case_refusals.h"
#include "props/train/case_root.h"
#include "props/train/case_saves.h"
#include "props/train/case_shape.h"
#include "props/train/case_spec.h"
#include "props/train/case_storage.h"
#include "props/train/case_turns.h"
#include "props/train/case_worlds.h"

namespace zeroproof::train {
namespace {

// The first rule that does not hold is the answer; what follows may build on those before.
constexpr std::string (*kRules[])(const CaseSpec& spec) = {
    shape_problem,  model_problem,  refusal_problem, layers_problem, structure_problem,
    change_problem, option_problem, update_problem,  need_problem,   storage_problem,
    end_problem,    mode_problem,   save_problem,    input_problem,  turn_problem,
    manner_problem, order_problem,  world_problem,   detour_problem, shortage_problem,
    habit_problem,  root_problem};

// Contributions that have a bit of their own (model/baseline/exact_data.h).
int significand_bits(Precision precision) {
  switch (precision) {
    case Precision::float32:
      return 20;
    case Precision::fp16:
      return 9;  // behind the loss scale
    default:
      return 7;
  }
}

std::string problem_of_micro(const CaseSpec& spec, std::size_t i) {
  const MicroSpec& micro = spec.micros[i];
  const bool is_first = i % static_cast<std::size_t>(spec.accumulation) == 0;
  const bool is_boundary = (i + 1) % static_cast<std::size_t>(spec.accumulation) == 0;
  if (std::string problem = aside_problem(spec, micro); !problem.empty()) return problem;
  if (loads_away(static_cast<Restores>(micro.restores)) && !is_first)
    return "a checkpoint inside a window";
  // It spoils all that comes behind it.
  const bool is_last = i + static_cast<std::size_t>(spec.accumulation) >= spec.micros.size();
  if (micro.overflow != 0 && !looks_for_overflow(spec) && (!is_last || spec.tensor > 1))
    return "an overflow that nobody looks for";
  if (std::string problem = misuse_problem(spec, micro); !problem.empty()) return problem;
  if (std::string problem = interrupt_problem(spec, micro); !problem.empty()) return problem;
  if (std::string problem = past_engine_problem(spec, micro); !problem.empty()) return problem;
  return micro_problem(spec, micro, is_boundary);
}

// Every contribution to a sum has a bit of its own.
std::string sum_problem(const CaseSpec& spec) {
  const int exact = spec.is_wire_narrow != 0 ? static_cast<int>(Precision::bf16) : spec.precision;
  const auto of_sums = static_cast<Precision>(spec.is_wide != 0 ? 0 : exact);
  const int most = spec.forwards() * std::max(spec.ranks, spec.first_ranks) * spec.uses();
  return most > significand_bits(of_sums) ? "more contributions than bits" : "";
}

}  // namespace

std::string why_invalid(const CaseSpec& spec) {
  for (const auto rule : kRules)
    if (std::string problem = rule(spec); !problem.empty()) return problem;
  for (std::size_t i = 0; i < spec.micros.size(); ++i)
    if (std::string problem = problem_of_micro(spec, i); !problem.empty()) return problem;
  if (std::string problem = width_problem(spec); !problem.empty()) return problem;
  if (std::string problem = sum_problem(spec); !problem.empty()) return problem;
  if (const auto valid = validate(config_of(spec)); !valid) return valid.error().text;
  return {};
}

}  // namespace zeroproof::train
