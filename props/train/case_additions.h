#pragma once

#include <cstdint>
#include <span>

#include "props/train/case_spec.h"
#include "props/train/draws.h"

namespace zeroproof::train {

// Something more that a case may have, drawn in one of so many.
struct Addition {
  int one_in;
  void (*add)(CaseSpec& spec, Draws& draws);
};

// Those of one subject: in one of so many cases, from a stream of their own.
struct Additions {
  std::uint64_t stream;
  int one_in;
  std::span<const Addition> all;
};

// Each addition that is drawn, one behind the other, as far as the case stays valid with it.
CaseSpec with_drawn(const CaseSpec& spec, const Additions& additions, std::uint64_t seed);
// So many of these, each as likely as any other; fewer where what was tried does not fit.
CaseSpec with_few(const CaseSpec& spec, std::span<const Addition> additions, int count,
                  Draws& draws);

// Numbers from 1 on, as the fields of a case name calls and layers.
int some_call(const CaseSpec& spec, Draws& draws);
int some_layer(const CaseSpec& spec, Draws& draws);

// A layer; and one that becomes a parameter of a class of its own.
LayerSpec& layer_of_some(CaseSpec& spec, Draws& draws);
void make_raw(LayerSpec& layer);

// Plain windows under a loss scale that moves and forgives, and an overflow in one of them.
void move_loss_scale(CaseSpec& spec, Draws& draws, std::size_t windows);
void overflow_in(CaseSpec& spec, Draws& draws, std::size_t window);

// Whether a window begins with this micro-batch.
bool is_first(const CaseSpec& spec, std::size_t micro);
// What this micro-batch, the first of its window, trains is loaded away; it says how, or is told.
void load_away(MicroSpec& micro, Draws& draws);

}  // namespace zeroproof::train
