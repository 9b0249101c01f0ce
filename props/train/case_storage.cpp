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

}  // namespace

CaseSpec with_storage(const CaseSpec& spec, std::uint64_t seed) {
  constexpr Addition kStorage[] = {
      {2, offload_params}, {2, narrow_masters}, {3, create_graphs}, {3, look_from_hooks}};
  Draws draws(seed ^ kStorageStream);
  return draws.one_in(4) ? with_each(spec, kStorage, draws) : spec;
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
  for (const MicroSpec& micro : spec.micros) {
    if (!is_flag(micro.creates)) return "a number out of range";
    const bool is_engines = spec.is_manual == 0 && spec.is_tiled == 0;
    if (micro.creates != 0 && !is_engines) return "a graph that nobody is asked for";
  }
  return {};
}

void set_storage(const CaseSpec& spec, ZeroConfig& config) {
  if (spec.offloads_params != 0) config.offload_param = OffloadDevice::cpu;
  const auto masters = static_cast<Masters>(spec.masters);
  config.bf16.master_weights_and_grads = masters != Masters::wide;
  config.bf16.optimizer_states = masters == Masters::narrow_with_states;
}

}  // namespace zeroproof::train
