#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "model/cpu_ops.h"
#include "model/optim/adam.h"
#include "model/optim/sgd.h"
#include "tests/peer/support/check.h"
#include "tests/peer/support/net.h"

namespace zeroproof::peer {

struct DdpOptions {
  int ranks = 2;
  DType dtype = DType::float32;
  double loss_scale = 1.0;  // what every loss is multiplied with; gradients are divided by it
  bool is_mean = true;      // else gradients are summed over the ranks
  double max_norm = 0.0;    // 0: no clipping
  bool is_sgd = false;
  optim::AdamOptions adam = {};
  optim::SgdOptions sgd = {};
};

// What every row compares with: plain data-parallel training, one model and one Autograd a rank,
// whose local gradients are averaged in the order of the ranks. It uses no part of the engine.
class Ddp {
 public:
  Ddp(const NetMaker& make, const DdpOptions& options);

  // One forward and its backward on rank `rank`; losses that it differentiates go through scaled().
  using Pass = std::function<void(Autograd& ag, nn::Module& module, int rank)>;
  void run(const Pass& pass);
  Tensor scaled(Autograd& ag, const Tensor& loss) const;

  // Of everything since the last step. None for a parameter that got none.
  FullTensors gradients() const;
  FullTensors parameters() const;  // the float32 masters
  void step();
  void zero_grad();

 private:
  struct Replica {
    explicit Replica(const Ops& ops) : ag(ops) {}
    Autograd ag;
    ModulePtr module;
    std::vector<nn::NamedParameter> parameters = {};
  };

  std::vector<double> average(std::size_t parameter) const;
  double clip_factor() const;
  void write_back();

  CpuOps ops_;
  DdpOptions options_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  TensorList masters_;
  std::unique_ptr<optim::Optimizer> optimizer_;
};

}  // namespace zeroproof::peer
