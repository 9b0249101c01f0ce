// Tiles: a loss whose backward runs inside forward, tile by tile (TiledFusedLogitsLoss).
#include "model/custom_function.h"
#include "props/interpreter/tree.h"
#include "props/train/subject.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::program {
namespace {

constexpr std::int64_t kTiles = 2;

}  // namespace

Tensor Tree::tile_loss(Autograd& ag, const Tiled& spec, const Tensor& tile,
                       const TensorList& given) {
  return div(ag, mean(ag, run(ag, spec.body, tile, given)), static_cast<double>(kTiles));
}

void Tree::mark_ready(const ModuleList& list, bool is_ready) const {
  if (!options_.mark_ready) return;
  for (const Module& node : list) {
    if (const ModuleList* const body = body_of(node)) mark_ready(*body, is_ready);
    if (const nn::Module* const module = module_of(node.name))
      for (const nn::NamedParameter& named : module->named_parameters())
        options_.mark_ready(named.tensor, is_ready);
  }
}

Tensor Tree::run_tiles(Autograd& ag, const Module& node, const Tiled& spec, const Tensor& h,
                       const TensorList& given) {
  if (options_.is_reference) {
    Tensor total;
    for (const Tensor& tile : chunk(ag, h, kTiles, 0)) {
      const Tensor loss = tile_loss(ag, spec, tile, given);
      total = total.is_defined() ? add(ag, total, loss) : loss;
    }
    return total;
  }
  const auto tell = [watch = options_.watch, &node](EventKind kind) {
    if (watch) watch->on_function(kind, node.name);
  };
  const CustomFunction function{
      "TiledBackward",
      [this, &ag, &spec, &given, tell](FunctionContext& context, const TensorList& inputs) {
        tell(EventKind::fn_forward_begin);
        const TensorList results = differentiate_tiles(ag, spec, inputs.at(0), given);
        context.save_for_backward({results.at(1)});
        tell(EventKind::fn_forward_end);
        return TensorList{results.at(0)};
      },
      [&ag, tell](FunctionContext& context, const TensorList& grads) {
        tell(EventKind::fn_backward_begin);
        const Tensor scaled = mul(ag, context.saved_tensors().at(0), grads.at(0));
        tell(EventKind::fn_backward_end);
        return TensorList{scaled};
      }};
  return apply_function(ag, function, {h}).at(0);
}

// The loss, and its gradient for the activations.
TensorList Tree::differentiate_tiles(Autograd& ag, const Tiled& spec, const Tensor& h,
                                     const TensorList& given) {
  const TensorList tiles = chunk(ag, h, kTiles, 0);
  TensorList grads;
  Tensor total;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    mark_ready(spec.body, i + 1 == tiles.size());
    const Tensor tile = tiles[i].detach();
    tile.set_requires_grad(true);
    const GradMode enabled(ag, true);
    const Tensor loss = tile_loss(ag, spec, tile, given);
    const double weight = options_.subject ? options_.subject->tile_weight : 1.0;
    ag.backward(weight == 1.0 ? loss : mul(ag, loss, weight));
    grads.push_back(tile.grad());
    total = total.is_defined() ? add(ag, total, loss.detach()) : loss.detach();
  }
  return {total.detach(), cat(ag, grads, 0)};
}

}  // namespace zeroproof::program
