#include "props/interpreter/interpreter.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/check.h"
#include "props/interpreter/observe.h"
#include "props/interpreter/program_count.h"
#include "props/interpreter/user_backward.h"
#include "props/interpreter/user_error.h"
#include "zeroproof/engine/engine_error.h"
#include "zeroproof/model/checkpoint/checkpoint.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::program {
namespace {

double number_of(Spike::Value value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value == Spike::Value::nan) return std::numeric_limits<double>::quiet_NaN();
  return value == Spike::Value::infinity ? kInfinity : -kInfinity;
}

template <class Number>
void join(std::vector<Number>& all, const std::vector<Number>& more) {
  for (const Number number : more)
    if (std::ranges::find(all, number) == all.end()) all.push_back(number);
}

}  // namespace

Interpreter::Interpreter(const Program& program, const Contract& contract, const DataPlan& data,
                         const Place& place, Target& target)
    : program_(program),
      contract_(contract),
      data_(data),
      place_(place),
      target_(target),
      slots_(program.engines.size()),
      creates_graphs_(any_statement(program.body, [](const Statement& it) {
        const auto* const backward = std::get_if<Backward>(&it.kind);
        return backward && backward->create_graph;
      })) {}

// A gradient with a graph leads back to its leaf: PyTorch warns of the circle, which lasts until
// the user sets it to none.
Interpreter::~Interpreter() {
  if (!creates_graphs_) return;
  for (const Tensor& leaf : leaves_) leaf.set_grad({});
  for (std::size_t engine = 0; engine < slots_.size(); ++engine)
    for (const nn::NamedParameter& leaf : target_.model(engine).named_parameters())
      leaf.tensor.set_grad({});
}

void Interpreter::run(std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) run(program_.body.at(i));
}

void Interpreter::run(const Body& body) {
  for (const Statement& statement : body) run(statement);
}

void Interpreter::run(const Statement& statement) {
  const Expectation& expected = contract_.of(statement);
  if (expected.is_refused()) return run_refused(statement, expected);
  std::visit([&](const auto& kind) { execute(kind); }, statement.kind);
}

void Interpreter::run_refused(const Statement& statement, const Expectation& expected) {
  const auto* const block = std::get_if<Block>(&statement.kind);
  // Engines see the change that they refuse.
  if (target_.is_reference() && block && block->change == Block::Change::unannounced) ++changes_;
  const bool is_refused = target_.is_reference() || this->is_refused(statement, expected);
  const std::string name =
      expected.refusal ? std::string(engine_error_name(*expected.refusal)) : "an error";
  see(Observed::refusal, name, is_refused ? 1.0 : 0.0);
}

bool Interpreter::is_refused(const Statement& statement, const Expectation& expected) {
  try {
    std::visit([&](const auto& kind) { execute(kind); }, statement.kind);
  } catch (const EngineError& error) {
    return expected.refusal == error.id();
  } catch (const UsageError&) {
    return expected.is_refused_otherwise;
  }
  return false;
}

// --- forward and backward -----------------------------------------------------------------------

std::shared_ptr<const ForwardPlan> Interpreter::plan_of(const Forward& forward,
                                                        std::int64_t number) {
  auto plan = std::make_shared<ForwardPlan>();
  plan->expert = forward.expert + (place_.stage == 3 ? role() : 0);
  for (const Skip& skip : forward.skips)
    if (!skip.rank || *skip.rank == role()) plan->skipped.push_back(skip.module);
  if (forward.spike) {
    plan->spiked = forward.spike->module;
    // In its role, a rank stands where that many ranks further would without one.
    const int further = (target_.rank() - role()) * program_.world.tensor;
    if (target_.stands_for(forward.spike->rank + further))
      plan->spike = number_of(forward.spike->value);
  }
  if (!forward.hooks.empty()) plan->hooks = &forward.hooks;
  // A hook of a weight sees the backwards of other forwards, too.
  plan->run_hook = [this, number](const Hook& hook) {
    if (hook.at != Hook::At::weight || is_differentiated(number)) run_hook(hook);
  };
  return plan;
}

bool Interpreter::is_differentiated(std::int64_t forward) const {
  if (backwards_.empty()) return false;
  const std::vector<std::int64_t>& running = backwards_.back();
  return std::ranges::find(running, forward) != running.end();
}

// A backward without create_graph runs its hooks without a graph; the user asks for one.
void Interpreter::run_hook(const Hook& hook) {
  const GradMode enabled(target_.autograd(), true);
  const ScopedCount inside(hooks_);
  run(hook.body);
}

void Interpreter::execute(const Forward& forward) {
  const std::size_t engine = index_of(forward.engine);
  TensorList inputs = is_silent(forward.as) ? placed(data_.silent_inputs(forward.engine))
                                            : next_inputs(forward.engine);
  if (forward.inputs_need_grad) make_leaf(inputs.at(0));
  const std::int64_t number = forward_++;
  const std::shared_ptr<const ForwardPlan> plan = plan_of(forward, number);
  target_.model(engine).arm(plan);
  const GradMode mode(target_.autograd(), forward.mode == Forward::Mode::train);
  const auto once = [&](const TensorList& given) { return target_.forward(engine, given); };
  if (forward.around == Forward::Around::none) return keep_outputs(forward, number, once(inputs));
  make_leaf(inputs.at(0));
  const CheckpointKind kind = forward.around == Forward::Around::reentrant
                                  ? CheckpointKind::reentrant
                                  : CheckpointKind::non_reentrant;
  const auto body = [this, engine, plan](const TensorList& given) {
    target_.model(engine).arm(plan);
    return target_.forward(engine, given);
  };
  keep_outputs(forward, number, checkpoint(target_.autograd(), kind, body, inputs));
}

void Interpreter::keep_outputs(const Forward& forward, std::int64_t number,
                               const TensorList& outputs) {
  const std::size_t engine = index_of(forward.engine);
  const Model& model = program_.model_of(forward.engine);
  const auto losses = static_cast<std::size_t>(model.losses());
  const std::size_t first = model.has_constant_output ? 1 : 0;
  for (std::size_t i = 0; i < losses; ++i) {
    Tensor loss = outputs.at(first + i);
    if (!is_silent(forward.as)) see(Observed::loss, forward.as, loss);
    for (const Hook& hook : forward.hooks)
      if (hook.at == Hook::At::loss && loss.requires_grad())
        loss = interrupted(target_.autograd(), loss, [this, &hook] { run_hook(hook); });
    const std::string name = i == 0 ? forward.as : forward.as + "." + std::to_string(i);
    values_[name] = {loss, {engine}, {number}};
  }
  if (model.returns_activations)
    values_[forward.as + ".h"] = {outputs.at(first + losses), {engine}, {number}};
}

void Interpreter::execute(const CallModule& call) {
  const std::size_t engine = index_of(call.engine);
  TensorList inputs =
      placed(data_.module_inputs(call.engine, call.module, slots_[engine]++, role()));
  const auto once = [this, engine, &call](const TensorList& given) {
    TreeModule& model = target_.model(engine);
    return TensorList{call.uses_weight_alone
                          ? model.use_weight(target_.autograd(), call.module, given)
                          : model.call(target_.autograd(), call.module, given)};
  };
  const bool is_rounded = place_.stage == 3 && program_.config.torch_autocast.enabled;
  if (!call.in_checkpoint) {
    values_[call.as] = {once(inputs).at(0), {}, {forward_++}, is_rounded};
    return;
  }
  make_leaf(inputs.at(0));
  const TensorList outputs =
      checkpoint(target_.autograd(), CheckpointKind::reentrant, once, inputs);
  values_[call.as] = {outputs.at(0), {}, {forward_++}, is_rounded};
}

// Losses are exact one by one: their sum may be longer than what 16 bits hold.
void Interpreter::execute(const Sum& sum) {
  Value total = value(sum.values.front());
  total.is_rounded = total.is_rounded || program_.config.model_dtype() != DType::float32;
  for (std::size_t i = 1; i < sum.values.size(); ++i) {
    const Value& more = value(sum.values[i]);
    total.tensor = add(target_.autograd(), total.tensor, more.tensor);
    join(total.engines, more.engines);
    join(total.forwards, more.forwards);
    total.is_rounded = total.is_rounded || more.is_rounded;
  }
  values_[sum.as] = total;
}

void Interpreter::execute(const Scale& scale) {
  const Value of = scale.value.empty() ? Value() : value(scale.value);
  const Tensor scaled = target_.scale(index_of(scale.engine), of.tensor);
  see_loss(scale.as, scaled, of.is_rounded);
  values_[scale.as] = {scaled, of.engines, of.forwards, of.is_rounded};
}

void Interpreter::execute(const Backward& backward) {
  const Value of = backward.value.empty() ? Value() : value(backward.value);
  const BackwardArguments arguments{.retain_graph = backward.retain_graph,
                                    .create_graph = backward.create_graph,
                                    .scale_wrt_gas = backward.scale_wrt_gas};
  const Tensor loss =
      backward.keeps_dimension ? reshape(target_.autograd(), of.tensor, {1}) : of.tensor;
  if (!backward.engine.empty()) {
    const std::size_t engine = index_of(backward.engine);
    std::vector<std::size_t> engines = of.engines;
    join(engines, {engine});
    Tensor returned;
    run_backward(of.forwards,
                 [&] { returned = target_.backward(engine, engines, loss, arguments); });
    return see_loss(backward.value, returned, of.is_rounded);
  }
  const bool is_scalar = loss.numel() == 1;
  const Tensor grad =
      is_scalar ? Tensor() : Tensor::full(loss.sizes(), 0.5, loss.dtype()).on(loss.device());
  run_backward(of.forwards, [&] { target_.tensor_backward(of.engines, loss, grad, arguments); });
}

void Interpreter::run_backward(const std::vector<std::int64_t>& forwards,
                               const std::function<void()>& backward) {
  backwards_.push_back(forwards);
  try {
    backward();
  } catch (...) {
    backwards_.pop_back();
    throw;
  }
  backwards_.pop_back();
}

void Interpreter::execute(const ForeignBackward& foreign) {
  Autograd& ag = target_.autograd();
  const Tensor x = Tensor::full({}, 1.0, DType::float32).on(target_.device());
  x.set_requires_grad(true);
  const Tensor loss = mul(ag, x, 2.0);
  if (!foreign.throws) return ag.backward(loss);
  try {
    ag.backward(interrupted(ag, loss, [] { throw UserError("raised by a foreign loss"); }));
  } catch (const UserError&) {
  }
}

void Interpreter::execute(const Drop& drop) {
  if (drop.rank && *drop.rank != role()) return;
  const std::vector<std::int64_t> forwards = value(drop.value).forwards;
  const auto is_of = [&](std::int64_t forward) {
    return std::ranges::find(forwards, forward) != forwards.end();
  };
  std::erase_if(values_, [&](const auto& named) {
    return std::ranges::any_of(named.second.forwards, is_of);
  });
}

// --- steps --------------------------------------------------------------------------------------

void Interpreter::execute(const Step& step) {
  const std::size_t engine = index_of(step.engine);
  if (target_.step(engine, seen_)) slots_[engine] = 0;
}

void Interpreter::execute(const ZeroGrad& zero) {
  target_.zero_grad(index_of(zero.engine));
}

void Interpreter::execute(const SetBoundary& set) {
  target_.set_boundary(index_of(set.engine), set.is_boundary);
}

void Interpreter::execute(const SetScale& set) {
  if (!target_.set_loss_scale(index_of(set.engine), set.loss_scale))
    throw UsageError("the loss scale is refused");
}

void Interpreter::execute(const SetLearningRate& set) {
  std::optional<std::size_t> group;
  if (set.group) group = static_cast<std::size_t>(*set.group);
  if (!target_.set_learning_rate(index_of(set.engine), group, set.learning_rate))
    throw UsageError("the learning rate is refused");
}

void Interpreter::execute(const SetGrad& set) {
  const std::size_t engine = index_of(set.engine);
  for (const nn::NamedParameter& named : target_.model(engine).named_parameters())
    if (named.tensor.requires_grad())
      named.tensor.set_grad(
          Tensor::full(named.tensor.sizes(), 1.0, named.tensor.dtype()).on(named.tensor.device()));
  target_.zero_grad(engine);
}

void Interpreter::execute(const Freeze& freeze) {
  nn::Module* const module = target_.model(index_of(freeze.engine)).module_of(freeze.module);
  ZP_CHECK(module, "a freeze names a module of its own");
  for (const nn::NamedParameter& named : module->named_parameters())
    named.tensor.set_requires_grad(freeze.is_trained);
}

// --- the user's code ----------------------------------------------------------------------------

void Interpreter::execute(const Raise&) {
  throw UserError("raised by the program");
}

void Interpreter::execute(const Catch& caught) {
  try {
    run(caught.body);
  } catch (const UserError&) {
  }
}

void Interpreter::execute(const OutOfMemory& out) {
  const std::size_t seen = seen_.size();
  const std::vector<std::int64_t> slots = slots_;
  const auto rewind = [&] {
    seen_.resize(seen);
    slots_ = slots;
    for (std::size_t i = 0; out.clears && i < program_.engines.size(); ++i) target_.zero_grad(i);
  };
  target_.with_short_memory(
      out.allocation, [&] { run(out.body); }, rewind);
}

// --- checkpoints, questions and settings --------------------------------------------------------

void Interpreter::execute(const Save& save) {
  const std::size_t before = seen_.size();
  target_.save(index_of(save.engine), save, seen_);
  if (is_silent(save.tag)) seen_.resize(before);
}

void Interpreter::execute(const Load& load) {
  const std::size_t before = seen_.size();
  target_.load(index_of(load.engine), load, seen_);
  if (is_silent(load.tag)) seen_.resize(before);
}

// With the engine go its graphs, and those past any engine.
void Interpreter::execute(const Recreate& recreate) {
  const std::size_t engine = index_of(recreate.engine);
  std::erase_if(values_, [&](const auto& value) {
    const std::vector<std::size_t>& engines = value.second.engines;
    return engines.empty() || std::ranges::find(engines, engine) != engines.end();
  });
  target_.recreate(engine);
}

void Interpreter::execute(const Inspect& inspect) {
  target_.inspect(index_of(inspect.engine), inspect.what, seen_);
}

void Interpreter::execute(const RegisterExternal& external) {
  target_.register_external(index_of(external.engine), external.module);
}

void Interpreter::execute(const SetLeaf& leaf) {
  target_.set_leaf(index_of(leaf.engine), leaf.module);
}

void Interpreter::execute(const EvaluateGuards& guards) {
  target_.evaluate_guards(index_of(guards.engine));
}

void Interpreter::execute(const ReleaseGathered& release) {
  target_.release_gathered(index_of(release.engine));
}

void Interpreter::execute(const TemporaryEngine& temporary) {
  const bool is_clean = target_.make_temporary(index_of(temporary.engine));
  see(Observed::refusal, "a temporary engine leaves everything as it was", is_clean ? 1.0 : 0.0);
}

void Interpreter::execute(const TryConfig& tried) {
  if (target_.is_reference()) return;
  if (const auto refusal = target_.try_config(tried)) throw UsageError(*refusal);
}

}  // namespace zeroproof::program
