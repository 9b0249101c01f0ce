// tests/unit/v1/zero/test_zero.py: parameters, activations and gradients of stage 3 by number.
#include <array>

#include "tests/peer/support/training.h"

namespace zeroproof::peer {
namespace {

using Container = nn::Module::OutputContainer;

struct Variant {
  int threshold = 0;
  bool is_fp16 = false;
  bool is_contiguous = true;
  bool is_offloaded = false;
  bool zeroes_grad = false;
  bool prefetches = false;
  bool reduce_scatter = true;
  Container container = Container::tensors;
};

constexpr std::int64_t kElements = 15;  // of a layer, [3, 5]: 8 on rank 0, 7 on rank 1

DType dtype_of(const Variant& is) {
  return is.is_fp16 ? DType::float16 : DType::float32;
}

// Of the parameters of layer `number` what rank r owns is number * (1 + r).
ModulePtr make_layer(int number, const Variant& is) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < kElements; ++i) values.push_back(number * (i < 8 ? 1.0 : 2.0));
  const Tensor weight = Tensor::of(values, {3, 5}, DType::float32);
  weight.set_requires_grad(true);
  const auto layer = std::make_shared<Net>(
      Net::Parts{.parameters = {{"weight", weight}}},
      [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
        require(net.parameter("weight").numel() == kElements, "whole inside its layer");
        return {mul(ag, in.at(0), net.parameter("weight")), Tensor()};
      });
  layer->container = is.container;
  return layer;
}

// l3(l2(l1(x))), with a look at the parameters before and after each layer.
NetMaker make_product(const Variant& is, const std::function<void(int, bool)>& look) {
  return [is, look]() -> ModulePtr {
    Net::Parts parts;
    for (int i = 1; i <= 3; ++i)
      parts.children.emplace_back("l" + std::to_string(i), make_layer(i, is));
    const auto root = std::make_shared<Net>(
        parts, [look](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          Tensor x = in.at(0);
          for (int i = 1; i <= 3; ++i) {
            look(i, false);
            x = net.call_list(ag, "l" + std::to_string(i), {x}).at(0);
            look(i, true);
          }
          return {x, Tensor()};
        });
    root->container = is.container;
    return root;
  };
}

ZeroConfig config_of(const Variant& is) {
  ZeroConfig config = base_config(3, dtype_of(is));
  config.fp16.loss_scale = 1.0;
  config.stage3_param_persistence_threshold = is.threshold;
  config.contiguous_gradients = is.is_contiguous;
  if (is.is_offloaded) config.offload_optimizer = OffloadDevice::cpu;
  config.stage3_prefetch_bucket_size = is.prefetches ? 3 * kElements : 0;
  config.stage3_max_reuse_distance = 0;
  config.reduce_scatter = is.reduce_scatter;
  return config;
}

void check_gradients(Engined& engine, double factor) {
  const double of_rank[2][3] = {{6.0, 3.0, 2.0}, {24.0, 12.0, 8.0}};
  const FullTensors gradients = engine->full_gradients();
  for (int layer = 1; layer <= 3; ++layer) {
    const FullTensor& gradient = find(gradients, "l" + std::to_string(layer) + ".weight");
    require(std::ssize(gradient.values) == kElements, "a whole gradient");
    for (std::int64_t i = 0; i < kElements; ++i)
      require_near(gradient.values[static_cast<std::size_t>(i)],
                   factor * of_rank[i < 8 ? 0 : 1][layer - 1], 1e-6, gradient.name);
  }
}

void check_activations(const Tensor& x) {
  require(x.numel() == kElements, "sizes of the result");
  for (std::int64_t i = 0; i < kElements; ++i)
    require_near(x.values()[static_cast<std::size_t>(i)], i < 8 ? 6.0 : 48.0, 1e-6, "activation");
}

void check_partitioning(Rank& rank, const Variant& is) {
  Engined* looked_at = nullptr;
  const auto look = [&](int layer, bool is_after) {
    if (!looked_at || is.prefetches) return;
    require(looked_at->partitioned("l" + std::to_string(layer) + ".weight").is_partitioned(),
            std::string("partitioned ") + (is_after ? "after" : "before") + " its layer");
  };
  Engined engine = rank.engine(make_product(is, look), config_of(is));
  looked_at = &engine;
  for (int layer = 1; layer <= 3; ++layer) {
    const auto slice = engine.partitioned("l" + std::to_string(layer) + ".weight").slice().values();
    require(slice.size() == 8 && slice[0] == layer * (1.0 + rank.rank()), "the rank's slice");
    require(rank.rank() == 0 || slice[7] == 0.0, "padding is zero");
  }
  for (int iteration = 0; iteration < 3; ++iteration) {
    const Tensor x = Tensor::full({3, 5}, 1.0, dtype_of(is));
    const Tensor y = engine->forward(TensorList{x}).at(0);
    check_activations(y);
    engine->backward(sum(rank.ag, y));
    require_released(engine, "after the backward");
    check_gradients(engine, is.zeroes_grad ? 1.0 : iteration + 1.0);
    if (is.zeroes_grad) engine->zero_grad();
  }
  engine->step();
  require_released(engine, "after the step");
}

void partitions(const Twin& twin, const std::vector<Variant>& variants) {
  for (std::size_t i = 0; i < variants.size(); ++i)
    within("variant " + std::to_string(i),
           [&] { on_ranks(2, twin, [&](Rank& rank) { check_partitioning(rank, variants[i]); }); });
}

}  // namespace

PEER_ROW(TestZero3ParamPartitioningBase, test_param_persistence_threshold) {
  partitions(twin, {{.threshold = 0}, {.threshold = 10}});
}

PEER_ROW(TestZero3ParamPartitioningBase, test_fp16_enabled) {
  partitions(twin, {{.is_fp16 = false}, {.is_fp16 = true}});
}

PEER_ROW(TestZero3ParamPartitioningBase, test_contiguous_gradients) {
  partitions(twin, {{.is_contiguous = false}, {.is_contiguous = true}});
}

PEER_ROW(TestZero3ParamPartitioningBase, test_offload_optimizer) {
  partitions(twin, {{.is_offloaded = false}, {.is_offloaded = true}});
}

PEER_ROW(TestZero3ParamPartitioningBase, test_zero_grad) {
  partitions(twin, {{.zeroes_grad = false}, {.zeroes_grad = true}});
}

PEER_ROW(TestZero3ParamPartitioningBase, test_prefetching) {
  partitions(twin, {{.prefetches = false}, {.prefetches = true}});
}

PEER_ROW(TestZero3ParamPartitioningBase, test_reduce_scatter) {
  partitions(twin, {{.reduce_scatter = false}, {.reduce_scatter = true}});
}

// Lists and tuples are one to us; named tuples are containers of their own.
PEER_ROW(TestZero3ParamPartitioningBase, test_model_class) {
  partitions(twin, {{.container = Container::tensors},
                    {.container = Container::dict},
                    {.container = Container::dataclass}});
}

PEER_ROW(TestZero3ParamPartitioningLargeParam, test) {
  constexpr std::int64_t kLarge = 8100;
  const NetMaker make = []() -> ModulePtr {
    std::vector<double> values(kLarge, 0.0);
    for (std::int64_t i = kLarge / 2; i < kLarge; ++i) values[static_cast<std::size_t>(i)] = 1.0;
    const Tensor weight = Tensor::of(values, {kLarge}, DType::float32);
    weight.set_requires_grad(true);
    return std::make_shared<Net>(
        Net::Parts{.parameters = {{"weight", weight}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          return {mul(ag, in.at(0), net.parameter("weight"))};
        });
  };
  each("reduce_scatter", std::array{false, true}, [&](bool reduce_scatter) {
    on_ranks(2, twin, [&](Rank& rank) {
      ZeroConfig config = base_config(3);
      config.reduce_scatter = reduce_scatter;
      Engined engine = rank.engine(make, config);
      for (int iteration = 0; iteration < 3; ++iteration) {
        const Tensor y = engine->forward(Tensor::full({kLarge}, 1.0, DType::float32));
        const std::vector<double> values = y.values();
        for (std::size_t i = 0; i < values.size(); ++i)
          require(values[i] == (i < kLarge / 2 ? 0.0 : 1.0), "the activation is the owner's rank");
        rank.ag.backward(sum(rank.ag, y));
        const FullTensors gradients = engine->full_gradients();
        for (const double value : find(gradients, "weight").values)
          require_near(value, iteration + 1.0, 0.0, "gradient");
      }
    });
  });
}

PEER_ROW(TestZero3ParamPartitioningManyParams, test) {
  constexpr int kLayers = 100;
  const NetMaker make = []() -> ModulePtr {
    Net::Parts parts;
    for (int i = 0; i < kLayers; ++i) {
      const Tensor weight = Tensor::full({100}, 1.0 + (i % 2 == 0 ? 1.0 : -0.5), DType::float32);
      weight.set_requires_grad(true);
      parts.children.emplace_back(
          "l" + std::to_string(i),
          std::make_shared<Net>(
              Net::Parts{.parameters = {{"weight", weight}}},
              [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
                return {mul(ag, in.at(0), net.parameter("weight"))};
              }));
    }
    return std::make_shared<Net>(
        parts, [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          Tensor x = in.at(0);
          for (int i = 0; i < kLayers; ++i) x = net.call(ag, "l" + std::to_string(i), x);
          return {x};
        });
  };
  on_ranks(2, twin, [&](Rank& rank) {
    Engined engine = rank.engine(make, base_config(3));
    for (int iteration = 0; iteration < 2; ++iteration) {
      const Tensor y = engine->forward(Tensor::full({100}, 1.0, DType::float32));
      for (const double value : y.values()) require_near(value, 1.0, 0.0, "2 and 1/2 in turn");
      rank.ag.backward(sum(rank.ag, y));
      require_released(engine, "after the backward");
    }
    const FullTensors gradients = engine->full_gradients();
    require_near(find(gradients, "l0.weight").values.at(7), 1.0, 0.0, "two times one half");
    require_near(find(gradients, "l1.weight").values.at(99), 4.0, 0.0, "two times two");
  });
}

PEER_ROW(TestZeroPartitionCache, test_training_partition_cache) {
  each("training", std::array{true, false}, [&](bool trains) {
    on_ranks(1, twin, [&](Rank& rank) {
      ZeroConfig config = base_config(3);
      config.stage3_param_persistence_threshold = 100;
      Engined engine = rank.engine(make_stack({}), config);
      for (int step = 0; step < 2; ++step) {
        const GradMode mode(rank.ag, trains);
        const Place place{0, step, 0};
        const Tensor loss = engine->forward(batch_of(place, 4, DType::float32)).at(0);
        if (!trains) continue;
        rank.ag.backward(loss);
        engine->step();
      }
      ParameterGatherer& gatherer = engine.zero3().gatherer();
      require(gatherer.available_elements() > 0, "persistent parameters are resident");
      if (!twin.has_fault("no release"))
        for (PartitionedParameter& parameter : gatherer.parameters()) gatherer.partition(parameter);
      require(gatherer.available_elements() == 0, "nothing is resident after the release");
      for (PartitionedParameter& parameter : gatherer.parameters())
        require(parameter.parameter().tensor.numel() == 0, "no elements");
    });
  });
}

}  // namespace zeroproof::peer
