#include "props/train/generated_program.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "model/check.h"
#include "model/functions.h"
#include "model/transforms/transforms.h"
#include "props/train/engine_target.h"
#include "props/train/generated_model.h"
#include "props/train/kept_files.h"
#include "props/train/pass.h"

namespace zeroproof::train {
namespace {

GeneratedModel& model_of(Pass& pass, std::size_t engine) {
  auto* const model = dynamic_cast<GeneratedModel*>(&pass.target().module(engine));
  ZP_CHECK(model, "a generated program runs on generated models");
  return *model;
}

// One window of a CaseSpec on one rank.
class GeneratedWindow {
 public:
  GeneratedWindow(const CaseSpec& spec, Pass& pass) : spec_(spec), pass_(pass) {}

  void run() {
    const int restores = spec_.micros.at(first_micro()).restores;
    if (restores != 0) train_for_nothing(restores == 2);
    train(false);
  }

 private:
  std::size_t first_micro() const {
    return static_cast<std::size_t>(pass_.step_number() * spec_.accumulation);
  }

  // What stops short leaves the last step out.
  void train(bool stops_short) {
    set_scale();
    for (std::size_t i = 0; i < static_cast<std::size_t>(spec_.accumulation); ++i) {
      set_boundary(i);
      record_boundary(i);
      run_micro(spec_.micros.at(first_micro() + i));
      const bool is_last = i + 1 == static_cast<std::size_t>(spec_.accumulation);
      if ((spec_.is_unmanaged == 0 || is_last) && !(is_last && stops_short)) pass_.step();
    }
  }

  void record_boundary(std::size_t micro) {
    bool is_boundary =
        spec_.is_unmanaged == 0 && micro + 1 == static_cast<std::size_t>(spec_.accumulation);
    if (auto* const target = dynamic_cast<EngineTarget*>(&pass_.target()))
      is_boundary = target->engine(0).is_gradient_accumulation_boundary();
    pass_.target().record("boundary", Tensor::full({}, is_boundary ? 1.0 : 0.0, DType::float32));
  }

  void set_scale() {
    if (spec_.owns_scale != 1) return;
    for (std::size_t engine = 0; engine < engines(); ++engine)
      pass_.target().override_loss_scale(engine,
                                         std::ldexp(1.0, pass_.step_number() % 2 == 0 ? 4 : 2));
  }

  void set_boundary(std::size_t micro) {
    if (spec_.sets_boundary == 0) return;
    const bool is_last = micro + 1 == static_cast<std::size_t>(spec_.accumulation);
    for (std::size_t engine = 0; engine < engines(); ++engine)
      pass_.target().set_boundary(engine, is_last);
  }

  std::size_t engines() const { return static_cast<std::size_t>(spec_.engines); }

  // Saved, trained on, and loaded: this window was never there. The baseline does not stop.
  void train_for_nothing(bool stops_short) {
    auto* const engines = dynamic_cast<EngineTarget*>(&pass_.target());
    if (!engines) return;
    const auto for_all = [&](auto call) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(spec_.engines); ++i) {
        const EngineCheckpointOptions options{.files = pass_.scenario().files.get()};
        const Result<void> done = call(engines->engine(i), "engine" + std::to_string(i), options);
        if (!done) throw std::runtime_error(done.error().text);
      }
    };
    for_all([](Engine& engine, const auto&... where) { return engine.save_checkpoint(where...); });
    Pass lost = pass_;
    GeneratedWindow(spec_, lost).train(stops_short);
    engines->take_values();
    if (spec_.stage < 3) overwrite_weights();
    for_all([](Engine& engine, const auto&... where) { return engine.load_checkpoint(where...); });
  }

  // A load brings back whatever the user did meanwhile.
  void overwrite_weights() {
    for (std::size_t engine = 0; engine < engines(); ++engine)
      for (const nn::NamedParameter& named : pass_.target().module(engine).named_parameters())
        pass_.autograd().ops().copy_in_place(
            named.tensor.detach(), Tensor::full(named.tensor.sizes(), 0.5, named.tensor.dtype()));
  }

  // Losses of one forward, in the order in which they are differentiated.
  using Losses = TensorList;

  void run_micro(const MicroSpec& micro) {
    if (micro.gathers != 0) look_at_weights();
    if (micro.idle_forward == 1) {
      const GradMode disabled(pass_.autograd(), false);
      forward(micro);
    }
    if (micro.idle_forward == 2) forward(micro);
    if (micro.idle_forward == 3) transform(micro);
    if (micro.throws != 0) throw_one(micro);
    if (micro.aborts != 0) abort_one(micro);
    if (micro.clears != 0) {
      train_once(micro);
      clear();
    }
    train_in_block(micro);
    if (micro.peeks != 0) peek();
    if (micro.misuse != 0) misuse(static_cast<Misuse>(micro.misuse));
  }

  void train_in_block(const MicroSpec& micro) {
    const auto body = [&] {
      train_once(micro);
      if (micro.repeats != 0) train_once(micro);
    };
    const auto block = static_cast<Block>(micro.block);
    if (block == Block::none) return body();
    if (block != Block::coalesced_backwards) return in_block(micro, body);
    const Losses losses = forward(micro);
    in_block(micro, [&] { differentiate(micro, losses); });
  }

  // Where the user's code throws behind it, what `body` did stays.
  void in_block(const MicroSpec& micro, const std::function<void()>& body) {
    const auto broken = [&] {
      body();
      throw Injected("injected behind what a block holds");
    };
    const auto block = static_cast<Block>(micro.block);
    if (micro.is_broken == 0) return in_block(block, 0, body);
    try {
      in_block(block, 0, broken);
    } catch (const Injected&) {
    }
  }

  // The engine under torch.func.grad: none of its own business.
  void transform(const MicroSpec& micro) {
    arm(micro);
    const func::Function loss = [&](const TensorList& inputs) {
      return TensorList{pass_.target().forward(0, inputs).at(0)};
    };
    const TensorList grads = func::grad(pass_.autograd(), loss, {-1})(pass_.next_inputs());
    pass_.target().record("func/grad", grads.at(0));
  }

  // Around both engines, where there are two.
  void in_block(Block block, std::size_t engine, const std::function<void()>& body) {
    if (engine == static_cast<std::size_t>(spec_.engines)) return body();
    const auto inner = [&] { in_block(block, engine + 1, body); };
    if (block != Block::no_sync) {
      pass_.target().coalesce(engine, inner);
    } else {
      pass_.target().no_sync(engine, inner);
    }
  }

  void throw_one(const MicroSpec& micro) {
    throws_ = micro.throws;
    try {
      forward(micro);
    } catch (const Injected&) {
    }
    throws_ = 0;
  }

  void abort_one(const MicroSpec& micro) {
    MicroSpec failing = micro;
    failing.outstanding = 0;
    aborts_ = micro.aborts;
    is_managed_ = micro.aborts_managed != 0;
    try {
      train_once(failing);
    } catch (const Injected&) {
    }
    aborts_ = 0;
    is_managed_ = false;
    if (micro.is_uncleared == 0) clear();  // otherwise nothing of it stays either
  }

  void clear() {
    for (std::size_t engine = 0; engine < engines(); ++engine) pass_.target().zero_grad(engine);
  }

  // Reading changes nothing, wherever in a window it is.
  void peek() {
    for (const FullTensor& master : pass_.target().masters(0))
      pass_.target().record("master " + master.name,
                            Tensor::of(master.values, master.sizes, DType::float32));
    auto* const target = dynamic_cast<EngineTarget*>(&pass_.target());
    if (target) target->engine(0).full_optimizer_state();
  }

  // What came of it is recorded; the baseline knows.
  void misuse(Misuse misuse) {
    bool is_refused = true;
    if (auto* const target = dynamic_cast<EngineTarget*>(&pass_.target()))
      is_refused = refuses(target->engine(0), misuse);
    else if (misuse == Misuse::unscaled_manual)
      forward(MicroSpec());
    pass_.target().record("refused/" + std::to_string(static_cast<int>(misuse)),
                          Tensor::full({}, is_refused ? 1.0 : 0.0, DType::float32));
  }

  bool refuses(Engine& engine, Misuse misuse) {
    const auto nothing = [] {};
    const auto in_block = [&](const std::function<void()>& body) {
      const bool has_no_sync = spec_.stage < 2 && spec_.is_unmanaged == 0;
      return [&engine, has_no_sync, body] {
        has_no_sync ? engine.no_sync(body) : engine.coalesce_grad_reduction(body);
      };
    };
    const auto vector = [&] {
      Tensor loss = Tensor::full({2}, 1.0, model_dtype(static_cast<Precision>(spec_.precision)));
      loss.set_requires_grad(true);
      return loss;
    };
    switch (misuse) {
      case Misuse::step_in_block:
        return throws(EngineErrorId::e7, in_block([&] { engine.step(); }));
      case Misuse::no_sync:
        if (spec_.stage >= 2) return throws(EngineErrorId::e6, [&] { engine.no_sync(nothing); });
        return throws(EngineErrorId::e6, [&] { engine.no_sync([&] { engine.no_sync(nothing); }); });
      case Misuse::coalesce: {
        const auto coalesce = [&] { engine.coalesce_grad_reduction(nothing); };
        if (spec_.stage == 0 || spec_.is_unmanaged != 0) return throws(EngineErrorId::e8, coalesce);
        return throws(EngineErrorId::e8, in_block(coalesce));
      }
      case Misuse::loss_of_vector:
        return throws(EngineErrorId::e3, [&] { engine.backward(vector()); }) &&
               (!engine.needs_scaler() ||
                throws(EngineErrorId::e4, [&] { engine.scale(vector()); }));
      case Misuse::set_boundary:
        return throws(EngineErrorId::e9, [&] { engine.set_gradient_accumulation_boundary(true); });
      case Misuse::unscaled_manual: {
        const Tensor loss = forward(MicroSpec()).front();
        return throws(EngineErrorId::e2,
                      [&] { pass_.target().tensor_backward({loss}, {}, false); });
      }
      case Misuse::late_loss_scale:
        return !engine.override_loss_scale(2.0 * engine.loss_scale());
      default:
        return !engine.override_loss_scale(0.0);
    }
  }

  static bool throws(EngineErrorId id, const std::function<void()>& call) {
    try {
      call();
    } catch (const EngineError& error) {
      return error.id() == id;
    }
    return false;
  }

  void train_once(const MicroSpec& micro) {
    const Losses first = forward(micro);
    if (micro.rehooks != 0) make_hooks_anew();
    if (static_cast<Outstanding>(micro.outstanding) == Outstanding::none)
      return differentiate(micro, first);
    const Losses second = forward(micro);
    const bool is_reversed = static_cast<Outstanding>(micro.outstanding) == Outstanding::reversed;
    differentiate(micro, is_reversed ? second : first);
    differentiate(micro, is_reversed ? first : second);
  }

  void arm(const MicroSpec& micro) {
    const bool overflows = micro.overflow_rank == pass_.target().rank();
    for (std::size_t engine = 0; engine < static_cast<std::size_t>(spec_.engines); ++engine)
      model_of(pass_, engine)
          .arm({.skips = micro.skips,
                .aborts = aborts_,
                .overflow = engine == 0 ? micro.overflow : 0,
                .is_infinite = overflows,
                .expert = next_expert(),
                .throws = engine == 0 ? throws_ : 0});
  }

  // Each rank its own where the engine can do it: as a leaf module.
  int next_expert() {
    const int apart = spec_.stage == 3 ? pass_.target().rank() : 0;
    return (forwards_++ + apart) % 2;
  }

  // As whoever takes them off to generate, and puts them on again.
  void make_hooks_anew() {
    auto* const engines = dynamic_cast<EngineTarget*>(&pass_.target());
    if (!engines) return;
    for (const nn::NamedModule& module : engines->module(0).named_modules())
      if (module.name == GeneratedModel::kExperts)
        engines->engine(0).set_leaf_module(*module.module);
  }

  // The user looks at the weights, in the order and as often as the program of this rank has them.
  void look_at_weights() {
    nn::Module& module = pass_.target().module(0);
    const std::vector<nn::NamedParameter> named = module.named_parameters();
    const auto look = [&] {
      for (const nn::NamedParameter& parameter : named)
        pass_.target().record("weight " + parameter.name, parameter.tensor);
    };
    auto* const engines = dynamic_cast<EngineTarget*>(&pass_.target());
    if (!engines || spec_.stage != 3) return look();
    TensorList list;
    for (const nn::NamedParameter& parameter : named) list.push_back(parameter.tensor);
    if (pass_.target().rank() % 2 == 1) {
      std::ranges::reverse(list);
      list.push_back(list.front());
    }
    engines->engine(0).gathered_parameters(list, std::nullopt, look);
  }

  Losses forward(const MicroSpec& micro) {
    arm(micro);
    const TensorList inputs = pass_.next_inputs();
    if (spec_.input_grad != 0) inputs.at(0).set_requires_grad(true);
    TensorList losses = pass_.target().forward(0, inputs);
    losses.resize(static_cast<std::size_t>(spec_.heads));
    if (spec_.engines == 2) pass_.target().record("loss", losses.at(0).detach());
    if (spec_.engines == 2) losses = {joined(losses.at(0), inputs)};
    if (spec_.engines == 1)
      for (const Tensor& loss : losses) pass_.target().record("loss", loss.detach());
    if (micro.has_bypass != 0) {
      const Tensor term = model_of(pass_, 0).bypass(pass_.autograd(), inputs);
      losses.back() = add(pass_.autograd(), losses.back(), term);
    }
    return losses;
  }

  // The loss of two engines.
  Tensor joined(const Tensor& first, const TensorList& inputs) {
    TrainTarget& target = pass_.target();
    Tensor a = first;
    Tensor b = target.forward(1, inputs).at(0);
    b = mul(pass_.autograd(), b, std::ldexp(1.0, spec_.uses() / 2));
    if (pass_.is_manual() && target.needs_scaler(0) && pass_.autograd().is_grad_enabled()) {
      a = target.scale(0, a, false);
      b = target.scale(1, b, false);
    }
    return add(pass_.autograd(), a, b);
  }

  void differentiate(const MicroSpec& micro, const Losses& losses) {
    if (losses.size() == 1) return backward(micro, losses.front(), false);
    switch (static_cast<train::Losses>(micro.losses)) {
      case train::Losses::both:
        backward(micro, losses.at(0), true);
        backward(micro, losses.at(1), false);
        return;
      case train::Losses::first:
        return backward(micro, losses.at(0), false);
      case train::Losses::second:
        return backward(micro, losses.at(1), false);
      case train::Losses::sum:
        return backward(micro, add(pass_.autograd(), losses.at(0), losses.at(1)), false);
    }
  }

  // Past the engine, stage 3 under autocast has weights rounded for the wire, the baseline whole.
  bool reads_rounded(const MicroSpec& micro) const {
    return micro.has_bypass != 0 && static_cast<Precision>(spec_.precision) == Precision::autocast;
  }

  void backward(const MicroSpec& micro, const Tensor& loss, bool retain_graph) {
    const bool is_undivided = micro.is_undivided != 0;
    const bool is_managed = is_managed_ && spec_.engines == 1;
    if (is_undivided || is_managed || !pass_.is_manual()) {
      const Tensor returned = pass_.target().backward(
          0, loss, {.retain_graph = retain_graph, .scale_wrt_gas = !is_undivided});
      if (!reads_rounded(micro)) pass_.target().record("returned", returned);
    } else if (spec_.engines == 2 && pass_.is_manual()) {
      pass_.target().tensor_backward({loss}, {}, retain_graph);  // scaled already
    } else {
      pass_.differentiate(loss, retain_graph, 0);
    }
  }

  const CaseSpec& spec_;
  Pass& pass_;
  int aborts_ = 0;
  int throws_ = 0;
  bool is_managed_ = false;  // the backward that throws is the engine's
  int forwards_ = 0;
};

void generated_window(Pass& pass) {
  GeneratedWindow(*pass.scenario().spec, pass).run();
}

}  // namespace

TrainScenario scenario_of(const CaseSpec& spec) {
  TrainScenario scenario;
  scenario.name = "generated";
  scenario.summary = "a generated case";
  scenario.window = generated_window;
  const auto engines = static_cast<std::size_t>(spec.engines);
  scenario.models.assign(engines, ModelKind::generated);
  scenario.truth.assign(engines, ModelKind::generated_truth);
  scenario.spec = &spec;
  const auto restores = [](const MicroSpec& micro) { return micro.restores != 0; };
  if (std::ranges::any_of(spec.micros, restores)) scenario.files = std::make_shared<KeptFiles>();
  scenario.accumulation_steps = spec.accumulation;
  scenario.is_managed = spec.is_unmanaged == 0;
  scenario.skips_frames = spec.skips_frames != 0;
  if (spec.experts != 0) scenario.leaf_module = GeneratedModel::kExperts;
  scenario.is_offloaded = spec.is_offloaded != 0;
  scenario.has_ranks_apart = spec.has_ranks_apart != 0;
  if (spec.owns_scale == 2) scenario.custom_loss_scale = CaseSpec::kCustomLossScale;
  scenario.parameter_groups = static_cast<std::size_t>(spec.groups);
  scenario.forwards = spec.forwards();
  scenario.uses = spec.uses();
  return scenario;
}

}  // namespace zeroproof::train
