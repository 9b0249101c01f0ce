#include "props/train/case_storage.h"

#include <algorithm>

#include "props/train/case_additions.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kStorageStream = 0x73746f72616765ULL;

void offload_params(CaseSpec& spec, Draws& draws) {
  spec.offloads_params = 1;
  if (draws.one_in(2)) spec.is_offloaded = 1;
}

void narrow_masters(CaseSpec& spec, Draws& draws) {
  spec.is_sgd = 0;
  spec.precision = static_cast<int>(Precision::bf16);
  spec.masters = draws.between(1, 2);
  spec.is_offloaded = static_cast<Masters>(spec.masters) == Masters::narrow ? 1 : draws.flag(2);
}

void create_graphs(CaseSpec& spec, Draws& draws) {
  spec.is_manual = spec.is_tiled = spec.tile_wrap = 0;
  for (MicroSpec& micro : spec.micros) micro.creates = draws.flag(2);
}

void look_from_hooks(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(2)) continue;
    micro.interrupt = static_cast<int>(Interrupt::looks);
    micro.interrupt_at = some_call(spec, draws);
  }
}

bool scales_by_hand(const CaseSpec& spec) {
  return static_cast<Precision>(spec.precision) == Precision::fp16 && spec.is_manual != 0;
}

// A window has a backward that comes to nothing, at the loss itself.
void fail_on_losses(CaseSpec& spec, Draws& draws) {
  for (MicroSpec& micro : spec.micros) {
    if (draws.one_in(2)) continue;
    micro.aborts = 0;
    micro.aborts_on_loss = scales_by_hand(spec) ? draws.between(1, 2) : 1;
    micro.is_uncleared = draws.flag(2);
  }
}

void hold_read(CaseSpec& spec, Draws& draws) {
  if (spec.reads == 0) spec.reads = some_layer(spec, draws);
  spec.reads_late = 0;
  spec.holds = 1;
}

void narrow_wire(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::float32);
  spec.is_wire_narrow = draws.between(1, 2);
}

// Some parameters stay, and there is room for just the others.
void fill_prefetch(CaseSpec& spec, Draws& draws) {
  spec.persistence = draws.between(1, 6);
  spec.prefetch = std::max(travelling_elements(spec), 1);
}

// Two backwards over one forward of stage 3, and nothing else that gathers.
void retain_graphs(CaseSpec& spec, Draws& draws) {
  spec.stage = 3;
  spec.ranks = std::max(spec.ranks, 2);
  spec.heads = 2;
  spec.is_tiled = spec.tile_wrap = spec.skips_frames = 0;
  spec.reuse = spec.prefetch = spec.reads = spec.reads_late = spec.holds = spec.registers = 0;
  if (spec.calls.size() < 2 || draws.one_in(2)) spec.calls.push_back(spec.calls.front());
  for (CallSpec& call : spec.calls) call.wrap = call.is_joined = 0;
  for (MicroSpec& micro : spec.micros)
    micro = {.repeats = micro.repeats, .peeks = micro.peeks, .keeps = micro.keeps};
  if (!draws.one_in(3)) return;
  // Room for all of it, and not for what earlier graphs have had.
  spec.live = 2 * std::max(elements_of_layers(spec), 1);
  spec.accumulation = 4;
  spec.micros.resize(8, spec.micros.back());
}

// The scale begins where float16 ends, and falls with each overflow.
void scale_autocast(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::autocast);
  spec.has_grad_scaler = 1;
  for (MicroSpec& micro : spec.micros) {
    micro.misuse = micro.past_engine = micro.has_bypass = micro.autocasts = micro.gathers = 0;
    if (draws.one_in(3)) micro.overflow = some_call(spec, draws);
  }
}

// What a load brings back of the loss scale is not what the window behind it has.
void overflow_when_lost(CaseSpec& spec, Draws& draws) {
  spec.precision = static_cast<int>(Precision::fp16);
  spec.is_dynamic = 1;
  spec.scaling = draws.below(4);
  for (MicroSpec& micro : spec.micros) micro.overflow = 0;
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    MicroSpec& micro = spec.micros[i];
    if (!is_first(spec, i) || draws.one_in(3)) continue;
    load_away(micro, draws);
    micro.lost_overflow = some_call(spec, draws);
  }
}

// The loss scale has an end, so that nothing else overflows; and where it may.
bool may_overflow_when_lost(const CaseSpec& spec, std::size_t micro) {
  const auto overflows = [](const MicroSpec& it) { return it.overflow != 0; };
  if (static_cast<Precision>(spec.precision) != Precision::fp16 || spec.is_dynamic == 0 ||
      !loads_away(static_cast<Restores>(spec.micros[micro].restores)) ||
      std::ranges::any_of(spec.micros, overflows))
    return false;
  CaseSpec other = spec;
  for (MicroSpec& it : other.micros) it.lost_overflow = 0;
  other.micros[micro].overflow = spec.micros[micro].lost_overflow;
  return why_invalid(other).empty();
}

bool stays(const CaseSpec& spec, int elements) {
  return spec.persistence_all >= CaseSpec::kManyElements && elements <= spec.persistence;
}

int travelling_elements(const CaseSpec& spec, const LayerSpec& layer) {
  const int weight = layer.outputs * layer.inputs;
  const int bias = layer.outputs * layer.has_bias;
  return (stays(spec, weight) ? 0 : weight) + (stays(spec, bias) ? 0 : bias);
}

std::string loss_problem(const CaseSpec& spec, const MicroSpec& micro) {
  if (micro.aborts_on_loss < 0 || micro.aborts_on_loss > 2) return "a number out of range";
  if (micro.aborts_on_loss == 0) return {};
  if (micro.aborts != 0 || spec.is_tiled != 0 || spec.engines > 1 || micro.wrapped != 0)
    return "a loss that cannot fail alone";
  return micro.aborts_on_loss == 1 || (scales_by_hand(spec) && spec.skips_frames == 0)
             ? ""
             : "a loss that needs no scale";
}

}  // namespace

Additions storage_additions() {
  static constexpr Addition kStorage[] = {
      {2, offload_params},     {2, narrow_masters}, {3, create_graphs},  {3, look_from_hooks},
      {3, overflow_when_lost}, {3, scale_autocast}, {3, fail_on_losses}, {3, hold_read},
      {3, narrow_wire},        {3, fill_prefetch},  {4, retain_graphs}};
  return {kStorageStream, 4, kStorage};
}

int travelling_elements(const CaseSpec& spec) {
  int elements = spec.experts != 0 && !stays(spec, 4) ? 8 : 0;
  if (spec.owns != 0 && !stays(spec, CaseSpec::kOwnedElements))
    elements += CaseSpec::kOwnedElements;
  for (const LayerSpec& layer : spec.layers) elements += travelling_elements(spec, layer);
  return elements;
}

std::string storage_problem(const CaseSpec& spec) {
  if (!is_flag(spec.offloads_params) || spec.masters < 0 ||
      spec.masters > static_cast<int>(Masters::narrow_with_states))
    return "a number out of range";
  const auto masters = static_cast<Masters>(spec.masters);
  const auto precision = static_cast<Precision>(spec.precision);
  // In float16 the eps of Adam is nothing, and what it divides by as well.
  if (masters != Masters::wide && precision != Precision::bf16)
    return "masters of the dtype that they have, or cannot have";
  // Offloaded, they are rounded to their masters before their norm is taken.
  if (masters != Masters::wide && spec.accumulates_float32 != 0)
    return "sums wider than their masters";
  if (!is_flag(spec.holds) || spec.is_wire_narrow < 0 ||
      spec.is_wire_narrow > static_cast<int>(NarrowWire::float16))
    return "a number out of range";
  if (spec.holds != 0 && (spec.reads == 0 || spec.reads_late + spec.skips_frames != 0))
    return "nothing to hold";
  if (spec.is_wire_narrow != 0 && (precision != Precision::float32 || spec.is_wide != 0))
    return "a wire that is no narrower";
  if (!is_flag(spec.has_grad_scaler)) return "a number out of range";
  if (spec.has_grad_scaler != 0 &&
      (precision != Precision::autocast || spec.engines > 1 || spec.is_tiled != 0))
    return "a GradScaler of what it does not scale";
  for (std::size_t i = 0; i < spec.micros.size(); ++i) {
    const MicroSpec& micro = spec.micros[i];
    if (spec.has_grad_scaler != 0 && micro.misuse + micro.past_engine + micro.has_bypass != 0)
      return "a GradScaler past its engine";
    // Two gradients at once need more bits than float16 has.
    if (spec.has_grad_scaler != 0 && static_cast<Interrupt>(micro.interrupt) == Interrupt::own)
      return "a GradScaler of a backward inside another";
    if (!is_flag(micro.creates)) return "a number out of range";
    if (std::string problem = loss_problem(spec, micro); !problem.empty()) return problem;
    if (micro.lost_overflow != 0 && !may_overflow_when_lost(spec, i))
      return "an overflow that no load ends";
    const bool is_engines = spec.is_manual == 0 && spec.is_tiled == 0;
    if (micro.creates != 0 && !is_engines) return "a graph that nobody is asked for";
  }
  return {};
}

int elements_of_layers(const CaseSpec& spec) {
  int elements = spec.owns != 0 ? CaseSpec::kOwnedElements : 0;
  for (const LayerSpec& layer : spec.layers) elements += layer.elements();
  return elements;
}

std::int64_t offloaded_bytes(const CaseSpec& spec) {
  std::int64_t trained = spec.owns != 0 ? CaseSpec::kOwnedElements : 0;
  for (const LayerSpec& layer : spec.layers) {
    const int weight =
        layer.is_weight_frozen != 0 ? 0 : layer.outputs * layer.inputs * (1 + layer.has_twin);
    if (layer.is_frozen == 0) trained += weight + layer.outputs * layer.has_bias;
  }
  const auto precision = static_cast<Precision>(spec.precision);
  const bool is_half = precision == Precision::bf16 || precision == Precision::fp16;
  const int master = static_cast<Masters>(spec.masters) == Masters::wide ? 4 : 2;
  const int moments = spec.is_sgd == 0 ? 2 : spec.rule != 0 ? 1 : 0;
  const int window = is_half && spec.accumulates_float32 == 0 ? 2 : 4;
  return trained / spec.ranks * spec.engines * (master * (1 + moments) + window);
}

void set_storage(const CaseSpec& spec, ZeroConfig& config) {
  if (spec.offloads_params != 0) config.offload_param = OffloadDevice::cpu;
  const auto masters = static_cast<Masters>(spec.masters);
  config.bf16.master_weights_and_grads = masters != Masters::wide;
  config.bf16.optimizer_states = masters == Masters::narrow_with_states;
  if (spec.is_wire_narrow != 0)
    config.communication_data_type =
        static_cast<NarrowWire>(spec.is_wire_narrow) == NarrowWire::float16 ? DType::float16
                                                                            : DType::bfloat16;
  if (spec.has_grad_scaler != 0) config.torch_autocast.dtype = DType::float16;
}

}  // namespace zeroproof::train
