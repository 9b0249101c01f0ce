#include "props/reference/reference_target.h"

#include <algorithm>
#include <cmath>

#include "model/autocast/autocast.h"
#include "model/check.h"
#include "props/interpreter/observe.h"
#include "props/train/scenario.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::reference {
namespace {

using program::Observations;
using program::Observed;

}  // namespace

ReferenceTarget::ReferenceTarget(const program::Program& program, const ZeroConfig& config,
                                 const Place& place, const program::DataPlan& data,
                                 Meetings& meetings, SavedStates& saved)
    : program_(program),
      config_(config),
      replicas_{
          .ranks = place.ranks, .tensor = program.world.tensor, .sequence = program.world.sequence},
      rank_(place.rank),
      data_(data),
      meetings_(meetings),
      saved_(saved),
      autograd_(ops_),
      engines_(program.engines.size()) {
  for (std::size_t i = 0; i < engines_.size(); ++i) make(i);
}

void ReferenceTarget::make(std::size_t engine) {
  const program::EngineSpec& spec = program_.engines[engine];
  const program::Model& model = program_.model_of(spec.name);
  Trained& trained = engines_[engine] = Trained();
  trained.module = std::make_unique<program::TreeModule>(
      model, data_.table(spec.name),
      program::TreeOptions{
          .seed = program::kModelSeed + engine, .is_real = data_.is_real(), .is_reference = true});
  trained.engine = std::make_unique<WholeEngine>(
      *trained.module, config_, ops_,
      WholeEngine::Options{.replicas = replicas_,
                           .groups = static_cast<std::size_t>(spec.parameter_groups),
                           .lists_frozen = spec.lists_frozen,
                           .ungrouped = program::ungrouped_prefixes(*trained.module, model),
                           .loss_scale = spec.custom_loss_scale,
                           .grows_in = spec.grows_in});
}

// --- forward and backward -----------------------------------------------------------------------

TensorList ReferenceTarget::forward(std::size_t engine, const TensorList& inputs) {
  const TorchAutocastConfig& autocast = config_.torch_autocast;
  const Autocast region(autograd_, inputs.front().device().type(),
                        {.is_enabled = autocast.enabled, .dtype = autocast.dtype});
  return (*engines_[engine].module)(autograd_, inputs);
}

double ReferenceTarget::accumulation_factor() const {
  return 1.0 / static_cast<double>(config_.gradient_accumulation_steps);
}

Tensor ReferenceTarget::backward(std::size_t engine, const std::vector<std::size_t>& engines,
                                 const Tensor& loss, const BackwardArguments& arguments) {
  const double factor = arguments.scale_wrt_gas ? accumulation_factor() : 1.0;
  const Tensor root = mul(autograd_, loss, engines_[engine].engine->loss_scale() * factor);
  run_backward(engines, 1.0, [&] {
    autograd_.backward(root, {.create_graph = arguments.create_graph,
                              .retain_graph = arguments.retain_graph || arguments.create_graph});
  });
  const GradMode disabled(autograd_, false);
  const auto steps = static_cast<double>(config_.gradient_accumulation_steps);
  return arguments.scale_wrt_gas ? div(autograd_, loss, steps) : loss;
}

// What the caller did not divide by the accumulation steps is divided where it arrives: rounded
// once, in the dtype of the gradient.
void ReferenceTarget::tensor_backward(const std::vector<std::size_t>& engines, const Tensor& root,
                                      const Tensor& grad, const BackwardArguments& arguments) {
  const Tensor given = grad.is_defined() ? grad : Tensor::full(root.sizes(), 1.0, root.dtype());
  run_backward(engines, accumulation_factor(), [&] {
    autograd_.backward({root}, {given},
                       {.create_graph = arguments.create_graph,
                        .retain_graph = arguments.retain_graph || arguments.create_graph});
  });
}

// A backward that throws leaves no gradient.
void ReferenceTarget::run_backward(const std::vector<std::size_t>& engines, double factor,
                                   const Call& backward) {
  // Inside another backward, the gradients of engines that are not named are that one's.
  const auto is_concerned = [&](std::size_t engine) {
    return backwards_ == 0 || std::ranges::find(engines, engine) != engines.end();
  };
  const bool is_nested = backwards_ != 0;
  std::vector<TensorList> before;  // of the backward around it
  for (const Trained& trained : engines_)
    if (is_nested) before.push_back(trained.engine->grads());
  ++backwards_;
  try {
    backward();
  } catch (...) {
    --backwards_;
    for (std::size_t i = 0; i < engines_.size(); ++i)
      engines_[i].engine->set_grads(is_nested ? before[i] : TensorList());
    throw;
  }
  --backwards_;
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    if (!is_concerned(i)) continue;
    Trained& trained = engines_[i];
    const bool is_named = std::ranges::find(engines, i) != engines.end();
    const bool has_gradients = trained.engine->collect(trained.sums, factor);
    if (!is_named && !has_gradients) continue;
    ++trained.backwards;
    if (reduces_now(trained)) close(trained);
  }
}

Tensor ReferenceTarget::scale(std::size_t engine, const Tensor& loss) {
  const bool is_half = item_bytes(loss.dtype()) == 2;  // which might not hold the product
  return mul(autograd_, is_half ? to(autograd_, loss, DType::float32) : loss,
             engines_[engine].engine->loss_scale());
}

// --- windows ------------------------------------------------------------------------------------

bool ReferenceTarget::is_boundary(const Trained& trained) const {
  if (!config_.managed_gradient_accumulation) return true;
  if (trained.is_boundary) return *trained.is_boundary;
  return (trained.micro_steps + 1) % config_.gradient_accumulation_steps == 0;
}

// Stages 2 and 3 after every backward, the others when a micro-batch ends the window.
bool ReferenceTarget::reduces_now(const Trained& trained) const {
  if (trained.is_coalescing || trained.is_waiting) return false;
  if (config_.stage >= 2) return true;
  return config_.managed_gradient_accumulation && is_boundary(trained);
}

void ReferenceTarget::close(Trained& trained) {
  const auto has_gradient = [](const Tensor& grad) { return grad.is_defined(); };
  if (std::ranges::any_of(trained.sums, has_gradient)) trained.reductions.push_back(trained.sums);
  trained.sums.clear();
}

void ReferenceTarget::reduce_window(Trained& trained) {
  const std::vector<Contribution>& all = meetings_.meet(rank_, std::move(trained.reductions));
  trained.reductions.clear();
  std::size_t reductions = 0;
  for (const Contribution& one : all) reductions = std::max(reductions, one.size());
  for (std::size_t i = 0; i < reductions; ++i) {
    std::vector<TensorList> of_ranks;
    for (const Contribution& one : all) of_ranks.push_back(i < one.size() ? one[i] : TensorList());
    trained.engine->reduce(of_ranks);
  }
}

// One replica alone may have what is no number.
void ReferenceTarget::observe_gradients(std::size_t engine, Observations& seen) {
  const std::size_t first = seen.size();
  program::observe(seen, Observed::gradients, program::engine_prefix(program_, engine),
                   engines_[engine].engine->gradients());
  const auto is_finite = [](double value) { return std::isfinite(value); };
  for (std::size_t i = first; replicas_.tensor > 1 && i < seen.size(); ++i)
    seen[i].is_unspecified = !std::ranges::all_of(seen[i].values, is_finite);
}

bool ReferenceTarget::step(std::size_t engine, Observations& seen) {
  Trained& trained = engines_[engine];
  const bool is_boundary = this->is_boundary(trained);
  if (!config_.managed_gradient_accumulation) close(trained);
  ++trained.micro_steps;
  trained.engine->count_micro_steps(1);
  const std::string prefix = program::engine_prefix(program_, engine);
  if (!is_boundary) {
    program::observe_counted_step(seen, prefix, {});
    return false;
  }
  reduce_window(trained);
  if (!train::reduces_in_step(config_)) observe_gradients(engine, seen);
  const StepOutcome outcome = trained.engine->step();
  const std::int64_t micro_batches = config_.managed_gradient_accumulation
                                         ? config_.gradient_accumulation_steps
                                         : trained.backwards;
  trained.engine->count_step(outcome, micro_batches);
  trained.backwards = 0;
  program::observe_outcome(seen, prefix, outcome);
  see_counters(engine, seen);
  program::observe(seen, Observed::update, prefix + "master ", trained.engine->masters());
  program::observe(seen, Observed::update, prefix + "state ", trained.engine->optimizer_state());
  program::observe(seen, Observed::update, prefix + "weight ", trained.engine->weights());
  seen.push_back({Observed::update, prefix + "gradients left", {}, {0.0}});
  return true;
}

void ReferenceTarget::zero_grad(std::size_t engine) {
  Trained& trained = engines_[engine];
  trained.engine->clear_grads();
  trained.engine->drop_window();
  trained.sums.clear();
  trained.reductions.clear();
}

void ReferenceTarget::set_boundary(std::size_t engine, bool is_boundary) {
  engines_[engine].is_boundary = is_boundary;
}

bool ReferenceTarget::set_loss_scale(std::size_t engine, double loss_scale) {
  engines_[engine].engine->override_loss_scale(loss_scale);
  return true;
}

bool ReferenceTarget::set_learning_rate(std::size_t engine, std::optional<std::size_t> group,
                                        double learning_rate) {
  LearningRates& rates = engines_[engine].engine->rates();
  return static_cast<bool>(group ? rates.set(*group, learning_rate) : rates.set(learning_rate));
}

void ReferenceTarget::no_sync(std::size_t engine, const Call& body) {
  const program::ScopedFlag waiting(engines_[engine].is_waiting);
  body();
}

void ReferenceTarget::coalesce(std::size_t engine, const Call& body) {
  Trained& trained = engines_[engine];
  const auto end = [&] {
    trained.is_coalescing = false;
    close(trained);
  };
  trained.is_coalescing = true;
  try {
    body();
  } catch (...) {
    end();
    throw;
  }
  end();
}

Tensor ReferenceTarget::gathered_value(std::size_t engine, const Tensor& weight) const {
  return engines_[engine].engine->gathered(weight);
}

// In stage 3 an exception takes back what was changed.
void ReferenceTarget::gathered(std::size_t, const TensorList& parameters, std::optional<int>,
                               const Call& body) {
  if (config_.stage < 3) return body();
  std::vector<std::vector<double>> before;
  for (const Tensor& weight : parameters) before.push_back(weight.values());
  try {
    body();
  } catch (...) {
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i].values() != before[i])
        ops_.copy_in_place(parameters[i].detach(),
                           Tensor::of(before[i], parameters[i].sizes(), parameters[i].dtype()));
    throw;
  }
}

// --- checkpoints and questions ------------------------------------------------------------------

void ReferenceTarget::save(std::size_t engine, const program::Save& save, Observations& seen) {
  if (save.failure != program::Save::Failure::none) return;
  const WholeEngine& it = *engines_[engine].engine;
  const WholeState state = it.save();
  const std::string own = "global_step" + std::to_string(state.global_steps);
  saved_[{engine, save.tag.empty() ? own : save.tag}] = state;
  saved_[{engine, ""}] = state;  // the latest
  const std::string own_prefix = program::engine_prefix(program_, engine);
  seen.push_back({Observed::saved, own_prefix + "saved badly", {}, {0.0}});
  if (rank_ != 0) return;
  const std::string prefix = own_prefix + "saved ";
  program::observe(seen, Observed::saved, prefix, it.masters());
  program::observe(seen, Observed::saved, prefix, it.optimizer_state());
  std::vector<double> counters = it.counters();
  counters.pop_back();  // the loss scale
  seen.push_back({Observed::saved, prefix + "counters", {}, counters});
  // With a fixed scale the counts of its overflows are unspecified.
  seen.push_back(
      {Observed::saved,
       prefix + "loss scaler",
       {},
       {state.scale, static_cast<double>(state.iteration), static_cast<double>(state.last_overflow),
        static_cast<double>(state.hysteresis), static_cast<double>(state.good_steps)},
       !it.moves_scale()});
}

void ReferenceTarget::restore(std::size_t engine, const std::string& tag) {
  Trained& trained = engines_[engine];
  const auto at = saved_.find({engine, tag});
  ZP_CHECK(at != saved_.end(), "a load names a tag that was saved");
  trained.engine->load(at->second);
  trained.micro_steps = at->second.micro_steps;
  trained.sums.clear();
  trained.reductions.clear();
  trained.backwards = 0;
}

void ReferenceTarget::load_resumed(const std::string& tag) {
  for (std::size_t i = 0; i < engines_.size(); ++i) restore(i, tag);
}

void ReferenceTarget::load(std::size_t engine, const program::Load& load, Observations& seen) {
  if (load.failure != program::Load::Failure::none) return;
  restore(engine, load.tag);
  inspect(engine, program::Inspect::What::masters, seen);
  inspect(engine, program::Inspect::What::optimizer_state, seen);
  see_counters(engine, seen);
}

void ReferenceTarget::see_counters(std::size_t engine, Observations& seen) const {
  seen.push_back({Observed::counters,
                  program::engine_prefix(program_, engine) + "counters",
                  {},
                  engines_[engine].engine->counters()});
}

void ReferenceTarget::recreate(std::size_t engine) {
  make(engine);
}

bool ReferenceTarget::has_local(const Trained& trained) {
  const auto has_gradient = [](const Tensor& grad) { return grad.is_defined(); };
  return std::ranges::any_of(trained.sums, has_gradient);
}

void ReferenceTarget::inspect(std::size_t engine, program::Inspect::What what, Observations& seen) {
  Trained& trained = engines_[engine];
  const std::string prefix = program::engine_prefix(program_, engine);
  const std::size_t first = seen.size();
  switch (what) {
    case program::Inspect::What::gradients:
      reduce_window(trained);
      program::observe(seen, Observed::value, prefix + "gradient ", trained.engine->gradients());
      // Which ranks know of what no reduction has is not said.
      for (std::size_t i = first; has_local(trained) && i < seen.size(); ++i)
        seen[i].is_unspecified = true;
      return;
    case program::Inspect::What::masters:
      return program::observe(seen, Observed::value, prefix + "master ", trained.engine->masters());
    case program::Inspect::What::optimizer_state:
      return program::observe(seen, Observed::value, prefix + "state ",
                              trained.engine->optimizer_state());
    case program::Inspect::What::weights:
      return program::observe(seen, Observed::value, prefix + "weight ", trained.engine->weights());
  }
}

}  // namespace zeroproof::reference
