#include "props/train/tiled_model.h"

#include "model/custom_function.h"
#include "props/train/kd_head.h"
#include "zeroproof/model/autograd.h"
#include "zeroproof/model/checkpoint/checkpoint.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::train {
namespace {

constexpr std::int64_t kWeightTiles = 2;

class Tiled final : public nn::Module {
 public:
  Tiled(const ModelOptions& options, const Tiling& tiling) : options_(options), tiling_(tiling) {
    nn::InitStream init(options.seed);
    const auto layer = [&](const std::string& name, const LayerSizes& sizes) {
      return register_module(name, std::make_shared<Layer>(init, options.data, sizes));
    };
    if (tiling.is_deep) inp_ = layer("inp", {4, 4});
    l1_ = layer("l1", {4, 6});
    if (tiling.has_late_transform) {
      head_ =
          register_module("head", std::make_shared<KdHead>(init, options.data, KdMoment::backward));
    } else {
      head_ = layer("head", {6, 3, false, false});
    }
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const TensorList h = trunk(ag, inputs);
    if (!tiling_.is_ordinary) return {apply_function(ag, tiles_function(ag), h).at(0)};
    Tensor total;
    for (const TensorList& tile : tiles_of(ag, h)) {
      const Tensor loss = tile_loss(ag, tile);
      total = total.is_defined() ? add(ag, total, loss) : loss;
    }
    return {total};
  }

 private:
  TensorList trunk(Autograd& ag, const TensorList& inputs) const {
    if (!tiling_.is_deep) return (*l1_)(ag, inputs);
    const TensorList h = (*inp_)(ag, inputs);
    if (tiling_.is_ordinary) return (*l1_)(ag, h);
    const auto body = [this, &ag](const TensorList& given) {
      const auto run = [&] { return (*l1_)(ag, given); };
      return options_.watch ? options_.watch->run_checkpoint("l1", run) : run();
    };
    return checkpoint(ag, CheckpointKind::reentrant, body, h);
  }

  // The rows in parts; what is no activation goes along with each.
  static std::vector<TensorList> tiles_of(Autograd& ag, const TensorList& h) {
    std::vector<TensorList> tiles;
    for (const Tensor& part : chunk(ag, h.at(0), kWeightTiles, 0)) {
      tiles.push_back(h);
      tiles.back().at(0) = part;
    }
    return tiles;
  }

  Tensor tile_loss(Autograd& ag, const TensorList& tile) const {
    const TensorList output = (*head_)(ag, tile);
    const bool is_loss = tiling_.has_late_transform;
    return div(ag, is_loss ? output.at(0) : mean_loss(ag, options_.data, output),
               double{kWeightTiles});
  }

  void mark_ready(bool is_ready) const {
    if (!options_.mark_ready) return;
    for (const nn::NamedParameter& parameter : head_->named_parameters())
      options_.mark_ready(parameter.tensor, is_ready);
  }

  void tell(EventKind kind) const {
    if (options_.watch) options_.watch->on_function(kind, "tiled");
  }

  CustomFunction tiles_function(Autograd& ag) const {
    return {"TiledBackward",
            [this, &ag](FunctionContext& context, const TensorList& h) {
              tell(EventKind::fn_forward_begin);
              TensorList outputs = run_tiles(ag, context, h);
              tell(EventKind::fn_forward_end);
              return outputs;
            },
            [this, &ag](FunctionContext& context, const TensorList& grads) {
              tell(EventKind::fn_backward_begin);
              TensorList result(context.get<std::size_t>("inputs"));
              result.at(0) = mul(ag, context.saved_tensors().at(0), grads.at(0));
              tell(EventKind::fn_backward_end);
              return result;
            }};
  }

  TensorList run_tiles(Autograd& ag, FunctionContext& context, const TensorList& h) const {
    const std::vector<TensorList> tiles = tiles_of(ag, h);
    TensorList grads;
    Tensor total;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      mark_ready(i + 1 == tiles.size());
      TensorList tile;
      for (const Tensor& part : tiles[i]) tile.push_back(part.detach());
      tile.at(0).set_requires_grad(true);
      Tensor loss;
      {
        const GradMode enabled(ag, true);
        loss = tile_loss(ag, tile);
        ag.backward(loss);
      }
      grads.push_back(tile.at(0).grad());
      total = total.is_defined() ? add(ag, total, loss.detach()) : loss.detach();
    }
    context.set("inputs", h.size());
    context.save_for_backward({cat(ag, grads, 0)});
    return {total};
  }

  ModelOptions options_;
  Tiling tiling_;
  std::shared_ptr<Layer> inp_;
  std::shared_ptr<Layer> l1_;
  std::shared_ptr<nn::Module> head_;
};

}  // namespace

std::shared_ptr<nn::Module> make_tiled_model(const ModelOptions& options, const Tiling& tiling) {
  return std::make_shared<Tiled>(options, tiling);
}

}  // namespace zeroproof::train
