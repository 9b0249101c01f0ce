#include "tests/peer/support/training.h"

namespace zeroproof::peer {

TensorList batch_of(const Place& place, std::int64_t width, DType dtype, std::int64_t rows) {
  const auto seed =
      static_cast<std::uint64_t>(1000 + 100 * place.rank + 10 * place.step + place.micro);
  return {sample({rows, width}, 2 * seed, dtype), sample({rows, width}, 2 * seed + 1, dtype)};
}

namespace {

TensorList inputs_of(const Loop& loop, const Place& place, DType dtype) {
  return loop.inputs ? loop.inputs(place) : batch_of(place, 4, dtype);
}

Tensor loss_of(Autograd& ag, const Loop& loop, const TensorList& outputs, const Place& place) {
  return loop.loss ? loop.loss(ag, outputs, place) : outputs.at(0);
}

Tensor ones_like(const Tensor& tensor) {
  return Tensor::full(tensor.sizes(), 1.0, tensor.dtype());
}

}  // namespace

DdpOptions reference_of(int ranks, const ZeroConfig& config, DdpOptions options) {
  options.ranks = ranks;
  options.dtype = config.model_dtype();
  if (config.fp16.enabled)
    options.loss_scale = config.fp16.loss_scale > 0.0
                             ? config.fp16.loss_scale
                             : static_cast<double>(1 << config.fp16.initial_scale_power);
  return options;
}

void run_engine(Rank& rank, Engined& engine, const Loop& loop, const Place& place) {
  const TensorList outputs =
      engine->forward(inputs_of(loop, place, engine->config().model_dtype()));
  const Tensor loss = loss_of(rank.ag, loop, outputs, place);
  if (loop.is_non_scalar) {
    rank.ag.backward({loss}, {ones_like(loss)});
  } else if (loop.way == BackwardWay::managed) {
    engine->backward(loss, {.scale_wrt_gas = loop.scale_wrt_gas});
  } else {
    rank.ag.backward(engine->needs_scaler() ? engine->scale(loss) : loss);
  }
}

void run_reference(Ddp& ddp, const Loop& loop, const ZeroConfig& config, const Place& place) {
  ddp.run([&](Autograd& ag, nn::Module& module, int rank) {
    Place here = place;
    here.rank = rank;
    const TensorList outputs = module(ag, inputs_of(loop, here, config.model_dtype()));
    Tensor loss = loss_of(ag, loop, outputs, here);
    if (loop.is_non_scalar) return ag.backward({loss}, {ones_like(loss)});
    const auto gas = static_cast<double>(config.gradient_accumulation_steps);
    if (loop.scale_wrt_gas && gas != 1.0) loss = div(ag, loss, gas);
    ag.backward(ddp.scaled(ag, loss));
  });
}

void require_matches_ddp(Rank& rank, const NetMaker& make, const ZeroConfig& config,
                         const Loop& loop) {
  Engined engine = rank.engine(make, config);
  Ddp ddp(make, reference_of(rank.ranks(), config, loop.reference));
  const Tolerance tolerance = tolerance_of(config.model_dtype());
  for (int step = 0; step < loop.steps; ++step) {
    const std::string when = "step " + std::to_string(step);
    for (int micro = 0; micro < loop.micro_batches; ++micro) {
      const Place place{rank.rank(), step, micro};
      run_engine(rank, engine, loop, place);
      run_reference(ddp, loop, config, place);
      if (loop.after_backward) loop.after_backward(engine, place);
      const bool is_last = micro + 1 == loop.micro_batches;
      if (is_last && loop.compares_gradients && (step == 0 || !loop.is_first_only)) {
        const FullTensors gradients = engine->full_gradients();
        require(has_values(gradients), when + ": no gradients at all");
        require_equal(gradients, ddp.gradients(), tolerance, when + ", gradients");
      }
      engine->step();
    }
    ddp.step();
    require(engine->global_steps() == step + 1, when + ": global_steps");
    if (loop.compares_parameters)
      require_equal_parameters(engine->full_parameters(), ddp.parameters(), tolerance,
                               when + ", parameters");
  }
}

FullTensors train(Rank& rank, const NetMaker& make, const ZeroConfig& config, const Loop& loop) {
  Engined engine = rank.engine(make, config);
  for (int step = 0; step < loop.steps; ++step)
    for (int micro = 0; micro < loop.micro_batches; ++micro) {
      run_engine(rank, engine, loop, {rank.rank(), step, micro});
      if (loop.after_backward) loop.after_backward(engine, {rank.rank(), step, micro});
      engine->step();
    }
  return engine->full_parameters();
}

}  // namespace zeroproof::peer
