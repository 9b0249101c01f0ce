#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "props/train/case_kinds.h"
#include "props/train/train_cell.h"
#include "zeroproof/model/result.h"

namespace zeroproof::train {

// A whole training case as plain small numbers: model, program, configuration, world. Everything
// that shrinks, writes or reads one goes through visit_fields() (props/train/case_fields.h).

// One linear layer "l<i>"; no outputs: its parameters have no elements.
struct LayerSpec {
  int inputs = 1;
  int outputs = 2;
  int has_bias = 0;
  int is_frozen = 0;         // 2: by nobody but the optimizer, which does not get it
  int is_linked = 0;         // its input depends on what came before, though its value does not
  int is_weight_frozen = 0;  // the bias alone is trained
  int is_raw = 0;            // a parameter of a class of its own, which no autocast covers
  int is_closed = 0;         // what it multiplies with does not come as an input of its module
  int has_two_inputs = 0;    // the activations come twice; 2: and a third one that is undefined
  int dimensions = 0;        // of what its linear function gets: 1 or 3; 0: two
  int is_watched = 0;        // the user sees the gradient for what its linear function gets
  int has_twin = 0;          // of a raw one: a second weight, whose name begins with the first's
  int shape = 0;             // of a raw one's weights: 1: one dimension, 2: three, 3: none

  int elements() const { return outputs * (inputs * (1 + has_twin) + has_bias); }
  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

// One call of a layer by the model. Layers that no call names are registered and unused; one that
// several name is shared.
struct CallSpec {
  int layer = 0;
  int wrap = 0;       // Wrap
  int is_joined = 0;  // in the same checkpoint as the call before
  friend bool operator==(const CallSpec&, const CallSpec&) = default;
};

// From one step() to the next.
struct MicroSpec {
  int losses = 0;        // Losses; of a model with two heads
  int outstanding = 0;   // Outstanding: a second forward before both backwards, or one of both
  int repeats = 0;       // 1: forward and backward once more before the step
  int block = 0;         // Block around all backwards
  int idle_forward = 0;  // before: 1: without gradients, 2: its graph is dropped, 3: func.grad, 4:
                         // func.vmap of it, and it of func.vmap
  int aborts = 0;        // k: a backward before throws at call k - 1; then zero_grad
  int is_undivided = 0;  // scale_wrt_gas off
  int has_bypass = 0;    // Bypass
  int skips = 0;         // k: call k - 1 does not run
  int overflow = 0;      // k: layer of call k - 1 gets an infinite gradient, on one rank
  int overflow_rank = 0;
  int overflow_kind = 0;   // 1: a negative infinity, 2: no number
  int gathers = 0;         // Gathers, before
  int aborts_managed = 0;  // what throws is an engine.backward, whatever the others are
  int is_uncleared = 0;    // no zero_grad behind what throws
  int rehooks = 0;         // 1: between forward and backward all module hooks are made anew
  int throws = 0;          // k: a forward before throws inside layer k - 1
  int is_broken = 0;       // its block throws behind all that is in it, which the user catches
  int restores = 0;        // Restores, before
  int abandons = 0;        // with skipped frames: 1: a forward before whose graph is given up; 2:
                           // what `gathers` says is before that, and not before the forward
  int guards = 0;          // with skipped frames: 1: guards read the weights before
  int clears = 0;          // 1: before: trained for nothing, and zero_grad; 2: inside its block;
                           // 3: between scaling and differentiating its loss; 4: there, a forward
                           // without gradients instead; 5: there, a managed backward of another one
  int peeks = 0;           // 1: behind it the user reads masters and optimizer state
  int past_engine = 0;     // 1: behind it: a manual backward that no output of the engine is in
                           // 2: of a loss that a reentrant checkpoint makes
                           // 3: instead of everything that is differentiated in it
                           // 4: of a sum of two that reentrant checkpoints make
  int misuse = 0;          // Misuse, behind it
  int looks = 0;           // Looks
  int keeps = 0;  // 1: every backward retains its graph, and its losses live behind the step;
                  // 2: they live as long, and only what is needed again is retained; 3: every
                  // backward retains, and nobody keeps its losses
  int throws_no_grad = 0;  // 1: the forward that throws is one without gradients
  int registers = 0;       // k: before: the root is told to use the weight of layer k - 1
  int unread = 0;          // 1: its forwards do not read the weight that others read
  int interrupt = 0;       // Interrupt, in each backward
  int interrupt_at = 0;    // k: behind call k - 1, where there is one
  int asks = 0;            // 1: behind it the user asks for the gradients so far, twice; 2: inside
                           // its block
  int rescales = 0;        // fp16: 1: another loss scale behind what `clears` does; 2: behind what
                           // `aborts` does; 3: refused between a forward and its backward
  int skips_on = 0;        // k: rank k - 1 alone skips what `skips` says
  int wrapped = 0;         // Wrap, around each forward of the engine
  int autocasts = 0;       // 1: an autocast region of the user is around it; 2: of another dtype
                           // than the engine's own
  int blind = 0;           // 1: nobody looks at values in the window that it loads away
  int creates = 0;         // 1: its backwards leave a graph of their gradients
  int aborts_on_loss = 0;  // 1: a backward before throws at its loss; 2: a manual one, and another
                           // follows that nobody scaled
  int lost_overflow = 0;   // fp16: k: as `overflow`, in the window that it loads away alone
  int renews = 0;          // 1: what it loads is loaded by an engine that was made for it
  int by_hand = 0;         // 1: its backwards are manual, whatever the others are
  int damages = 0;         // which file is damaged and how, what does not fit, which call fails;
                           // of a save alone: one before was cut short
  int misscales = 0;       // k: before a window: a loss scale that none may be, the k-th
  int idles_first = 0;     // 1: what `idle_forward` 1 says comes before what `gathers` does
  int unread_on = 0;       // k: rank k - 1 alone does what `unread` says
  int outdates =
      0;  // stage 3: 1: weights change behind a forward before, whose backward is refused
  int aborts_inside = 0;  // k: inside its block, behind a good backward: one throws at call k - 1
  int litters = 0;        // 1: before: the user sets every .grad, and zero_grad
  int spans = 0;          // stage 3: 1: a context that gathers all weights is around each backward;
                          // 2: what the first rank has of them is taken over behind it
  int drops_on = 0;   // k: of two forwards the first one's backward retains its graph, which rank
                      // k - 1 alone gives up before the other backward
  int branches = 0;   // k: with skipped frames: of two forwards the first does not run call k - 1,
                      // the second not the one behind that
  int detour = 0;     // Detour
  int detour_at = 0;  // 0: before, in a context that gathers all weights; 1: first in its block;
                      // k: in each of its forwards, behind call k - 2
  int shortage = 0;   // Shortage, on every rank: the user catches it, and does it again
  int shortage_at = 0;  // k: the k-th allocation of that call fails, where it makes so many
  int guests = 0;       // 1: before: one more engine is made, of a model of its own, and goes
  int again = 0;        // 1: each loss is differentiated once more, and its graph kept for that: by
                        // create_graph where it `creates`
  int aborts_at_weight = 0;  // 1: what `aborts` says throws is a hook of that layer's weight
  int freezes = 0;           // k: meanwhile the parameters of layer k - 1 need no gradient
  int keeps_dimension = 0;   // 1: its losses have a dimension, of one element
  int rests = 0;  // nothing comes of it: neither a forward nor a backward, and then its step
  friend bool operator==(const MicroSpec&, const MicroSpec&) = default;
};

struct CaseSpec {
  static constexpr int kManyElements = 1000;
  static constexpr int kGatherBucket = 200;
  static constexpr double kCustomLossScale = 32.0;
  static constexpr double kSecondLossScale = 4.0;
  static constexpr double kLift = 16384.0;
  static constexpr int kTied = 2;                // of `registers`
  static constexpr double kGradScale = 65536.0;  // torch.amp.GradScaler's first one
  static constexpr int kGrowthSteps = 2000;      // good ones, until it grows

  int ranks = 1;
  int stage = 0;
  int precision = 0;  // Precision
  int engines = 1;
  int is_manual = 0;  // tensor.backward
  int preempts = 0;   // before every call that others see
  int accumulation = 1;
  int is_unmanaged = 0;
  int heads = 1;
  int container = 0;   // 1: dict, 2: dataclass; 3: none, and the first of two losses has no graph
  int is_tiled = 0;    // the last call runs by tiles, whose backward is inside forward
  int tile_wrap = 0;   // Wrap of what runs for each tile
  int input_grad = 0;  // the activations that come in need a gradient

  int bucket = kManyElements;
  int is_scattered = 0;       // contiguous_gradients off
  int reduces_whole = 0;      // reduce_scatter off
  int reduces_to_owners = 0;  // use_multi_rank_bucket_allreduce off
  int has_overlap = 0;
  int is_offloaded = 0;
  int clip = 0;                 // 1: tight, 2: loose
  int is_dynamic = 0;           // fp16: a loss scale that grows with every step
  int is_wire_float32 = 0;      // communication_data_type
  int accumulates_float32 = 0;  // grad_accum_dtype
  int predivides = 0;           // gradient_predivide_factor 2
  int prescales = 0;
  int is_sum = 0;  // gradient_allreduce_op
  int is_sgd = 0;
  int persistence = 0;  // stage3_param_persistence_threshold
  int prefetch = 0;     // stage3_prefetch_bucket_size
  int reuse = 0;        // stage3_max_reuse_distance
  int sub_group = kManyElements;
  int plain_linear = 0;  // memory_efficient_linear off
  int experts = 0;       // 1: a layer of two, of which each rank runs one; a leaf module in stage 3
  int reads = 0;         // k: the root reads the weight of layer k - 1 itself
  int skips_frames = 0;  // compiled in stage 3, and every frame runs eagerly
  int groups = 1;        // of parameters
  int rule = 0;          // of the update: decay and momentum
  int scaling = 0;       // how a dynamic loss scale moves; see config_of
  int sets_boundary = 0;  // the program says which step counts; 1: of a configuration without
                          // accumulation steps, 2: with twice as many, 3: the same, once for all
  // fp16: the program sets the loss scale of every window; 2: once for all; 3: once for all to what
  // a dynamic one begins with.
  int owns_scale = 0;
  int has_ranks_apart = 0;              // in their weights, until engines take over rank 0's
  int is_unchecked = 0;                 // bf16: nobody looks for an overflow
  int gather_bucket = kGatherBucket;    // allgather_bucket_size
  int checks = 0;                       // enable_sanity_checks
  int persistence_all = kManyElements;  // stage3_model_persistence_threshold
  int live = kManyElements;             // stage3_max_live_parameters
  int granularity = 0;                  // stage3_module_granularity_threshold
  int reads_late = 0;                   // a module of its own reads it instead, behind all calls
  int registers = 0;  // 1: what the root reads is registered as its external parameter; 2: what
                      // reads it late owns it as well
  int returns = 0;    // k: layer k - 1, a raw one, returns its weight, and the root uses it
  int is_unsafe = 0;  // autocast: no class of a layer is safe for its dtype: 1: another one is, 2:
                      // none is named, 3: that of the container that the layers are in, too
  int leaf_by = 0;    // LeafBy; where there are experts
  int needs_all = 0;  // offload: a step without some gradient is refused, and then one more comes
  int is_strict = 0;  // ignore_unused_parameters off where nothing asks whether they are
  int is_lifted = 0;  // fp16: a loss that fits its dtype, and does not when it is scaled
  int scales_by_one = 0;    // fp16: a fixed loss scale, of one
  int is_wide = 0;          // bf16: the sums of a window need the bits of their accumulation dtype
  int offloads_params = 0;  // stage 3: what is partitioned lives on the host
  int masters = 0;          // Masters; of a model in bf16
  int holds = 0;            // what the root reads it uses behind all calls
  int is_wire_narrow = 0;   // NarrowWire; of a model in float32
  int has_grad_scaler = 0;  // autocast in float16, and a loss whose gradients fit when it is scaled

  // fp16: the loss scale falls no further, 2: than by a quarter, 3: and forgives the first
  // overflow: one more is refused.
  int has_floor = 0;

  int counts_nothing = 0;  // the autograd has no count APIs: no manual backward; 2: no callbacks
  int is_read = 0;         // 1: its configuration is written as ds_config.json, and read again;
                           // k: and a part of other documents (config_readings.h)
  int refuses = 0;         // k: a configuration that no engine is made from, see config_document.h
  int accepts = 0;         // 1: odd ones, of which every one makes an engine
  int watches = 0;  // what is used past its layer is multiplied, and the user sees the gradient
                    // for what it is multiplied with
  int lists_frozen = 0;  // parameter groups have what is frozen, too
  int takes_turns = 0;   // each of two engines has a loss and a backward of its own
  int reorders = 0;     // k: behind all windows rank k - 1 runs two modules in another order, which
                        // is refused and the end
  int first_ranks = 0;  // k: so many ranks train the first window and save; `ranks` load that
  int first_stage = -1;   // with `first_ranks`: the stage of those, where it is another one
  int scales_second = 0;  // of two engines the second alone has a loss scale, which its user gave
  int sequence = 1;  // of `ranks` so many share a sequence, of which each has a part of the loss
  int brims = 0;     // fp16: each rank's gradients are as large as they may be, so that the sum of
                     // all is too large where the mean is not; 2: so small that fp16 has them
                     // scaled alone; 3: bf16: the sum of ranks that share sequences needs float32;
                     // 4: a narrow wire has room or bits for what is divided alone
  int grown = 0;     // autocast: its GradScaler grows in the k-th good step from the beginning on
  int packs = 0;   // 1: the layers are in a container, too, which nobody calls; 2: the first one's
                   // weight is that of a module of another class, too
  int owns = 0;    // the root has a weight of its own, 1: which it uses before all calls, 2: behind
  int tensor = 1;  // so many times `ranks`: each in a tensor-parallel group of so many, all of
                   // which train the same

  std::vector<LayerSpec> layers;
  std::vector<CallSpec> calls;
  std::vector<MicroSpec> micros;  // of all windows, one after the other

  // The second weight of a layer: a name that begins with another and ends as an optimizer state.
  static constexpr const char* kTwin = "weight_twin/step";
  static constexpr const char* kExperts = "experts";  // the name of their module
  static constexpr const char* kOwned = "own";        // of the root, and its elements
  static constexpr int kOwnedElements = 3;
  static constexpr const char* kReader = "reader";  // and of what reads late
  static constexpr const char* kAside = "aside";    // modules without parameters, and a number

  int windows() const { return static_cast<int>(micros.size()) / accumulation; }
  // How often one forward adds to one gradient, with all factors; forwards of one window, at most.
  int uses() const;
  int forwards() const;
  int parameters() const;  // tensors, of all engines
  int world_size() const { return ranks * tensor; }
  friend bool operator==(const CaseSpec&, const CaseSpec&) = default;
};

// Whether several calls name its layer.
bool is_shared(const CaseSpec& spec, const CallSpec& call);
// Whether some layer's parameters are in no parameter group.
bool leaves_out(const CaseSpec& spec);
// Whether this one is in none: the user gives it to no optimizer, though it has gradients.
bool is_left_out(const CaseSpec& spec, std::string_view parameter);
// Whether a call runs in a checkpoint.
bool has_checkpoints(const CaseSpec& spec);

// Whether what a window trains is undone by a load.
inline bool loads_away(Restores restores) {
  return restores != Restores::none && restores < Restores::saved;
}

inline bool is_flag(int value) {
  return value == 0 || value == 1;
}

// A backward that comes to nothing.
inline bool has_abort(const MicroSpec& micro) {
  return micro.aborts + micro.aborts_on_loss + micro.aborts_inside + micro.outdates +
             micro.shortage !=
         0;
}

// Which make the loss that no output of the engine is in.
inline int checkpoints_past_engine(const MicroSpec& micro) {
  return micro.past_engine == 2 ? 1 : micro.past_engine == 4 ? 2 : 0;
}

// A forward inside a context that gathers the weights.
inline bool runs_in_context(const MicroSpec& micro) {
  const auto gathers = static_cast<Gathers>(micro.gathers);
  return gathers == Gathers::runs || gathers == Gathers::changes_and_runs;
}

// What the user gathers, or a forward of his, is whole around an engine's own calls, or in the
// middle of them.
inline bool gathers_while_running(const MicroSpec& micro) {
  const auto interrupt = static_cast<Interrupt>(micro.interrupt);
  return runs_in_context(micro) || micro.spans != 0 || interrupt == Interrupt::changes ||
         interrupt == Interrupt::forward;
}

// A manual backward that is refused while it runs: at its end, because nobody scaled its loss
// (backward_without_loss_scaling), or where it reaches the engine (manual_backward_unsupported).
inline bool is_manual_misuse(Misuse misuse) {
  return misuse == Misuse::unscaled_manual || misuse == Misuse::unscaled_again ||
         misuse == Misuse::manual_backward || misuse == Misuse::unscaled_second ||
         misuse == Misuse::past_manual || misuse == Misuse::others_loss;
}
inline bool is_refused_late(const MicroSpec& micro) {
  return is_manual_misuse(static_cast<Misuse>(micro.misuse)) || micro.aborts_on_loss == 2;
}

// Why the case makes no sense (a call of a layer that is not there, a configuration that every
// engine refuses, numbers that would not be exact); empty: it can run.
std::string why_invalid(const CaseSpec& spec);

// The configuration of its engines, and the cell that runs it.
TrainCell cell_of(const CaseSpec& spec);

// JSON with what is not simple, one line; and back. The error names the key.
std::string case_json(const CaseSpec& spec);
Result<CaseSpec> parse_case(std::string_view json, std::string_view where);

}  // namespace zeroproof::train
