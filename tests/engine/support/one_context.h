#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/zero/zero_context.h"
#include "model/cpu_ops.h"
#include "tests/engine/support/small_models.h"
#include "zeroproof/engine/runtime/host/host_world.h"
#include "zeroproof/internal/engine/hooks/backward_tracker.h"

namespace zeroproof {

// A model whose only parameters are vectors of these lengths.
class VectorsModel : public nn::Module {
 public:
  explicit VectorsModel(const std::vector<std::int64_t>& lengths) {
    for (const std::int64_t length : lengths)
      register_parameter("v" + std::to_string(length), trainable({length}, 0.0));
  }

 protected:
  TensorList forward(Autograd&, const TensorList& inputs) const override { return inputs; }
};

// What the parts of an engine share, without an engine: one rank of a world, on this thread. No
// collective can run where there are several ranks.
class OneContext {
 public:
  OneContext(std::shared_ptr<nn::Module> model, const ZeroConfig& given, int ranks = 1,
             int rank = 0)
      : config_(given),
        module_(std::move(model)),
        world_({.world_size = ranks}),
        autograd_(ops_),
        context_{.autograd = autograd_,
                 .module = *module_,
                 .config = config_,
                 .runtime = world_.runtime(rank),
                 .upstream = {},
                 .tracker = tracker_,
                 .events = Events(world_.runtime(rank), EngineId{0}),
                 .parameters = {},
                 .loss_scaler = LossScaler(),
                 .data = Communicator(world_.runtime(rank).group(GroupKind::data), context_.events),
                 .tensor =
                     Communicator(world_.runtime(rank).group(GroupKind::tensor), context_.events)} {
    for (const nn::NamedParameter& named : module_->named_parameters()) {
      ZeroParameter& parameter = context_.parameters.emplace_back();
      parameter.id = ParamId{static_cast<std::int32_t>(context_.parameters.size()) - 1};
      parameter.group = 0;
      parameter.name = named.name;
      parameter.tensor = named.tensor;
      parameter.sizes = named.tensor.sizes();
      parameter.elements = named.tensor.numel();
    }
  }

  ZeroContext& operator*() { return context_; }
  ZeroContext* operator->() { return &context_; }
  BackwardTracker& tracker() { return tracker_; }

 private:
  ZeroConfig config_;
  std::shared_ptr<nn::Module> module_;
  HostWorld world_;
  CpuOps ops_;
  Autograd autograd_;
  BackwardTracker tracker_;
  ZeroContext context_;
};

}  // namespace zeroproof
