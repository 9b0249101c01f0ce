#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>

#include "props/train/layer.h"
#include "props/train/program_watch.h"
#include "zeroproof/model/nn/module.h"

namespace zeroproof::train {

// The small models of record_deepspeed.py, and those that the issue adds. All give one scalar loss
// unless their line says otherwise.
enum class ModelKind : std::uint8_t {
  mlp,         // l1(4,6) l2(6,3)
  logits,      // the same without a loss: what the last layer gives
  stage_pair,  // the same; takes what `logits` of width 3 gave: l1(3,6) l2(6,3)
  dict,        // {loss, what the last layer gave, an undefined entry}
  dataclass,   // the same in a container that is no dict, list or tuple
  bypassed,    // mlp plus "aux"(4,3), which its forward does not use
  reentrant,   // inp, two blocks of two layers in checkpoints, head
  non_reentrant,
  reentrant_frozen,  // layers of both blocks frozen
  non_reentrant_frozen,
  frozen,           // mlp with a frozen layer between
  two_losses,       // trunk(4,6), ha(6,2), hb(6,2): {loss a, loss b}
  tied,             // l(4,4) twice, head(4,2)
  unused,           // mlp with a layer "extra" that never takes part
  tiled,            // l1(4,6), head(6,3, no bias) by tiles, whose backward runs inside forward
  tiled_reentrant,  // inp(4,4) first, and l1 in a reentrant checkpoint
  untiled,          // the truth of `tiled`: the same tiles as ordinary operations
  untiled_deep,     // and that of `tiled_reentrant`
  undefined_grad,   // a vector "w" whose gradient is undefined
  raising,          // mlp whose backward throws Injected once
  leaf,             // inp(4,5), blk: a norm and two branches, head(5,2)
  skipped_frame,    // emb(7,4), lin(4,3): row numbers in, a loss out
  kd,               // l1(4,6), head(6,3): a fused loss that differentiates inside forward
  kd_late,          // the same, but it does so in its backward
  kd_reentrant,     // kd with its head in a reentrant checkpoint
  kd_plain,         // the truth of both, and of `tiled_kd`: the loss as ordinary operations
  tiled_kd,         // `tiled` with the head of kd_late: a transform in the tiles' own backward
};

// A hook of a tiled computation: says of the head's parameters whether the gradient of the tile
// that is about to run is the last one.
using ReadyMark = std::function<void(const Tensor& parameter, bool is_ready)>;

struct Subject;  // props/train/subject.h

struct ModelOptions {
  DataMode data = DataMode::real;
  std::uint64_t seed = 7;         // equal on all ranks
  Device device = Device::cpu();  // of parameters
  ProgramWatch* watch = nullptr;  // must outlive the graphs; null for none
  ReadyMark mark_ready = {};
  const Subject* subject = nullptr;  // null: a plain one; must outlive it
};

// What a Function of `raising` throws in its first backward.
struct Injected : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Parameters in float32.
std::shared_ptr<nn::Module> make_model(ModelKind kind, const ModelOptions& options);

// Whether `kind` begins with an embedding and so takes row numbers in place of real numbers.
bool takes_row_numbers(ModelKind kind);
// Of the real input.
std::int64_t input_width(ModelKind kind);

// One factory per file of models; null for a kind that is not there.
std::shared_ptr<nn::Module> make_plain_model(ModelKind kind, const ModelOptions& options);
std::shared_ptr<nn::Module> make_checkpoint_model(ModelKind kind, const ModelOptions& options);
std::shared_ptr<nn::Module> make_kd_model(ModelKind kind, const ModelOptions& options);
std::shared_ptr<nn::Module> make_function_model(ModelKind kind, const ModelOptions& options);
std::shared_ptr<nn::Module> make_structured_model(ModelKind kind, const ModelOptions& options);

}  // namespace zeroproof::train
