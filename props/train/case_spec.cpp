#include "props/train/case_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "props/train/case_asides.h"
#include "props/train/case_detours.h"
#include "props/train/case_ends.h"
#include "props/train/case_fields.h"
#include "props/train/case_inputs.h"
#include "props/train/case_manners.h"
#include "props/train/case_memory.h"
#include "props/train/case_modes.h"
#include "props/train/case_orders.h"
#include "props/train/case_saves.h"
#include "props/train/case_storage.h"
#include "props/train/case_turns.h"
#include "props/train/case_worlds.h"

namespace zeroproof::train {
namespace {

using Json = nlohmann::ordered_json;

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

template <class Spec>
Json fields_of(Spec spec) {
  Json json = Json::object();
  visit_fields(spec, [&](const char* name, int& value, int simple) {
    if (value != simple) json[name] = value;
  });
  return json;
}

template <class Spec>
Json list_of(const std::vector<Spec>& specs) {
  Json list = Json::array();
  for (const Spec& spec : specs) list.push_back(fields_of(spec));
  return list;
}

template <class Spec>
Result<void> read_fields(const Json& json, Spec& spec, const std::string& where) {
  if (!json.is_object()) return fail(ErrorCode::usage, where + ": not an object");
  std::size_t known = 0;
  std::string problem;
  visit_fields(spec, [&](const char* name, int& value, int) {
    const auto at = json.find(name);
    if (at == json.end()) return;
    ++known;
    if (!at->is_number_integer()) {
      problem = fmt::format("{}/{}: not an integer", where, name);
      return;
    }
    value = at->template get<int>();
  });
  if (!problem.empty()) return fail(ErrorCode::usage, problem);
  for (const char* list : {"layers", "calls", "micros"}) known += json.count(list);
  if (known != json.size()) return fail(ErrorCode::usage, where + ": a key that no case has");
  return {};
}

template <class Spec>
Result<void> read_list(const Json& json, const char* name, std::vector<Spec>& specs,
                       const std::string& where) {
  const auto at = json.find(name);
  if (at == json.end() || !at->is_array())
    return fail(ErrorCode::usage, fmt::format("{}: no list {}", where, name));
  for (const Json& one : *at)
    if (auto read = read_fields(one, specs.emplace_back(),
                                fmt::format("{}/{}/{}", where, name, specs.size() - 1));
        !read)
      return read;
  return {};
}

std::string shape_problem(const CaseSpec& spec) {
  if (spec.ranks < 1 || spec.ranks > 4 || spec.stage < 0 || spec.stage > 3 || spec.precision < 0 ||
      spec.precision > 3 || spec.engines < 1 || spec.engines > 2 || spec.heads < 1 ||
      spec.heads > 2 || spec.container < 0 || spec.container > 2)
    return "a number out of range";
  if (spec.layers.empty() || spec.calls.empty() || spec.micros.empty()) return "an empty list";
  if (spec.accumulation < 1 || spec.accumulation > 4 || spec.accumulation == 3 ||
      static_cast<int>(spec.micros.size()) % spec.accumulation != 0)
    return "micro-batches that fill no window";
  const auto calls = static_cast<int>(spec.calls.size());
  for (const CallSpec& call : spec.calls)
    if (call.layer < 0 || call.layer >= static_cast<int>(spec.layers.size()) || call.wrap < 0 ||
        call.wrap > 2)
      return "a call of no layer";
  for (const LayerSpec& layer : spec.layers)
    if (layer.inputs < 1 || layer.inputs > 8 || layer.outputs < 0 || layer.outputs > 8 ||
        !is_flag(layer.has_bias) || layer.is_frozen < 0 || layer.is_frozen > 2 ||
        !is_flag(layer.is_linked))
      return "a layer out of range";
  for (const MicroSpec& micro : spec.micros)
    if (micro.aborts > calls || micro.skips > calls || micro.overflow > calls ||
        micro.overflow_rank >= spec.ranks)
      return "a micro-batch that names no call";
  const auto layers = static_cast<int>(spec.layers.size());
  for (const MicroSpec& micro : spec.micros)
    if (micro.throws < 0 || micro.throws > layers || !is_flag(micro.is_broken) ||
        micro.restores < 0 || micro.restores > static_cast<int>(Restores::unreadable) ||
        micro.gathers < 0 || micro.gathers > static_cast<int>(Gathers::looks_rounded) ||
        micro.abandons < 0 || micro.abandons > 2 || !is_flag(micro.guards) || micro.clears < 0 ||
        micro.clears > 3 || !is_flag(micro.peeks) || micro.outstanding < 0 ||
        micro.outstanding > static_cast<int>(Outstanding::ahead))
      return "a micro-batch out of range";
  return {};
}

bool is_trained(const CaseSpec& spec, const CallSpec& call) {
  const LayerSpec& layer = spec.layers[static_cast<std::size_t>(call.layer)];
  return layer.is_frozen == 0 && layer.outputs > 0;
}

std::string model_problem(const CaseSpec& spec) {
  if (std::ranges::none_of(spec.calls, [&](const CallSpec& it) { return is_trained(spec, it); }))
    return "nothing is trained";
  if (spec.heads == 2 && (spec.calls.size() < 2 || spec.is_tiled != 0 || spec.engines > 1))
    return "two heads need two calls, no tiles and one engine";
  const bool has_last_plain = spec.calls.back().wrap == 0;
  if (spec.is_tiled != 0 && !has_last_plain) return "tiles inside a checkpoint";
  if (spec.tile_wrap < 0 || spec.tile_wrap > 2) return "a number out of range";
  if (spec.tile_wrap != 0 && spec.is_tiled == 0) return "a checkpoint of tiles, and no tiles";
  if (spec.heads == 2 && (!has_last_plain || spec.calls[spec.calls.size() - 2].wrap != 0))
    return "a head inside a checkpoint";
  return {};
}

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
  // Rule A6 of autograd_semantics: PyTorch itself cannot take a gradient for a leaf whose data has
  // gone, so that a module of the weight has to be under way when it arrives.
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
  const auto block = static_cast<Block>(micro.block);
  if (micro.block < 0 || micro.block > 3 || micro.idle_forward < 0 || micro.idle_forward > 4)
    return "a number out of range";
  const bool is_coalesced = block == Block::coalesced || block == Block::coalesced_backwards;
  if (block == Block::coalesced_backwards && spec.is_tiled != 0)
    return "tiles that ran before the block";
  if (micro.is_broken != 0 && block == Block::none) return "no block that could throw";
  if (micro.idle_forward >= 3 && !can_transform(spec)) return "a transform of what has none";
  if (is_coalesced && (spec.stage == 0 || spec.is_unmanaged != 0)) return "nothing to coalesce";
  if (block == Block::no_sync && (spec.stage > 1 || (spec.is_unmanaged == 0 && is_boundary)))
    return "no_sync where gradients are reduced";
  if (micro.clears == 2 && block != Block::coalesced && block != Block::no_sync)
    return "no block to clear inside of";
  const bool is_by_hand = spec.is_manual + micro.by_hand != 0;
  if (micro.clears == 3 && (!is_by_hand || spec.engines > 1 || spec.is_tiled != 0 ||
                            has_abort(micro) || micro.asks + micro.misuse != 0))
    return "nothing to clear behind a scaled loss";
  const auto precision = static_cast<Precision>(spec.precision);
  const bool checks = precision == Precision::fp16 || spec.has_grad_scaler != 0 ||
                      (precision == Precision::bf16 && (spec.stage == 1 || spec.stage == 2));
  if (micro.overflow != 0 && !checks) return "an overflow that nobody looks for";
  if (std::string problem = use_problem(spec, micro); !problem.empty()) return problem;
  return visit_problem(spec, micro);
}

// Combinations that are refused as documented (E1, E2, E3), which is another test's matter.
std::string refusal_problem(const CaseSpec& spec) {
  const bool is_fp16 = static_cast<Precision>(spec.precision) == Precision::fp16;
  const bool is_manual = spec.is_manual != 0 || spec.engines > 1;
  if (is_manual && spec.stage == 0) return "a manual backward in stage 0";
  if (is_fp16 && spec.engines > 1 && spec.is_manual + spec.takes_turns == 0)
    return "two engines that both scale";
  if (spec.is_offloaded != 0 && spec.stage == 0) return "offload in stage 0";
  for (const MicroSpec& micro : spec.micros) {
    if (micro.outstanding != 0 && is_fp16 && spec.engines > 1)
      return "two backwards that were scaled before the first";
    if (micro.is_undivided != 0 && spec.engines > 1) return "a manual backward has no argument";
    if (micro.has_bypass != 0 && (spec.engines > 1 || spec.is_tiled != 0))
      return "a bypass of two engines";
    if (micro.is_undivided != 0 && spec.is_tiled != 0) return "tiles know no argument of backward";
    // A tile cannot tell that no backward will come.
    if ((micro.idle_forward != 0 || micro.throws != 0) && spec.is_tiled != 0)
      return "tiles for nothing";
  }
  return {};
}

std::string layer_problem(const LayerSpec& layer) {
  if (!is_flag(layer.is_weight_frozen) || !is_flag(layer.is_raw) || !is_flag(layer.is_closed))
    return "a layer out of range";
  if (layer.is_raw != 0 && layer.has_bias != 0) return "a raw layer has a weight alone";
  if (layer.is_weight_frozen != 0 && (layer.has_bias == 0 || layer.is_frozen != 0))
    return "nothing of a layer is trained";
  return {};
}

// The program does what is refused, and the engine has to be one that refuses it.
std::string misuse_problem(const CaseSpec& spec, const MicroSpec& micro) {
  const bool has_no_sync = spec.stage < 2 && spec.is_unmanaged == 0;
  const bool has_coalesce = spec.stage > 0 && spec.is_unmanaged == 0;
  const bool is_scaled = static_cast<Precision>(spec.precision) == Precision::fp16;
  switch (static_cast<Misuse>(micro.misuse)) {
    case Misuse::step_in_block:
      return has_no_sync || has_coalesce ? "" : "a step in a block that there is none of";
    case Misuse::set_boundary:
      return spec.is_unmanaged != 0 ? "" : "a boundary that may be set";
    case Misuse::unscaled_manual:
    case Misuse::unscaled_again:
      return is_scaled && spec.stage > 0 && spec.counts_nothing == 0 && spec.engines == 1 &&
                     spec.is_tiled == 0 && spec.skips_frames == 0
                 ? ""
                 : "a loss that needs no scale";
    case Misuse::late_loss_scale:
      return is_scaled ? "" : "a loss that needs no scale";
    case Misuse::manual_backward:
      return manual_backward_problem(spec);
    case Misuse::unfed_leaf:
    case Misuse::moved_weight:
      return stage3_misuse_problem(spec, static_cast<Misuse>(micro.misuse));
    default:
      return micro.misuse >= 0 && micro.misuse <= static_cast<int>(Misuse::unscaled_again)
                 ? ""
                 : "a number out of range";
  }
}

// The loss of layer 0 alone. A hook of the outputs is what divides by the accumulation steps, and
// without hooks of gradients nobody sees it.
std::string past_engine_problem(const CaseSpec& spec, const MicroSpec& micro) {
  if (micro.past_engine < 0 || micro.past_engine > 3) return "a number out of range";
  const LayerSpec& first = spec.layers.front();
  const bool is_right = spec.is_manual != 0 && spec.engines == 1 && spec.is_tiled == 0 &&
                        spec.is_unmanaged == 0 && spec.sets_boundary == 0 &&
                        spec.skips_frames == 0 && spec.granularity == 0 &&
                        (spec.stage != 1 || spec.is_scattered == 0 || spec.has_overlap != 0) &&
                        first.is_frozen == 0 && first.outputs > 0;
  return micro.past_engine == 0 || is_right ? "" : "a backward past the engine";
}

// What call k - 1 returns needs a gradient, which a reentrant checkpoint alone does not see to.
bool has_backward(const CaseSpec& spec, const MicroSpec& micro, int k) {
  for (int i = 0; i < k; ++i) {
    const CallSpec& call = spec.calls[static_cast<std::size_t>(i)];
    if (micro.skips != i + 1 && is_trained(spec, call) && call.wrap != 1) return true;
  }
  return spec.input_grad != 0;
}

// A hook of the user that calls engines; what a tile or a skipped frame does there is its own.
std::string interrupt_problem(const CaseSpec& spec, const MicroSpec& micro) {
  const auto interrupt = static_cast<Interrupt>(micro.interrupt);
  if (micro.interrupt < 0 || interrupt > Interrupt::changes || micro.interrupt_at < 0 ||
      micro.interrupt_at > static_cast<int>(spec.calls.size()))
    return "a micro-batch that names no call";
  if ((interrupt == Interrupt::none) != (micro.interrupt_at == 0))
    return "a hook that does nothing";
  if (interrupt == Interrupt::none) return {};
  // Below stage 2 a window's last micro-batch reduces what the others left, and has to come.
  if (micro.skips == micro.interrupt_at || !has_backward(spec, micro, micro.interrupt_at))
    return "a hook of a call that does not run";
  if (interrupt == Interrupt::aside) return {};
  if (spec.is_tiled != 0 || spec.skips_frames != 0) return "a hook of what has none";
  if ((interrupt == Interrupt::forward || interrupt == Interrupt::own) && spec.stage == 3)
    return "a forward of partitioned parameters in their backward";
  // Below stage 2 its local sums wait for a backward of its own.
  const bool is_of_second = spec.engines == 2 && interrupt == Interrupt::fails &&
                            (spec.stage >= 2 || spec.accumulation == 1);
  if (interrupt != Interrupt::other && interrupt != Interrupt::joined && !is_of_second)
    return spec.engines == 1 ? "" : "whose turn it is";
  return spec.engines == 2 && spec.is_manual == 0 && spec.is_unmanaged == 0
             ? ""
             : "no second engine with a backward of its own";
}

// Every parameter that is trained gets a gradient from a forward that skips nothing.
std::string need_problem(const CaseSpec& spec) {
  if (!is_flag(spec.needs_all) || !is_flag(spec.is_lifted)) return "a number out of range";
  if (spec.is_lifted != 0 &&
      (static_cast<Precision>(spec.precision) != Precision::fp16 || spec.engines > 1))
    return "a product that has room";
  if (spec.needs_all == 0) return {};
  const auto overflows = [](const MicroSpec& micro) { return micro.overflow != 0; };
  if (spec.is_offloaded == 0 || spec.stage < 1 || spec.stage > 2 || spec.engines > 1 ||
      spec.experts != 0 || std::ranges::any_of(spec.micros, overflows))
    return "a gradient that nobody misses";
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const auto is_used = [&](const CallSpec& call) {
      return call.layer == static_cast<int>(i) && (call.wrap != 1 || spec.input_grad != 0);
    };
    if (spec.layers[i].is_frozen == 0 && std::ranges::none_of(spec.calls, is_used))
      return "a gradient that never comes";
  }
  return {};
}

std::string update_problem(const CaseSpec& spec) {
  if (spec.groups < 1 || spec.groups > 3 || spec.rule < 0 || spec.rule > 2 || spec.scaling < 0 ||
      spec.scaling > 3 || spec.sets_boundary < 0 || spec.sets_boundary > 3 ||
      spec.gather_bucket < 1 || spec.owns_scale < 0 || spec.owns_scale > 2 ||
      !is_flag(spec.has_ranks_apart) || !is_flag(spec.is_unchecked))
    return "a number out of range";
  const auto precision = static_cast<Precision>(spec.precision);
  if (spec.sets_boundary != 0 && spec.is_unmanaged != 0) return "step() is the boundary";
  if (spec.sets_boundary == 3 && spec.accumulation != 1) return "a step of which each is one";
  if (spec.owns_scale != 0 && precision != Precision::fp16) return "a scale that nothing needs";
  const auto overflows = [](const MicroSpec& micro) { return micro.overflow != 0; };
  if (spec.is_unchecked != 0 &&
      (precision != Precision::bf16 || std::ranges::any_of(spec.micros, overflows)))
    return "an overflow that nobody looks for";
  return {};
}

// Its forward that is to throw comes to the layer that does.
bool does_throw(const CaseSpec& spec, const MicroSpec& micro) {
  for (std::size_t i = 0; i < spec.calls.size(); ++i)
    if (spec.calls[i].layer + 1 == micro.throws && micro.skips != static_cast<int>(i) + 1)
      return true;
  return false;
}

// Section 5 of zero_semantics: every graph that claims something has one backward.
bool can_skip_frames(const CaseSpec& spec) {
  const auto is_plain = [&](const MicroSpec& micro) {
    return micro.idle_forward <= 1 && !has_abort(micro) && micro.has_bypass == 0 &&
           micro.registers == 0 && (micro.throws == 0 || does_throw(spec, micro));
  };
  return spec.skips_frames == 1 && spec.stage == 3 && spec.engines == 1 && spec.heads == 1 &&
         spec.is_tiled == 0 && spec.experts == 0 && spec.container == 0 && !has_checkpoints(spec) &&
         std::ranges::all_of(spec.micros, is_plain);
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
    if (gathers == Gathers::unannounced && (spec.checks == 0 || spec.stage != 3))
      return "a change that nobody looks for";
    const bool is_of_frames = spec.micros[i].abandons != 0 || spec.micros[i].guards != 0;
    if (is_of_frames && spec.skips_frames == 0) return "no frames that were skipped";
  }
  return changes && overflows ? "a change of weights that no step ends" : "";
}

// Layers that are leaf modules.
std::string leaf_problem(const CaseSpec& spec) {
  const auto is_linked = [](const LayerSpec& layer) {
    return layer.is_linked != 0 || layer.is_raw != 0;
  };
  const auto overflows = [](const MicroSpec& micro) { return micro.overflow != 0; };
  if (spec.input_grad == 0 || !std::ranges::all_of(spec.layers, is_linked) ||
      std::ranges::any_of(spec.micros, overflows))
    return "leaf modules need inputs that need a gradient";
  if (spec.stage != 3 || spec.engines > 1 || spec.is_tiled != 0 || spec.skips_frames != 0)
    return "leaf modules are of one engine of stage 3";
  if (spec.reads == 0) return {};
  // Their gradients are added where the leaf's own backward ends.
  const LayerSpec& read = spec.layers[static_cast<std::size_t>(spec.reads) - 1];
  return read.is_raw + read.is_frozen + read.is_weight_frozen == 0 ? "a leaf's weight is read" : "";
}

// A weight that leaves its layer, once in every forward.
std::string return_problem(const CaseSpec& spec) {
  if (spec.returns == 0) return {};
  if (spec.returns < 0 || spec.returns > static_cast<int>(spec.layers.size()))
    return "a weight of no layer";
  const LayerSpec& layer = spec.layers[static_cast<std::size_t>(spec.returns) - 1];
  const auto is_called = [&](const CallSpec& call) { return call.layer == spec.returns - 1; };
  const auto is_wrapped = [&](const CallSpec& call) { return is_called(call) && call.wrap != 0; };
  const auto leaves = [](const MicroSpec& micro) {
    return micro.has_bypass != 0 || micro.overflow != 0 || micro.idle_forward >= 3;
  };
  if (layer.is_raw == 0 || layer.outputs == 0 ||
      std::ranges::count_if(spec.calls, is_called) != 1 ||
      std::ranges::any_of(spec.calls, is_wrapped) || std::ranges::any_of(spec.micros, leaves))
    return "a weight is returned by a raw layer of one plain call";
  const bool is_autocast = static_cast<Precision>(spec.precision) == Precision::autocast;
  if (spec.engines > 1 || spec.heads > 1 || spec.is_tiled != 0 || spec.reads != 0 || is_autocast ||
      spec.granularity != 0 || spec.skips_frames != 0)
    return "a weight is returned with one engine and head, no tiles and no autocast";
  return {};
}

std::string option_problem(const CaseSpec& spec) {
  if (!is_flag(spec.checks) || spec.persistence_all < 0 || spec.live < 0 || spec.granularity < 0 ||
      spec.leaf_by < 0 || spec.leaf_by > static_cast<int>(LeafBy::class_name))
    return "a number out of range";
  if (spec.leaf_by != 0 && spec.experts == 0) return "no module to name";
  if (!is_flag(spec.registers) || !is_flag(spec.is_unsafe)) return "a number out of range";
  if (spec.registers != 0 && (spec.reads == 0 || spec.skips_frames != 0))
    return "nothing to register";
  if (std::string problem = return_problem(spec); !problem.empty()) return problem;
  return spec.granularity != 0 ? leaf_problem(spec) : "";
}

// Two layers of which one runs, and a weight that is read past its layer.
std::string structure_problem(const CaseSpec& spec) {
  const bool is_simple = spec.engines == 1 && spec.is_tiled == 0;
  if (spec.skips_frames != 0 && !can_skip_frames(spec)) return "frames that cannot be skipped";
  const auto transforms = [](const MicroSpec& micro) { return micro.idle_forward >= 3; };
  const bool has_transform = std::ranges::any_of(spec.micros, transforms);
  if (!is_flag(spec.experts)) return "a number out of range";
  if (spec.experts != 0 && (!is_simple || has_transform || spec.input_grad == 0))
    return "experts need one engine, no tiles, and an input that needs a gradient";
  const auto rehooks = [](const MicroSpec& micro) { return micro.rehooks != 0; };
  if (std::ranges::any_of(spec.micros, rehooks) && (spec.experts == 0 || spec.stage != 3))
    return "hooks are made anew where a leaf module is named";
  if (spec.reads < 0 || spec.reads > static_cast<int>(spec.layers.size()))
    return "a read of no layer";
  const bool is_autocast = static_cast<Precision>(spec.precision) == Precision::autocast;
  const auto gathers = [](const MicroSpec& micro) {
    return micro.gathers != 0 && static_cast<Gathers>(micro.gathers) != Gathers::looks_rounded;
  };
  if (is_autocast && std::ranges::any_of(spec.micros, gathers))
    return "autocast gathers weights rounded";
  if (!is_flag(spec.reads_late)) return "a number out of range";
  if (spec.reads_late != 0 &&
      (spec.reads == 0 || spec.granularity != 0 || spec.skips_frames != 0 || spec.heads == 2))
    return "nothing to read late";
  if (spec.reads == 0) return {};
  if (!is_simple || has_transform || is_autocast)
    return "a weight is read with one engine, no tiles and no autocast";
  const LayerSpec& layer = spec.layers[static_cast<std::size_t>(spec.reads) - 1];
  return layer.outputs > 0 ? "" : "a read of a weight without elements";
}

// What the update does besides; the gradients stay exact.
void set_rule(int rule, OptimizerConfig& optimizer) {
  optimizer.adam.lr = 1e-2;
  optimizer.sgd.lr = 1e-2;
  if (rule == 0) return;
  optimizer.adam.weight_decay = 0.1;
  optimizer.adam.is_decay_decoupled = rule == 1;
  optimizer.sgd.momentum = 0.5;
  optimizer.sgd.weight_decay = rule == 1 ? 0.0 : 0.1;
  optimizer.sgd.is_nesterov = rule == 2;
}

// 1: grows every second step; 2: the first overflow is forgiven; 3: so is every first one behind a
// good step.
void set_scaling(int scaling, Fp16Config& fp16) {
  fp16.initial_scale_power = 3;
  fp16.loss_scale_window = scaling == 1 ? 2 : 1;
  fp16.hysteresis = scaling < 2 ? 1 : 2;
  fp16.consecutive_hysteresis = scaling == 3;
}

void name_leaf_module(const CaseSpec& spec, ZeroConfig& config) {
  const std::string name(CaseSpec::kExperts);
  switch (static_cast<LeafBy>(spec.leaf_by)) {
    case LeafBy::call:
      return;
    case LeafBy::name:
      config.leaf_module.names = {name};
      return;
    case LeafBy::suffix:
      config.leaf_module.name_suffixes = {name.substr(2)};
      return;
    case LeafBy::class_name:
      config.leaf_module.classes = {"zeroproof.Experts"};
  }
}

ZeroConfig config_of(const CaseSpec& spec) {
  const auto precision = static_cast<Precision>(spec.precision);
  ZeroConfig config;
  config.stage = spec.stage;
  const int own_steps[] = {spec.accumulation, 1, 2 * spec.accumulation, 2};
  config.gradient_accumulation_steps = own_steps[std::clamp(spec.sets_boundary, 0, 3)];
  config.managed_gradient_accumulation = spec.is_unmanaged == 0;
  config.reduce_bucket_size = spec.bucket;
  config.contiguous_gradients = spec.is_scattered == 0;
  config.reduce_scatter = spec.reduces_whole == 0;
  config.use_multi_rank_bucket_allreduce = spec.reduces_to_owners == 0;
  config.overlap_comm = spec.has_overlap != 0;
  config.allgather_bucket_size = spec.gather_bucket;
  config.sub_group_size = spec.sub_group;
  config.stage3_param_persistence_threshold = spec.persistence;
  config.stage3_prefetch_bucket_size = spec.prefetch;
  config.stage3_max_reuse_distance = spec.reuse;
  config.stage3_max_live_parameters = spec.live;
  config.stage3_model_persistence_threshold = spec.persistence_all;
  config.stage3_module_granularity_threshold = spec.granularity;
  config.enable_sanity_checks = spec.checks != 0;
  name_leaf_module(spec, config);
  config.memory_efficient_linear = spec.plain_linear == 0;
  config.zero_force_ds_cpu_optimizer = false;
  config.ignore_unused_parameters = spec.needs_all == 0;
  if (spec.is_offloaded != 0) config.offload_optimizer = OffloadDevice::cpu;
  constexpr double kClips[] = {0.0, 1.0, 1e6};
  config.gradient_clipping = kClips[std::clamp(spec.clip, 0, 2)];
  config.fp16.loss_scale = spec.is_dynamic != 0 ? 0.0 : 16.0;
  set_scaling(spec.scaling, config.fp16);
  set_floor(spec, config.fp16);
  config.bf16.check_grad_overflow = spec.is_unchecked == 0;
  if (spec.is_wire_float32 != 0) config.communication_data_type = DType::float32;
  if (spec.accumulates_float32 != 0) config.grad_accum_dtype = DType::float32;
  config.gradient_predivide_factor = spec.predivides != 0 ? 2.0 : 1.0;
  config.prescale_gradients = spec.prescales != 0;
  const bool has_three = spec.ranks == 3 || spec.first_ranks == 3;
  const bool is_sum = spec.is_sum != 0 || (has_three && spec.stage < 3);
  if (is_sum) config.gradient_allreduce_op = GradientAllreduceOp::sum;
  if (spec.is_sgd != 0) config.optimizer.type = OptimizerType::sgd;
  set_rule(spec.rule, config.optimizer);
  config.train_micro_batch_size_per_gpu = 2;
  config.fp16.enabled = precision == Precision::fp16;
  config.bf16.enabled = precision == Precision::bf16;
  set_storage(spec, config);
  config.torch_autocast.enabled = precision == Precision::autocast;
  if (spec.is_unsafe != 0)
    config.torch_autocast.lower_precision_safe_modules = {"torch.nn.LayerNorm"};
  return config;
}

}  // namespace

int CaseSpec::uses() const {
  int most = 1;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    int uses = 0;
    for (const CallSpec& call : calls) uses += call.layer == static_cast<int>(layer) ? 1 : 0;
    most = std::max(most, uses);
  }
  const bool bypasses = std::ranges::any_of(
      micros, [](const MicroSpec& it) { return it.has_bypass + it.past_engine != 0; });
  return (most + (bypasses ? 1 : 0) + (reads != 0 ? 1 : 0) + (returns != 0 ? 1 : 0)) * heads *
         engines;
}

// Of what the user's hooks call in its backwards.
int interrupting_forwards(const CaseSpec& spec, const MicroSpec& micro) {
  const auto interrupt = static_cast<Interrupt>(micro.interrupt);
  if (interrupt != Interrupt::forward && interrupt != Interrupt::other &&
      interrupt != Interrupt::fails && interrupt != Interrupt::own &&
      interrupt != Interrupt::joined)
    return 0;
  const int runs = 1 + (micro.repeats != 0 ? 1 : 0) + (micro.clears == 2 ? 1 : 0);
  return (1 + (micro.outstanding != 0 ? 1 : 0)) * runs * spec.heads;
}

// Of manual backwards that are refused.
int refused_forwards(const MicroSpec& micro) {
  const auto misuse = static_cast<Misuse>(micro.misuse);
  const bool is_refused = misuse == Misuse::unscaled_manual || misuse == Misuse::unscaled_again ||
                          misuse == Misuse::manual_backward || misuse == Misuse::unfed_leaf;
  return (is_refused ? 1 : 0) + (micro.aborts_on_loss == 2 ? 1 : 0);
}

int CaseSpec::forwards() const {
  int most = 1;
  int count = 0;
  for (std::size_t i = 0; i < micros.size(); ++i) {
    if (i % static_cast<std::size_t>(accumulation) == 0) count = 0;
    const MicroSpec& micro = micros[i];
    const int before = count;
    count += (1 + (micro.outstanding != 0 ? 1 : 0)) * (1 + (micro.repeats != 0 ? 1 : 0)) +
             (micro.idle_forward != 0 ? 1 : 0) + (has_abort(micro) ? 1 : 0) +
             (runs_in_context(micro) ? 1 : 0) + (micro.throws != 0 ? 1 : 0) +
             (micro.abandons != 0 ? 1 : 0) + refused_forwards(micro) +
             (micro.past_engine == 3 ? 0 : micro.past_engine) +
             interrupting_forwards(*this, micro) +
             (micro.clears == 1 || micro.clears == 2 ? 1 + (micro.outstanding != 0 ? 1 : 0) : 0);
    if (takes_turns != 0) count += count - before;
    most = std::max(most, count + needs_all + has_floor);
  }
  return most;
}

bool is_shared(const CaseSpec& spec, const CallSpec& call) {
  return std::ranges::count(spec.calls, call.layer, &CallSpec::layer) > 1;
}

bool leaves_out(const CaseSpec& spec) {
  return std::ranges::any_of(spec.layers, [](const LayerSpec& it) { return it.is_frozen == 2; });
}

bool is_left_out(const CaseSpec& spec, std::string_view parameter) {
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    if (spec.layers[i].is_frozen == 2 && parameter.starts_with(fmt::format("l{}.", i))) return true;
  return false;
}

bool has_checkpoints(const CaseSpec& spec) {
  return std::ranges::any_of(spec.calls, [](const CallSpec& call) { return call.wrap != 0; });
}

int CaseSpec::parameters() const {
  int count = 0;
  for (const LayerSpec& layer : layers) count += 1 + layer.has_bias;
  if (experts != 0) count += 2;
  return count * engines;
}

std::string why_invalid(const CaseSpec& spec) {
  if (std::string problem = shape_problem(spec); !problem.empty()) return problem;
  if (std::string problem = model_problem(spec); !problem.empty()) return problem;
  if (std::string problem = refusal_problem(spec); !problem.empty()) return problem;
  for (const LayerSpec& layer : spec.layers)
    if (std::string problem = layer_problem(layer); !problem.empty()) return problem;
  if (std::string problem = structure_problem(spec); !problem.empty()) return problem;
  if (std::string problem = change_problem(spec); !problem.empty()) return problem;
  if (std::string problem = option_problem(spec); !problem.empty()) return problem;
  if (std::string problem = update_problem(spec); !problem.empty()) return problem;
  if (std::string problem = need_problem(spec); !problem.empty()) return problem;
  if (std::string problem = storage_problem(spec); !problem.empty()) return problem;
  if (std::string problem = end_problem(spec); !problem.empty()) return problem;
  if (std::string problem = mode_problem(spec); !problem.empty()) return problem;
  if (std::string problem = save_problem(spec); !problem.empty()) return problem;
  if (std::string problem = input_problem(spec); !problem.empty()) return problem;
  if (std::string problem = turn_problem(spec); !problem.empty()) return problem;
  if (std::string problem = manner_problem(spec); !problem.empty()) return problem;
  if (std::string problem = order_problem(spec); !problem.empty()) return problem;
  if (std::string problem = world_problem(spec); !problem.empty()) return problem;
  if (std::string problem = detour_problem(spec); !problem.empty()) return problem;
  if (std::string problem = shortage_problem(spec); !problem.empty()) return problem;
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    const bool is_first = i % static_cast<std::size_t>(spec.accumulation) == 0;
    const bool is_boundary = (i + 1) % static_cast<std::size_t>(spec.accumulation) == 0;
    if (std::string problem = aside_problem(spec, spec.micros[i]); !problem.empty()) return problem;
    if (loads_away(static_cast<Restores>(spec.micros[i].restores)) && !is_first)
      return "a checkpoint inside a window";
    if (std::string problem = misuse_problem(spec, spec.micros[i]); !problem.empty())
      return problem;
    if (std::string problem = interrupt_problem(spec, spec.micros[i]); !problem.empty())
      return problem;
    if (std::string problem = past_engine_problem(spec, spec.micros[i]); !problem.empty())
      return problem;
    if (std::string problem = micro_problem(spec, spec.micros[i], is_boundary); !problem.empty())
      return problem;
  }
  if (std::string problem = width_problem(spec); !problem.empty()) return problem;
  const int exact = spec.is_wire_narrow != 0 ? static_cast<int>(Precision::bf16) : spec.precision;
  const auto of_sums = static_cast<Precision>(spec.is_wide != 0 ? 0 : exact);
  if (spec.forwards() * std::max(spec.ranks, spec.first_ranks) * spec.uses() >
      significand_bits(of_sums))
    return "more contributions than bits";
  if (const auto valid = validate(config_of(spec)); !valid) return valid.error().text;
  return {};
}

TrainCell cell_of(const CaseSpec& spec) {
  TrainCell cell;
  cell.scenario = "generated";
  cell.stage = spec.stage;
  cell.world_size = spec.ranks;
  cell.precision = static_cast<Precision>(spec.precision);
  cell.backward = spec.is_manual != 0 ? BackwardKind::tensor : BackwardKind::engine;
  cell.data = DataMode::exact;
  cell.steps = spec.windows();
  if (spec.counts_nothing != 0) cell.api = AutogradApi::none;
  cell.sim = SimOrder{.preempts = spec.preempts != 0};
  cell.config = config_of(spec);
  return cell;
}

std::string case_json(const CaseSpec& spec) {
  Json json = fields_of(spec);
  json["layers"] = list_of(spec.layers);
  json["calls"] = list_of(spec.calls);
  json["micros"] = list_of(spec.micros);
  return json.dump();
}

Result<CaseSpec> parse_case(std::string_view text, std::string_view where) {
  const Json json = Json::parse(text, nullptr, false);
  const std::string at(where);
  if (json.is_discarded()) return fail(ErrorCode::usage, at + ": not JSON");
  CaseSpec spec;
  if (auto read = read_fields(json, spec, at); !read) return tl::unexpected(read.error());
  if (auto read = read_list(json, "layers", spec.layers, at); !read)
    return tl::unexpected(read.error());
  if (auto read = read_list(json, "calls", spec.calls, at); !read)
    return tl::unexpected(read.error());
  if (auto read = read_list(json, "micros", spec.micros, at); !read)
    return tl::unexpected(read.error());
  if (const std::string problem = why_invalid(spec); !problem.empty())
    return fail(ErrorCode::usage, at + ": " + problem);
  return spec;
}

}  // namespace zeroproof::train
