// Models with a leaf module or an embedding.
#include "model/nn/embedding.h"
#include "model/nn/norm.h"
#include "props/train/models.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::train {
namespace {

// A norm and two branches, every one of them used: fetched as one unit when it is a leaf module.
class LeafBlock final : public nn::Module {
 public:
  LeafBlock(nn::InitStream& init, DataMode data) {
    if (data == DataMode::real) {
      const Tensor weight = nn::constant_parameter({5}, 1.0, DType::float32);
      norm_ = register_module("norm", std::make_shared<nn::RmsNorm>(weight));
    }
    a_ = register_module("a", std::make_shared<Layer>(init, data, LayerSizes{5, 5}));
    b_ = register_module("b", std::make_shared<Layer>(init, data, LayerSizes{5, 5}));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    TensorList h = inputs;
    if (norm_) h.at(0) = (*norm_)(ag, h.at(0));
    const Tensor a = (*a_)(ag, h).at(0);
    const Tensor b = (*b_)(ag, h).at(0);
    h.at(0) = add(ag, a, b);
    return h;
  }

 private:
  std::shared_ptr<nn::RmsNorm> norm_;
  std::shared_ptr<Layer> a_;
  std::shared_ptr<Layer> b_;
};

// Exact data: the block has two ways through it, so that what comes before counts twice.
class Leaf final : public nn::Module {
 public:
  explicit Leaf(const ModelOptions& options) : data_(options.data) {
    nn::InitStream init(options.seed);
    const auto layer = [&](const std::string& name, const LayerSizes& sizes) {
      return register_module(name, std::make_shared<Layer>(init, data_, sizes));
    };
    inp_ = layer("inp", {4, 5});
    blk_ = register_module("blk", std::make_shared<LeafBlock>(init, data_));
    head_ = layer("head", {5, 2, true, false});
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    return {mean_loss(ag, data_, (*head_)(ag, (*blk_)(ag, (*inp_)(ag, inputs))))};
  }

 private:
  DataMode data_;
  std::shared_ptr<Layer> inp_;
  std::shared_ptr<LeafBlock> blk_;
  std::shared_ptr<Layer> head_;
};

// Takes {row numbers}, or for exact data {row numbers, c}: the loss is then c times the sum of
// all that the embedding and the layer give.
class SkippedFrame final : public nn::Module {
 public:
  explicit SkippedFrame(const ModelOptions& options) : data_(options.data) {
    nn::InitStream init(options.seed);
    emb_ = register_module(
        "emb", std::make_shared<nn::Embedding>(init.parameter({7, 4}, 1.0, DType::float32)));
    lin_ =
        register_module("lin", std::make_shared<Layer>(init, data_, LayerSizes{4, 3, true, false}));
  }

 protected:
  TensorList forward(Autograd& ag, const TensorList& inputs) const override {
    const Tensor rows = (*emb_)(ag, inputs.at(0));
    if (data_ == DataMode::real) return {mean_loss(ag, data_, (*lin_)(ag, TensorList{rows}))};
    const Tensor& c = inputs.at(1);
    const Tensor h = mul(ag, c, sum(ag, rows, {1}, KeepDim::no));
    // The mean over two rows halves what each of them gets.
    return {mean_loss(ag, data_, (*lin_)(ag, TensorList{mul(ag, h, 2.0), c}))};
  }

 private:
  DataMode data_;
  std::shared_ptr<nn::Embedding> emb_;
  std::shared_ptr<Layer> lin_;
};

}  // namespace

std::shared_ptr<nn::Module> make_structured_model(ModelKind kind, const ModelOptions& options) {
  switch (kind) {
    case ModelKind::leaf:
      return std::make_shared<Leaf>(options);
    case ModelKind::skipped_frame:
      return std::make_shared<SkippedFrame>(options);
    default:
      return nullptr;
  }
}

}  // namespace zeroproof::train
