#include "props/train/generated_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "model/check.h"
#include "model/custom_function.h"
#include "model/nn/sequential.h"
#include "props/train/generated_layers.h"
#include "props/train/subject.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/checkpoint/checkpoint.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::train {
namespace {

constexpr std::int64_t kTiles = 2;

Reading reading_of(const CaseSpec& spec, const std::vector<std::shared_ptr<nn::Module>>& layers,
                   SeenGradients& seen) {
  std::map<int, int> calls;
  int most = 1;
  for (const CallSpec& call : spec.calls) most = std::max(most, ++calls[call.layer]);
  return {*layers[static_cast<std::size_t>(spec.reads) - 1], most, spec.registers != 0,
          spec.watches != 0 ? &seen : nullptr};
}

std::vector<TensorList> tiles_of(Autograd& ag, const TensorList& h) {
  std::vector<TensorList> tiles;
  for (const Tensor& part : chunk(ag, h.at(0), kTiles, 0)) tiles.push_back({part, h.at(1)});
  return tiles;
}

}  // namespace

GeneratedModel::GeneratedModel(const ModelOptions& options, bool is_truth)
    : spec_(*options.spec), options_(options), is_truth_(is_truth) {
  nn::InitStream init(options.seed);
  add_layers(init);
  if (spec_.owns != 0) {
    const Shape sizes{1, CaseSpec::kOwnedElements};
    own_ = &register_parameter(CaseSpec::kOwned, init.kaiming(sizes, sizes.back(), DType::float32));
  }
  if (spec_.reads_late != 0) {
    const Reading reading = reading_of(spec_, layers_, seen_);
    const bool is_tied = spec_.registers == CaseSpec::kTied;
    reader_ =
        register_module(CaseSpec::kReader, is_tied ? make_tied(reading) : make_reader(reading));
  }
  if (spec_.experts != 0)
    experts_ = register_module(kExperts, make_experts(init, options.data, next_.expert));
  if (spec_.packs == 1) register_module("pack", std::make_shared<nn::Sequential>(layers_));
  if (spec_.packs == 2) register_module("owner", make_owner(*layers_.front()));
  for (int i = 0; spec_.reorders != 0 && i < 2; ++i)
    asides_.push_back(register_module(CaseSpec::kAside + std::to_string(i), make_aside()));
}

void GeneratedModel::add_layers(nn::InitStream& init) {
  for (std::size_t i = 0; i < spec_.layers.size(); ++i) {
    const LayerSpec& layer = spec_.layers[i];
    const auto made = make_layer(init, {.spec = layer,
                                        .index = i,
                                        .returns = spec_.returns == static_cast<int>(i) + 1,
                                        .throws = next_.throws,
                                        .closed_factor = closed_factor_,
                                        .seen = seen_});
    layers_.push_back(register_module("l" + std::to_string(i), made));
    freeze(i);
  }
}

void GeneratedModel::freeze(std::size_t layer) {
  const LayerSpec& spec = spec_.layers[layer];
  for (const nn::NamedParameter& parameter : layers_[layer]->named_parameters())
    if (spec.is_frozen == 1 || (spec.is_weight_frozen != 0 && parameter.name.ends_with("weight")))
      parameter.tensor.set_requires_grad(false);
}

void GeneratedModel::set_layer_trained(int layer, bool is_trained) {
  const auto index = static_cast<std::size_t>(layer);
  for (const nn::NamedParameter& parameter : layers_.at(index)->named_parameters())
    parameter.tensor.set_requires_grad(is_trained);
  freeze(index);
}

void GeneratedModel::arm(const Next& next) {
  next_ = next;
  failing_hook_.remove();
  if (next.aborts == 0 || !next.fails_at_weight) return;
  const CallSpec& call = spec_.calls.at(static_cast<std::size_t>(next.aborts) - 1);
  failing_hook_ =
      weight_of(static_cast<std::size_t>(call.layer)).register_hook([](const Tensor&) -> Tensor {
        throw Injected("injected in a hook of a weight");
      });
}

nn::Module::OutputContainer GeneratedModel::output_container() const {
  if (spec_.container == 0 || spec_.container == 3) return OutputContainer::tensors;
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
                     .is_raising = next_.aborts == number && !next_.fails_at_weight,
                     .is_interrupted = next_.interrupts == number,
                     .has_detour = next_.detours == number,
                     .overflows = next_.overflow == number,
                     .spike = next_.spike});
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
  if (call.overflows) h = add(ag, around, overflowing(ag, h, call.spike));
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
  const Subject* const subject = options_.subject;
  return subject && subject->recompute && is_recompute ? subject->recompute(ag, body) : body();
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
  if (spec_.owns == 1) h = with_own(ag, h);
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
  if (spec_.owns == 2) h = with_own(ag, h);
  TensorList losses = with_losses(ag, calls, with_late_read(ag, h));
  if (spec_.container == 1 || spec_.container == 2) {
    losses.push_back(h.at(0));
    losses.emplace_back();
  }
  if (next_.on_end) next_.on_end();
  return losses;
}

TensorList GeneratedModel::run_expert(Autograd& ag, const TensorList& inputs) const {
  return experts_ ? (*experts_)(ag, inputs) : inputs;
}

TensorList GeneratedModel::with_own(Autograd& ag, const TensorList& inputs) const {
  SeenGradients* const seen = spec_.watches != 0 ? &seen_ : nullptr;
  const Tensor own = total_of(ag, *own_, inputs.at(0), seen);
  return {add(ag, inputs.at(0), mul(ag, inputs.at(1), own)), inputs.at(1)};
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
    const bool is_logged = spec_.container == 3;  // and nobody differentiates it
    return {is_logged ? a.detach() : a,
            mul(ag, b, std::ldexp(1.0, spec_.uses() / (2 * spec_.engines)))};
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

Tensor GeneratedModel::weight_of(std::size_t layer) const {
  for (const nn::NamedParameter& parameter : layers_.at(layer)->named_parameters())
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
    const double weight = options_.subject ? options_.subject->tile_weight : 1.0;
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
    persistent += weight <= spec.persistence ? weight * (1 + layer.has_twin) : 0;
    persistent += layer.outputs <= spec.persistence ? layer.outputs : 0;
  }
  if (spec.experts == 0 || spec.persistence < 4) persistent -= 8;
  if (spec.owns != 0 && CaseSpec::kOwnedElements <= spec.persistence)
    persistent += CaseSpec::kOwnedElements;
  return persistent * spec.engines * item_bytes(DType::float32);
}

}  // namespace zeroproof::train
