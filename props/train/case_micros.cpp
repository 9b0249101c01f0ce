#include "props/train/case_micros.h"

#include <algorithm>

#include "props/train/case_shape.h"

namespace zeroproof::train {
namespace {

// Through layers alone: checkpoints and our own Functions have no part for a transform.
bool can_transform(const CaseSpec& spec) {
  return static_cast<Precision>(spec.precision) == Precision::float32 && spec.engines == 1 &&
         spec.heads == 1 && spec.container == 0 && !has_checkpoints(spec);
}

// What else the user does inside a micro-batch, or keeps behind it.
std::string visit_problem(const CaseSpec& spec, const MicroSpec& micro) {
  const auto looks = static_cast<Looks>(micro.looks);
  if (micro.looks < 0 || looks > Looks::between || micro.keeps < 0 || micro.keeps > 3 ||
      micro.has_bypass < 0 || micro.has_bypass > static_cast<int>(Bypass::weight))
    return "a micro-batch out of range";
  const bool is_autocast = static_cast<Precision>(spec.precision) == Precision::autocast;
  const bool is_of_weight = static_cast<Bypass>(micro.has_bypass) == Bypass::weight;
  if (is_autocast && (is_of_weight || looks != Looks::none))
    return "autocast gathers weights rounded";
  const bool has_two = micro.outstanding != 0 || (spec.heads == 2 && micro.losses == 0);
  if (looks == Looks::between && !has_two) return "nothing between two backwards";
  if (micro.keeps != 0 && (spec.skips_frames != 0 || spec.is_tiled != 0))
    return "graphs that nobody keeps";
  // Rule A6 of docs/spec/autograd.md: PyTorch itself cannot take a gradient for a leaf whose data
  // has gone, so that a module of the weight has to be under way when it arrives.
  const bool has_weight =
      spec.layers.front().outputs > 0 && std::ranges::any_of(spec.calls, [](const CallSpec& call) {
        return call.layer == 0 && call.wrap == 0;
      });
  if (is_of_weight && (!has_weight || spec.heads == 2 || micro.skips != 0 || has_abort(micro) ||
                       spec.plain_linear != 0 || spec.granularity != 0))
    return "a linear function of a weight that is not there in its backward";
  return {};
}

// What a module begins to use late, or a forward that throws leaves out.
std::string use_problem(const CaseSpec& spec, const MicroSpec& micro) {
  if (!is_flag(micro.throws_no_grad) || !is_flag(micro.unread) || micro.registers < 0 ||
      micro.registers > static_cast<int>(spec.layers.size()))
    return "a micro-batch out of range";
  if (micro.throws_no_grad != 0 && micro.throws == 0) return "a forward that does not throw";
  if (micro.unread != 0 && spec.reads == 0) return "nothing that is read";
  if (micro.registers == 0) return {};
  if (spec.engines > 1 || spec.is_tiled != 0 || spec.granularity != 0 || spec.returns != 0)
    return "a weight is registered with one engine, no tiles and no leaf modules";
  const bool is_empty = spec.layers[static_cast<std::size_t>(micro.registers) - 1].outputs == 0;
  return is_empty ? "a weight without elements" : "";
}

// Its layer's weight has to get a gradient, in the backward that is to throw and in no other.
std::string failing_weight_problem(const CaseSpec& spec, const MicroSpec& micro) {
  if (!is_flag(micro.aborts_at_weight)) return "a number out of range";
  if (micro.aborts_at_weight == 0) return {};
  if (micro.aborts < 1 || micro.aborts > static_cast<int>(spec.calls.size()))
    return "a hook of no weight";
  const auto call = static_cast<std::size_t>(micro.aborts) - 1;
  const auto layer = static_cast<std::size_t>(spec.calls[call].layer);
  const LayerSpec& failing = spec.layers[layer];
  const bool is_trained = failing.is_frozen + failing.is_weight_frozen == 0 && failing.outputs > 0;
  return is_trained && spec.is_tiled == 0 ? "" : "a hook of a weight without a gradient";
}

// A managed backward between scaling a loss and differentiating it, and nothing else.
std::string backward_between_problem(const CaseSpec& spec, const MicroSpec& micro) {
  const MicroSpec plain = {.clears = 5, .peeks = micro.peeks, .by_hand = micro.by_hand};
  const bool is_right = micro == plain && spec.has_grad_scaler + spec.experts + spec.granularity +
                                                  spec.skips_frames + spec.input_grad ==
                                              0;
  return micro.clears != 5 || is_right ? "" : "a loss that is another one there";
}

}  // namespace

bool looks_for_overflow(const CaseSpec& spec) {
  const auto precision = static_cast<Precision>(spec.precision);
  return precision == Precision::fp16 || spec.has_grad_scaler + spec.owns_scale != 0 ||
         (precision == Precision::bf16 && spec.is_unchecked == 0 &&
          (spec.stage == 1 || spec.stage == 2));
}

// Every loss has to reach something that is trained.
std::string micro_problem(const CaseSpec& spec, const MicroSpec& micro, bool is_boundary) {
  const auto calls = static_cast<int>(spec.calls.size());
  const auto runs = [&](int call) {
    const CallSpec& it = spec.calls[static_cast<std::size_t>(call)];
    return micro.skips != call + 1 && is_trained(spec, it) && it.wrap != 1;
  };
  const auto reaches = [&](int head) {  // of two; the trunk reaches both
    // What tiles read has to need a gradient; their own layer does not lead back to it.
    const int last = spec.is_tiled != 0 ? calls - 1 : calls;
    for (int call = 0; call < last; ++call)
      if (runs(call) && (spec.heads == 1 || call < calls - 2 || call == calls - 2 + head))
        return true;
    return spec.input_grad != 0;
  };
  if (!reaches(0) || (spec.heads == 2 && !reaches(1))) return "a loss without a graph";
  if (micro.skips != 0 && (spec.is_tiled != 0 || spec.heads == 2) &&
      micro.skips > calls - spec.heads)
    return "a head that is skipped";
  if (micro.aborts == calls && spec.is_tiled != 0) return "a tile that throws inside forward";
  if (const std::string problem = failing_weight_problem(spec, micro); !problem.empty())
    return problem;
  const auto block = static_cast<Block>(micro.block);
  if (micro.block < 0 || micro.block > static_cast<int>(Block::no_sync_backwards) ||
      micro.idle_forward < 0 || micro.idle_forward > 4)
    return "a number out of range";
  const bool is_coalesced = block == Block::coalesced || block == Block::coalesced_backwards;
  if (block == Block::coalesced_backwards && spec.is_tiled != 0)
    return "tiles that ran before the block";
  if (micro.is_broken != 0 && block == Block::none) return "no block that could throw";
  if (micro.idle_forward >= 3 && (!can_transform(spec) || micro.overflow != 0))
    return "a transform of what has none";
  if (is_coalesced && (spec.stage == 0 || spec.is_unmanaged != 0)) return "nothing to coalesce";
  const bool holds_backwards = block == Block::no_sync || block == Block::no_sync_backwards;
  if (holds_backwards && (spec.stage > 1 || (spec.is_unmanaged == 0 && is_boundary)))
    return "no_sync where gradients are reduced";
  if (block == Block::no_sync_first &&
      (spec.stage > 1 || micro.repeats == 0 ||
       static_cast<Interrupt>(micro.interrupt) == Interrupt::step ||
       micro.clears + micro.asks + micro.aborts_inside + micro.detour_at != 0))
    return "no_sync around the first of two rounds";
  if (micro.clears == 2 && block != Block::coalesced && block != Block::no_sync)
    return "no block to clear inside of";
  const bool is_by_hand = spec.is_manual + micro.by_hand != 0;
  if (micro.clears >= 3 && (!is_by_hand || spec.engines > 1 || spec.is_tiled != 0 ||
                            has_abort(micro) || micro.asks + micro.misuse != 0))
    return "nothing to clear behind a scaled loss";
  if (std::string problem = backward_between_problem(spec, micro); !problem.empty()) return problem;
  if (micro.clears == 4 && (spec.stage == 3 || spec.experts != 0 || has_checkpoints(spec)))
    return "a forward between a forward and its backward";
  if (std::string problem = use_problem(spec, micro); !problem.empty()) return problem;
  return visit_problem(spec, micro);
}

// The loss of layer 0 alone. A hook of the outputs is what divides by the accumulation steps.
std::string past_engine_problem(const CaseSpec& spec, const MicroSpec& micro) {
  if (micro.past_engine < 0 || micro.past_engine > 4) return "a number out of range";
  const LayerSpec& first = spec.layers.front();
  const bool is_right = spec.is_manual != 0 && spec.engines == 1 && spec.is_tiled == 0 &&
                        spec.is_unmanaged == 0 && spec.sets_boundary == 0 &&
                        spec.skips_frames == 0 && spec.granularity == 0 && first.is_frozen == 0 &&
                        first.outputs > 0;
  return micro.past_engine == 0 || is_right ? "" : "a backward past the engine";
}

// What the user changes has to last until a step, and to be the same whichever rank comes first.
std::string change_problem(const CaseSpec& spec) {
  bool changes = false;
  bool overflows = false;
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    const auto gathers = static_cast<Gathers>(spec.micros[i].gathers);
    const bool is_change = gathers == Gathers::first_changes || gathers == Gathers::last_changes ||
                           gathers == Gathers::changes_and_runs;
    changes = changes || is_change;
    overflows = overflows || spec.micros[i].overflow != 0;
    if (is_change && i % static_cast<std::size_t>(spec.accumulation) != 0)
      return "a change of weights inside a window";
    if (gathers == Gathers::discards && spec.stage != 3) return "a change that stays";
    const bool is_checked = spec.checks != 0 && spec.stage == 3;
    if (gathers == Gathers::holds_none &&
        (!is_checked || i % static_cast<std::size_t>(spec.accumulation) != 0))
      return "no numbers that nobody looks for";
    if (gathers == Gathers::unannounced && (spec.checks == 0 || spec.stage != 3))
      return "a change that nobody looks for";
    const bool is_of_frames = spec.micros[i].abandons != 0 || spec.micros[i].guards != 0;
    if (is_of_frames && spec.skips_frames == 0) return "no frames that were skipped";
  }
  return changes && overflows ? "a change of weights that no step ends" : "";
}

}  // namespace zeroproof::train
