#include "props/train/generated_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "model/autograd.h"
#include "model/check.h"
#include "model/checkpoint/checkpoint.h"
#include "model/custom_function.h"
#include "model/functions.h"
#include "model/functions/indexing.h"
#include "props/train/plant.h"

namespace zeroproof::train {
namespace {

constexpr std::int64_t kTiles = 2;

// x, whose backward does `on_gradient` to what comes.
Tensor with_backward(Autograd& ag, const char* name, const Tensor& x,
                     const std::function<Tensor(const Tensor&)>& on_gradient) {
  const CustomFunction function{name,
                                [&ag](FunctionContext&, const TensorList& given) {
                                  return TensorList{mul(ag, given.at(0), 1.0)};
                                },
                                [on_gradient](FunctionContext&, const TensorList& grads) {
                                  return TensorList{on_gradient(grads.at(0))};
                                }};
  return apply_function(ag, function, {x}).at(0);
}

// x, in whose backward the user's own code runs.
Tensor interrupted(Autograd& ag, const Tensor& x, const std::function<void()>& run) {
  return with_backward(ag, "UserBackward", x, [&ag, run](const Tensor& grad) {
    run();
    return mul(ag, grad, 1.0);
  });
}

// The same operations on every rank, whichever it is that overflows.
Tensor overflowing(Autograd& ag, const Tensor& x, bool is_infinite) {
  const double factor = is_infinite ? std::numeric_limits<double>::infinity() : 1.0;
  return with_backward(ag, "OverflowBackward", x,
                       [&ag, factor](const Tensor& grad) { return mul(ag, grad, factor); });
}

// x, for which the user sees the gradient.
Tensor watched(Autograd& ag, const Tensor& x, SeenGradients& seen) {
  return with_backward(ag, "WatchBackward", x, [&ag, &seen](const Tensor& grad) {
    seen.push_back(grad.values());
    return mul(ag, grad, 1.0);
  });
}

// Ones that depend on the activations.
Tensor linked_ones(Autograd& ag, const Tensor& h, const Shape& sizes) {
  const auto elements = static_cast<std::size_t>(sizes.back());  // the others are one
  return masked_fill(ag, mean(ag, h), {std::vector<bool>(elements, true), sizes}, 1.0);
}

// The sum of a weight; `seen`: as a product, whose backward needs the weight.
Tensor total_of(Autograd& ag, const Tensor& weight, const Tensor& h, SeenGradients* seen) {
  if (!seen) return sum(ag, weight);
  const Tensor ones = linked_ones(ag, h, {1, weight.sizes().at(1)});
  return sum(ag, linear(ag, watched(ag, ones, *seen), weight, Tensor()));
}

// One input, or the mean of two that are equal.
Tensor activations_of(Autograd& ag, const TensorList& inputs) {
  return inputs.size() < 3 ? inputs.at(0) : mul(ag, add(ag, inputs.at(0), inputs.at(2)), 0.5);
}

// What the user's own code throws in the middle of a forward.
class Throwing {
 public:
  // `next` must outlive it. `layer` counts from 0.
  Throwing(const GeneratedModel::Next& next, std::size_t layer)
      : next_(next), number_(static_cast<int>(layer) + 1) {}

  void operator()() const {
    if (next_.throws == number_) throw Injected("injected in a forward");
  }

 private:
  const GeneratedModel::Next& next_;
  int number_;
};

// What a layer multiplies with: an input, or what its closure has instead, which it takes.
class Factor {
 public:
  // `closed` must outlive it.
  Factor(Tensor& closed, bool is_closed) : closed_(closed), is_closed_(is_closed) {}

  Tensor of(const TensorList& inputs) const {
    return is_closed_ ? std::exchange(closed_, Tensor()) : inputs.at(1);
  }

 private:
  Tensor& closed_;
  bool is_closed_;
};

// As Layer computes it, with a weight of its own, outside what autocast covers.
class RawLayer final : public nn::Module {
 public:
  // `returns`: its weight as well. `seen`, which must outlive it: where it is watched.
  RawLayer(nn::InitStream& init, const LayerSizes& sizes, const Throwing& throwing,
           const Factor& factor, bool returns, SeenGradients* seen)
      : seen_(seen),
        weight_(register_parameter(
            "weight", init.kaiming({sizes.outputs, sizes.inputs}, sizes.inputs, DType::float32))),
        throwing_(throwing),
        factor_(factor),
        returns_(returns) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor c = factor_.of(inputs);
    const Tensor h = activations_of(ag, inputs);
    const Tensor total = total_of(ag, weight_, h, seen_);
    throwing_();
    TensorList outputs = {add(ag, h, mul(ag, c, total)), inputs.at(1)};
    if (returns_) outputs.push_back(weight_);
    return outputs;
  }

 private:
  SeenGradients* seen_;
  Tensor& weight_;
  Throwing throwing_;
  Factor factor_;
  bool returns_;
};

// Two layers, of which each forward runs one.
class Experts final : public nn::Module {
 public:
  // `which` must outlive it.
  Experts(nn::InitStream& init, DataMode data, const int& which) : which_(which) {
    for (std::size_t i = 0; i < experts_.size(); ++i)
      experts_[i] =
          register_module("e" + std::to_string(i),
                          std::make_shared<Layer>(init, data, LayerSizes{2, 2, false, false}));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return (*experts_.at(static_cast<std::size_t>(which_)))(ag, inputs);
  }

 private:
  const int& which_;
  std::array<std::shared_ptr<Layer>, 2> experts_;
};

// Uses the first weight of another module, as attribute access does it, in a forward that is not
// its owner's.
class Reading final {
 public:
  // `layer` and `seen` must outlive it. `is_registered`: nobody has to be told of the read.
  // `seen`: null: nobody watches.
  Reading(nn::Module& layer, int calls, bool is_registered, SeenGradients* seen)
      : layer_(layer),
        factor_(std::ldexp(1.0, calls)),
        is_registered_(is_registered),
        seen_(seen) {}

  TensorList operator()(Autograd& ag, const TensorList& inputs) const {
    return used(ag, read(), inputs);
  }

  // The weight; undefined where the layer has none.
  Tensor read() const {
    for (const nn::NamedModule& owner : layer_.named_modules()) {
      const std::vector<Tensor*> own = owner.module->own_parameters();
      if (own.empty()) continue;
      return is_registered_ ? *own.front() : owner.module->read(*own.front());
    }
    return {};
  }

  TensorList used(Autograd& ag, const Tensor& weight, const TensorList& inputs) const {
    if (!weight.is_defined()) return inputs;
    const Tensor factor = mul(ag, inputs.at(1), factor_);
    const Tensor total = total_of(ag, weight, inputs.at(0), seen_);
    return {add(ag, inputs.at(0), mul(ag, factor, total)), inputs.at(1)};
  }

 private:
  nn::Module& layer_;
  double factor_;
  bool is_registered_;
  SeenGradients* seen_;
};

class Reader final : public nn::Module {
 public:
  explicit Reader(const Reading& reading) : reading_(reading) {}

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return reading_(ag, inputs);
  }

 private:
  Reading reading_;
};

// Without parameters.
class Aside final : public nn::Module {
 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {mul(ag, inputs.at(0), 1.0), inputs.at(1)};
  }
};

Reading reading_of(const CaseSpec& spec, const std::vector<std::shared_ptr<nn::Module>>& layers,
                   SeenGradients& seen) {
  std::map<int, int> calls;
  int most = 1;
  for (const CallSpec& call : spec.calls) most = std::max(most, ++calls[call.layer]);
  return {*layers[static_cast<std::size_t>(spec.reads) - 1], most, spec.registers != 0,
          spec.watches != 0 ? &seen : nullptr};
}

// As train::Layer with exact data; a linked one's input is the activations, filled with ones, so
// that the module has an input that needs a gradient. Its gradient is zero whatever comes, where
// zero times what has left the range of fp16 is not a number.
class SpecLayer final : public nn::Module {
 public:
  SpecLayer(nn::InitStream& init, const LayerSpec& spec, const Throwing& throwing,
            const Factor& factor, SeenGradients& seen)
      : spec_(spec), throwing_(throwing), factor_(factor), seen_(seen) {
    const Tensor weight = init.kaiming({spec.outputs, spec.inputs}, spec.inputs, DType::float32);
    const Tensor bias =
        spec.has_bias != 0 ? init.kaiming({spec.outputs}, spec.inputs, DType::float32) : Tensor();
    linear_ = register_module("linear", std::make_shared<nn::Linear>(weight, bias));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor h = activations_of(ag, inputs);
    const Tensor c = factor_.of(inputs);
    Shape sizes(static_cast<std::size_t>(spec_.dimensions != 0 ? spec_.dimensions : 2), 1);
    sizes.back() = spec_.inputs;
    Tensor x = spec_.is_linked != 0 ? linked_ones(ag, inputs.size() < 3 ? h : inputs.at(2), sizes)
                                    : Tensor::full(sizes, 1.0, c.dtype());
    if (spec_.is_watched != 0) x = watched(ag, x, seen_);
    const Tensor total = sum(ag, (*linear_)(ag, x));
    throwing_();
    return {add(ag, h, mul(ag, c, total)), inputs.at(1)};
  }

 private:
  LayerSpec spec_;
  Throwing throwing_;
  Factor factor_;
  SeenGradients& seen_;
  std::shared_ptr<nn::Linear> linear_;
};

std::vector<TensorList> tiles_of(Autograd& ag, const TensorList& h) {
  std::vector<TensorList> tiles;
  for (const Tensor& part : chunk(ag, h.at(0), kTiles, 0)) tiles.push_back({part, h.at(1)});
  return tiles;
}

}  // namespace

Tensor raising(Autograd& ag, const Tensor& x) {
  return with_backward(ag, "RaiseBackward", x,
                       [](const Tensor&) -> Tensor { throw Injected("injected"); });
}

GeneratedModel::GeneratedModel(const ModelOptions& options, bool is_truth)
    : spec_(*options.spec), options_(options), is_truth_(is_truth) {
  nn::InitStream init(options.seed);
  add_layers(init);
  if (spec_.reads_late != 0)
    reader_ = register_module(CaseSpec::kReader,
                              std::make_shared<Reader>(reading_of(spec_, layers_, seen_)));
  if (spec_.experts != 0)
    experts_ =
        register_module(kExperts, std::make_shared<Experts>(init, options.data, next_.expert));
  for (int i = 0; spec_.reorders != 0 && i < 2; ++i)
    asides_.push_back(
        register_module(CaseSpec::kAside + std::to_string(i), std::make_shared<Aside>()));
}

void GeneratedModel::add_layers(nn::InitStream& init) {
  for (std::size_t i = 0; i < spec_.layers.size(); ++i) {
    const LayerSpec& layer = spec_.layers[i];
    const LayerSizes sizes{layer.inputs, layer.outputs, layer.has_bias != 0, false};
    std::shared_ptr<nn::Module> made;
    const Factor factor(closed_factor_, layer.is_closed != 0);
    if (layer.is_raw != 0) {
      made = std::make_shared<RawLayer>(init, sizes, Throwing(next_, i), factor,
                                        spec_.returns == static_cast<int>(i) + 1,
                                        layer.is_watched != 0 ? &seen_ : nullptr);
    } else {
      made = std::make_shared<SpecLayer>(init, layer, Throwing(next_, i), factor, seen_);
    }
    layers_.push_back(register_module("l" + std::to_string(i), made));
    if (layer.is_frozen == 0 && layer.is_weight_frozen == 0) continue;
    if (layer.is_frozen == 2) continue;  // its gradient comes, and nobody takes it
    for (const nn::NamedParameter& parameter : made->named_parameters())
      if (layer.is_frozen != 0 || parameter.name.ends_with("weight"))
        parameter.tensor.set_requires_grad(false);
  }
}

nn::Module::OutputContainer GeneratedModel::output_container() const {
  if (spec_.container == 0) return OutputContainer::tensors;
  return spec_.container == 1 ? OutputContainer::dict : OutputContainer::dataclass;
}

// Every use of a layer has a factor of its own, so that gradients say which are in them.
std::vector<GeneratedModel::Call> GeneratedModel::calls_of_next() const {
  std::vector<Call> calls;
  std::map<int, int> uses;
  for (std::size_t i = 0; i < spec_.calls.size(); ++i) {
    const int use = uses[spec_.calls[i].layer]++;
    const auto number = static_cast<int>(i) + 1;
    if (next_.skips == number) continue;
    calls.push_back({.number = i,
                     .factor = std::ldexp(1.0, use),
                     .is_raising = next_.aborts == number,
                     .is_interrupted = next_.interrupts == number,
                     .has_detour = next_.detours == number,
                     .overflows = next_.overflow == number,
                     .is_infinite = next_.is_infinite});
  }
  return calls;
}

TensorList GeneratedModel::call_layer(Autograd& ag, std::size_t layer,
                                      const TensorList& inputs) const {
  TensorList given = inputs;
  if (spec_.layers[layer].is_closed != 0) {
    closed_factor_ = given.at(1);
    given.at(1) = given.at(1).detach();
  }
  const int more = spec_.layers[layer].has_two_inputs;
  if (more > 0) given.push_back(mul(ag, given.at(0), 1.0));
  if (more > 1) given.emplace_back();
  return (*layers_[layer])(ag, given);
}

TensorList GeneratedModel::run(Autograd& ag, const Call& call, const TensorList& inputs) const {
  TensorList given = with_factor(ag, options_.data, inputs, call.factor);
  // What the layer adds to the activations takes the spike alone.
  const Tensor zeros = Tensor::full(given.at(0).sizes(), 0.0, given.at(0).dtype());
  const Tensor around = given.at(0);
  if (call.overflows) given.at(0) = zeros;
  const auto layer = static_cast<std::size_t>(spec_.calls[call.number].layer);
  const TensorList outputs = call_layer(ag, layer, given);
  Tensor h = outputs.at(0);
  if (outputs.size() > 2) {
    const Tensor factor = mul(ag, inputs.at(1), std::ldexp(1.0, spec_.uses() - 1));
    SeenGradients* const seen = spec_.watches != 0 ? &seen_ : nullptr;
    h = add(ag, h, mul(ag, factor, total_of(ag, outputs.back(), inputs.at(0), seen)));
  }
  if (call.overflows) h = add(ag, around, overflowing(ag, h, call.is_infinite));
  if (call.is_raising) h = raising(ag, h);
  if (call.is_interrupted) h = interrupted(ag, h, next_.on_interrupt);
  if (call.has_detour && ag.current_graph_task().is_none()) next_.on_detour();
  return {h, inputs.at(1)};
}

TensorList GeneratedModel::run_all(Autograd& ag, const std::vector<Call>& calls,
                                   const TensorList& inputs) const {
  TensorList h = inputs;
  for (const Call& call : calls) h = run(ag, call, h);
  return h;
}

// Inside a checkpoint, for the first time or for its backward.
TensorList GeneratedModel::run_again(Autograd& ag, const std::vector<Call>& calls,
                                     const TensorList& inputs) const {
  const auto body = [&] { return run_all(ag, calls, inputs); };
  const bool is_recompute = !ag.current_graph_task().is_none();
  const Plant* const plant = options_.plant;
  return plant && plant->recompute && is_recompute ? plant->recompute(ag, body) : body();
}

TensorList GeneratedModel::run_wrapped(Autograd& ag, Wrap wrap, const std::vector<Call>& calls,
                                       const TensorList& inputs) const {
  if (wrap == Wrap::none) return run_all(ag, calls, inputs);
  const std::string label = "c" + std::to_string(calls.front().number);
  const auto body = [this, &ag, calls, label](const TensorList& given) {
    const auto once = [&] { return run_again(ag, calls, given); };
    return options_.watch ? options_.watch->run_checkpoint(label, once) : once();
  };
  return checkpoint(ag, kind_of(wrap), body, inputs);
}

TensorList GeneratedModel::run_asides(Autograd& ag, const TensorList& inputs) const {
  TensorList h = inputs;
  for (const std::size_t aside : next_.asides) h = (*asides_.at(aside))(ag, h);
  return {mean(ag, h.at(0))};
}

TensorList GeneratedModel::forward(Autograd& ag, const TensorList& inputs) const {
  if (!next_.asides.empty()) return run_asides(ag, inputs);
  const std::vector<Call> calls = calls_of_next();
  const bool has_last = !calls.empty() && calls.back().number + 1 == spec_.calls.size();
  const std::size_t heads = !has_last ? 0
                            : spec_.heads == 2 || spec_.is_tiled != 0
                                ? static_cast<std::size_t>(spec_.heads)
                                : 0;
  const bool holds = spec_.holds != 0 && !next_.is_unread;
  const Tensor held = holds ? reading_of(spec_, layers_, seen_).read() : Tensor();
  TensorList h = run_expert(ag, inputs);
  if (!holds) h = with_read(ag, h);
  for (std::size_t begin = 0; begin + heads < calls.size();) {
    std::size_t end = begin + 1;
    while (end + heads < calls.size() && spec_.calls[calls[end].number].is_joined != 0 &&
           spec_.calls[calls[end].number].wrap == spec_.calls[calls[begin].number].wrap)
      ++end;
    const auto at = [&](std::size_t i) { return calls.begin() + static_cast<std::ptrdiff_t>(i); };
    const auto wrap = static_cast<Wrap>(spec_.calls[calls[begin].number].wrap);
    h = run_wrapped(ag, wrap, {at(begin), at(end)}, h);
    begin = end;
  }
  if (holds) h = reading_of(spec_, layers_, seen_).used(ag, held, h);
  TensorList losses = with_losses(ag, calls, with_late_read(ag, h));
  if (spec_.container != 0) {
    losses.push_back(h.at(0));
    losses.emplace_back();
  }
  if (next_.on_end) next_.on_end();
  return losses;
}

TensorList GeneratedModel::run_expert(Autograd& ag, const TensorList& inputs) const {
  return experts_ ? (*experts_)(ag, inputs) : inputs;
}

TensorList GeneratedModel::with_read(Autograd& ag, const TensorList& inputs) const {
  const bool is_read = spec_.reads != 0 && !reader_ && !next_.is_unread;
  return is_read ? reading_of(spec_, layers_, seen_)(ag, inputs) : inputs;
}

TensorList GeneratedModel::with_late_read(Autograd& ag, const TensorList& inputs) const {
  return reader_ && !next_.is_unread ? (*reader_)(ag, inputs) : inputs;
}

TensorList GeneratedModel::with_losses(Autograd& ag, const std::vector<Call>& calls,
                                       const TensorList& h) const {
  if (spec_.heads == 2) {
    const Tensor a = mean(ag, run(ag, calls[calls.size() - 2], h).at(0));
    const Tensor b = mean(ag, run(ag, calls[calls.size() - 1], h).at(0));
    return {a, mul(ag, b, std::ldexp(1.0, spec_.uses() / (2 * spec_.engines)))};
  }
  if (spec_.is_tiled != 0) return {run_tiles(ag, calls.back(), h)};
  return {mean(ag, h.at(0))};
}

TensorList GeneratedModel::bypassing(Autograd& ag, const TensorList& inputs) const {
  const int uses = spec_.uses() / spec_.heads - 1;
  return with_factor(ag, options_.data, inputs, std::ldexp(1.0, uses));
}

Tensor GeneratedModel::bypass(Autograd& ag, const TensorList& inputs) const {
  return mean(ag, call_layer(ag, 0, bypassing(ag, inputs)).at(0));
}

Tensor GeneratedModel::bypass_of_weight(Autograd& ag, const TensorList& inputs) const {
  const TensorList given = bypassing(ag, inputs);
  const Tensor& c = given.at(1);
  Tensor x = Tensor::full({1, spec_.layers.front().inputs}, 1.0, c.dtype());
  if (spec_.watches != 0) {
    x.set_requires_grad(true);
    x = watched(ag, x, seen_);
  }
  const Tensor total = sum(ag, linear(ag, x, bypassed_weight(), Tensor()));
  return mean(ag, add(ag, given.at(0), mul(ag, c, total)));
}

Tensor GeneratedModel::bypassed_weight() const {
  for (const nn::NamedParameter& parameter : layers_.front()->named_parameters())
    if (parameter.name.ends_with("weight")) return parameter.tensor;
  ZP_CHECK(false, "every layer has a weight");
}

std::vector<double> GeneratedModel::take_seen() {
  const auto is_less = [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
  std::ranges::sort(seen_, [&](const auto& a, const auto& b) {
    return std::ranges::lexicographical_compare(a, b, is_less);
  });
  std::vector<double> all;
  for (const std::vector<double>& one : std::exchange(seen_, {}))
    all.insert(all.end(), one.begin(), one.end());
  return all;
}

// --- tiles --------------------------------------------------------------------------------------

Tensor GeneratedModel::tile_loss(Autograd& ag, const Call& call, const TensorList& tile) const {
  const Wrap wrap = is_truth_ ? Wrap::none : static_cast<Wrap>(spec_.tile_wrap);
  const Tensor h = run_wrapped(ag, wrap, {call}, tile).at(0);
  return div(ag, mean(ag, h), static_cast<double>(kTiles));
}

void GeneratedModel::mark_ready(const Call& call, bool is_ready) const {
  if (!options_.mark_ready) return;
  const auto& layer = layers_[static_cast<std::size_t>(spec_.calls[call.number].layer)];
  for (const nn::NamedParameter& parameter : layer->named_parameters())
    options_.mark_ready(parameter.tensor, is_ready);
}

Tensor GeneratedModel::run_tiles(Autograd& ag, const Call& call, const TensorList& h) const {
  if (is_truth_) {
    Tensor total;
    for (const TensorList& tile : tiles_of(ag, h)) {
      const Tensor loss = tile_loss(ag, call, tile);
      total = total.is_defined() ? add(ag, total, loss) : loss;
    }
    return total;
  }
  const auto tell = [watch = options_.watch](EventKind kind) {
    if (watch) watch->on_function(kind, "tiled");
  };
  const CustomFunction function{
      "TiledBackward",
      [this, &ag, call, tell](FunctionContext& context, const TensorList& given) {
        tell(EventKind::fn_forward_begin);
        const TensorList results = differentiate_tiles(ag, call, given);
        context.save_for_backward({results.at(1)});
        tell(EventKind::fn_forward_end);
        return TensorList{results.at(0)};
      },
      [&ag, tell](FunctionContext& context, const TensorList& grads) {
        tell(EventKind::fn_backward_begin);
        const Tensor scaled = mul(ag, context.saved_tensors().at(0), grads.at(0));
        tell(EventKind::fn_backward_end);
        return TensorList{scaled, Tensor()};
      }};
  return apply_function(ag, function, h).at(0);
}

// The loss, and its gradient for the activations; without grad mode, the loss alone.
TensorList GeneratedModel::differentiate_tiles(Autograd& ag, const Call& call,
                                               const TensorList& h) const {
  const std::vector<TensorList> tiles = tiles_of(ag, h);
  TensorList grads;
  Tensor total;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    mark_ready(call, i + 1 == tiles.size());
    TensorList tile = {tiles[i].at(0).detach(), tiles[i].at(1).detach()};
    tile.at(0).set_requires_grad(true);
    const GradMode enabled(ag, true);
    const Tensor loss = tile_loss(ag, call, tile);
    const double weight = options_.plant ? options_.plant->tile_weight : 1.0;
    ag.backward(weight == 1.0 ? loss : mul(ag, loss, weight));
    grads.push_back(tile.at(0).grad());
    total = total.is_defined() ? add(ag, total, loss.detach()) : loss.detach();
  }
  return {total.detach(), cat(ag, grads, 0)};
}

std::shared_ptr<nn::Module> make_generated_model(ModelKind kind, const ModelOptions& options) {
  if (kind == ModelKind::generated) return std::make_shared<GeneratedModel>(options, false);
  if (kind == ModelKind::generated_truth) return std::make_shared<GeneratedModel>(options, true);
  return nullptr;
}

std::int64_t persistent_bytes(const CaseSpec& spec) {
  std::int64_t persistent = 8;  // experts
  for (const LayerSpec& layer : spec.layers) {
    const int weight = layer.inputs * layer.outputs;
    persistent += weight <= spec.persistence ? weight : 0;
    persistent += layer.outputs <= spec.persistence ? layer.outputs : 0;
  }
  if (spec.experts == 0 || spec.persistence < 4) persistent -= 8;
  return persistent * spec.engines * item_bytes(DType::float32);
}

}  // namespace zeroproof::train
