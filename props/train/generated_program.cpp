#include "props/train/generated_program.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "model/autograd_error.h"
#include "model/check.h"
#include "model/functions.h"
#include "model/transforms/transforms.h"
#include "props/train/case_detours.h"
#include "props/train/case_ends.h"
#include "props/train/case_inputs.h"
#include "props/train/case_memory.h"
#include "props/train/case_orders.h"
#include "props/train/case_saves.h"
#include "props/train/case_storage.h"
#include "props/train/case_turns.h"
#include "props/train/case_worlds.h"
#include "props/train/checkpoint_use.h"
#include "props/train/config_use.h"
#include "props/train/detour.h"
#include "props/train/engine_target.h"
#include "props/train/generated_model.h"
#include "props/train/kept_files.h"
#include "props/train/misuse.h"
#include "props/train/pass.h"
#include "props/train/step_settings.h"
#include "props/train/user_block.h"
#include "props/train/user_calls.h"
#include "props/train/weight_visit.h"

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
  GeneratedWindow(const CaseSpec& spec, Pass& pass)
      : spec_(spec), pass_(pass), engines_(dynamic_cast<EngineTarget*>(&pass.target())) {}

  void run() {
    const std::int64_t before = live_bytes(Placement::device);
    const int faults = is_taken_over() ? take_over() : 0;
    restore(static_cast<Restores>(spec_.micros.at(first_micro()).restores));
    if (is_taken_over()) record_checkpoints(faults);
    if (pass_.step_number() == 0) read_configuration(spec_, pass_);
    train();
    if (pass_.step_number() == 0) {
      if (spec_.first_ranks != 0) use_checkpoints([](CheckpointUse& files) { files.save(""); });
      record_bytes(live_bytes(Placement::device) - before);
      record_offloaded();
    }
    if (spec_.reorders != 0 && pass_.step_number() + 1 == spec_.windows()) run_in_another_order();
  }

 private:
  std::size_t first_micro() const {
    return static_cast<std::size_t>(pass_.step_number() * spec_.accumulation);
  }

  // Whatever order was recorded, it is given up, then this one is recorded, and compared.
  void run_in_another_order() {
    if (!engines_) return;
    const GradMode disabled(pass_.autograd(), false);
    const DType dtype = model_dtype(static_cast<Precision>(spec_.precision));
    const TensorList inputs = {Tensor::full({2}, 0.0, dtype), Tensor::full({}, 1.0, dtype)};
    for (const std::vector<std::size_t>& asides : orders_of_asides(spec_, pass_.target().rank())) {
      model_of(pass_, 0).arm({.asides = asides});
      pass_.target().forward(0, inputs);
    }
  }

  // By ranks that have not trained what comes before.
  bool is_taken_over() const {
    return spec_.first_ranks != 0 && pass_.step_number() == windows_elsewhere(pass_.scenario());
  }

  int take_over() {
    if (!engines_) return 0;
    CheckpointUse checkpoints(spec_, pass_);
    checkpoints.load("");
    return checkpoints.faults();
  }

  void train(bool is_lost = false, bool ends = true) {
    is_lost_ = is_lost;
    set_loss_scale(spec_, pass_);
    for (std::size_t i = 0; i < static_cast<std::size_t>(spec_.accumulation); ++i) {
      const MicroSpec& micro = spec_.micros.at(first_micro() + i);
      if (!is_lost) try_checkpoint(micro);
      set_boundary(spec_, pass_, i);
      record_boundary(spec_, pass_, i);
      is_inside_ = i > 0;
      at_ = first_micro() + i;
      run_micro(micro);
      if (is_ahead(micro)) ahead_ = forward(spec_.micros.at(first_micro() + i + 1));
      bytes_behind_.push_back(live_bytes(Placement::device));
      is_boundary_ = i + 1 == static_cast<std::size_t>(spec_.accumulation);
      if ((spec_.is_unmanaged == 0 || is_boundary_) && (ends || !is_boundary_)) step();
      record_seen();
      forget_left_out();
    }
    if (spec_.stage == 2 && !is_lost) record_between();
    if (ends && !kept_.empty()) record_whole(engines_ ? engines_->whole_behind_step() : 0);
    kept_.clear();
  }

  // What the user watched; of many it is one number each that the baseline has, too.
  void record_seen() {
    if (!compares_watched(spec_)) return forget_seen();
    for (std::size_t engine = 0; engine < engines(); ++engine)
      record("gradients for inputs", model_of(pass_, engine).take_seen());
  }

  // Gradients that no engine takes are the user's own.
  void forget_left_out() {
    if (!engines_ || !leaves_out(spec_)) return;
    for (std::size_t engine = 0; engine < engines(); ++engine)
      for (const nn::NamedParameter& named : engines_->module(engine).named_parameters())
        if (is_left_out(spec_, named.name)) named.tensor.set_grad({});
  }

  // Of a backward that the baseline does not have.
  void forget_seen() {
    for (std::size_t engine = 0; engine < engines(); ++engine) model_of(pass_, engine).take_seen();
  }

  // Where gradients are partitioned, a micro-batch leaves what the last one like it leaves.
  void record_between() {
    const auto first = spec_.micros.begin() + static_cast<std::ptrdiff_t>(first_micro());
    const bool is_alike = std::all_of(first, first + spec_.accumulation,
                                      [&](const MicroSpec& micro) { return micro == *first; });
    const std::int64_t most = *std::ranges::max_element(bytes_behind_);
    const std::int64_t more = is_alike ? most - bytes_behind_.back() : 0;
    record("bytes between micro-batches", {static_cast<double>(more)});
  }

  // What a step misses comes, and then it is taken.
  void step() {
    if (is_boundary_ && ends_refused(spec_, first_micro())) return step_at_floor();
    if (spec_.needs_all == 0 || !is_boundary_) return pass_.step();
    const bool is_taken = pass_.target().try_step(0);
    record("refused/step", {is_taken ? 0.0 : 1.0});
    if (is_taken) return;
    train_once(MicroSpec());
    pass_.step();
  }

  // A step that is refused changes nothing: the window is given up, and made without the overflow.
  void step_at_floor() {
    const bool is_taken = engines_ && engines_->try_step(0);
    record("refused/step", {is_taken ? 0.0 : 1.0});
    if (is_taken) return;
    clear_gradients();
    train_once(MicroSpec());
    pass_.step();
  }

  // Of graphs that live, though nobody needs their values: a step has changed them, too.
  void record_whole(std::int64_t elements) {
    record("bytes of kept graphs", {static_cast<double>(elements_to_give_up(spec_, elements))});
  }

  std::size_t engines() const { return static_cast<std::size_t>(spec_.engines); }

  // Saved, trained on, and loaded: this window was never there. The baseline does not stop.
  void restore(Restores restores) {
    if (!loads_away(restores)) return;
    const bool renews = spec_.micros.at(first_micro()).renews != 0;
    std::int64_t left = 0;
    int faults = 0;
    // Another tag, which is saved more often, is how it begins.
    const bool is_tagged = restores == Restores::tagged;
    const std::string tag = is_tagged ? "later-kept" : "";
    if (engines_) {
      CheckpointUse checkpoints(spec_, pass_);
      checkpoints.save(tag);
      Pass lost = pass_;
      const bool is_blind = spec_.micros.at(first_micro()).blind != 0;
      const bool collects = is_blind && engines_->collect_values(false);
      GeneratedWindow(spec_, lost).train(true, restores != Restores::unstepped);
      if (collects) engines_->collect_values(true);
      if (is_tagged) {
        checkpoints.save("later");
        checkpoints.save("later");
      }
      engines_->take_values();
      if (renews) left = engines_->renew();
      if (!is_blind || spec_.stage < 3) overwrite_weights();
      checkpoints.load(tag);
      if (is_tagged) load_latest(checkpoints);
      faults = checkpoints.faults();
    }
    record_checkpoints(faults);
    if (renews) record("bytes that an engine leaves", {static_cast<double>(left)});
  }

  // What was saved last is the latest, though its tag is an older one.
  void load_latest(CheckpointUse& checkpoints) {
    checkpoints.save("later-kept");
    checkpoints.load("");
  }

  void record_checkpoints(int faults) {
    record("faults of checkpoints", {static_cast<double>(faults)});
  }

  // What stops a program, and changes nothing.
  void try_checkpoint(const MicroSpec& micro) {
    if (static_cast<Restores>(micro.restores) < Restores::saved) return;
    bool is_refused = true;
    use_checkpoints([&](CheckpointUse& checkpoints) { is_refused = checkpoints.try_out(micro); });
  }

  void save_inside() {
    use_checkpoints([](CheckpointUse& checkpoints) { checkpoints.save("kept"); });
  }

  void use_checkpoints(const std::function<void(CheckpointUse& checkpoints)>& use) {
    int faults = 0;
    if (engines_) {
      CheckpointUse checkpoints(spec_, pass_);
      use(checkpoints);
      faults = checkpoints.faults();
    }
    record_checkpoints(faults);
  }

  std::int64_t live_bytes(Placement placement) {
    if (!engines_) return 0;
    return engines_->engine(0).runtime().memory().stats(placement).live_bytes;
  }

  // Of stage 3 a window leaves nothing whole but what is persistent.
  void record_bytes(std::int64_t more) {
    if (spec_.stage != 3 || spec_.returns != 0) return;
    const std::int64_t room = persistent_bytes(spec_);
    record("bytes that stay", {static_cast<double>(std::max<std::int64_t>(more - room, 0))});
  }

  // Of masters, optimizer states and gradients at least so many bytes are the host's.
  void record_offloaded() {
    if (spec_.is_offloaded == 0) return;
    const std::int64_t lacking = offloaded_bytes(spec_) - live_bytes(Placement::host);
    record("bytes that the host lacks",
           {static_cast<double>(engines_ ? std::max<std::int64_t>(lacking, 0) : 0)});
  }

  void record(const std::string& name, const std::vector<double>& values) {
    pass_.target().record(name, Tensor::of(values, {std::ssize(values)}));
  }

  void clear_gradients() {
    for (std::size_t engine = 0; engine < engines(); ++engine) pass_.target().zero_grad(engine);
  }

  // A load brings back whatever the user did meanwhile.
  void overwrite_weights() {
    for (std::size_t engine = 0; engine < engines(); ++engine) {
      TensorList weights;
      for (const nn::NamedParameter& named : pass_.target().module(engine).named_parameters())
        weights.push_back(named.tensor);
      if (spec_.stage < 3) {
        fill(weights, 0.5);
      } else {
        engines_->engine(engine).gathered_parameters(weights, 0, [&] {
          if (pass_.target().rank() == 0) fill(weights, 0.5);
        });
      }
    }
  }

  void fill(const TensorList& tensors, double value) {
    for (const Tensor& tensor : tensors)
      pass_.autograd().ops().copy_in_place(tensor.detach(),
                                           Tensor::full(tensor.sizes(), value, tensor.dtype()));
  }

  // Losses of one forward, in the order in which they are differentiated.
  using Losses = TensorList;

  void run_micro(const MicroSpec& micro) {
    if (micro.litters != 0) litter();
    detour(micro, DetourPlace::context);
    if (micro.registers != 0 && engines_) engines_->register_at_root(micro.registers - 1);
    if (micro.misscales != 0 && !is_lost_) misscale(wrong_loss_scale(micro.misscales));
    if (micro.idles_first != 0) idle(micro);
    if (micro.abandons != 2) visit(micro);
    if (micro.guards != 0) evaluate_guards(pass_);
    if (micro.abandons != 0) abandon_forward(micro);
    if (micro.idle_forward == 1 && micro.idles_first == 0) idle(micro);
    if (micro.idle_forward == 2) forward(micro);
    if (micro.idle_forward >= 3) transform(micro);
    if (micro.throws != 0) throw_one(micro);
    if (micro.outdates != 0) {
      outdate_one();
    } else if (micro.aborts + micro.aborts_on_loss != 0) {
      abort_one(micro);
    }
    if (micro.rescales == 2 && !is_lost_) change_loss_scale(spec_, pass_);
    if (micro.clears == 1) {
      train_once(micro);
      clear_gradients();
      if (micro.rescales == 1 && !is_lost_) change_loss_scale(spec_, pass_);
    }
    is_interrupted_ = !is_lost_;
    const bool is_short = micro.shortage >= static_cast<int>(Shortage::forward) &&
                          micro.shortage <= static_cast<int>(Shortage::epilogue);
    if (micro.past_engine != 3) until_it_fits(micro, is_short, [&] { train_in_block(micro); });
    is_interrupted_ = false;
    if (!unchanged_.empty()) set_back(spec_, pass_, std::exchange(unchanged_, {}));
    is_retained_ = is_retained_ || micro.keeps == 1 || micro.creates != 0;
    if (micro.keeps >= 2 && !is_retained_) record_whole(whole_elements(pass_));
    if (micro.past_engine != 0) differentiate_past_engine(micro.past_engine == 2);
    ask(micro);
    if (micro.misuse != 0) misuse_and_clear(static_cast<Misuse>(micro.misuse));
  }

  // As whoever catches that the device has no room, frees something, and does it again.
  void until_it_fits(const MicroSpec& micro, bool is_short, const std::function<void()>& act) {
    if (!is_short) return act();
    record_seen();
    const std::int64_t before = whole_elements(pass_);
    std::int64_t left = 0;
    if (!engines_) {
      act();
    } else if (!fits(micro, act)) {
      left = std::max<std::int64_t>(whole_elements(pass_) - before, 0);
      forget_seen();
      if (clears_behind_shortage(spec_, at_)) clear_gradients();
      act();
    }
    if (static_cast<Shortage>(micro.shortage) == Shortage::gathers)
      record("elements that no context holds", {static_cast<double>(left)});
  }

  // Of what failed, nothing is known afterwards.
  bool fits(const MicroSpec& micro, const std::function<void()>& act) {
    const std::int64_t position = pass_.position();
    const std::size_t records = engines_->records();
    const int forwards = forwards_;
    short_of_ = &micro;
    try {
      act();
      short_of_ = nullptr;
      return true;
    } catch (const RuntimeFault&) {
      short_of_ = nullptr;
    }
    pass_.rewind(position);
    engines_->forget_records(records);
    forwards_ = forwards;
    return false;
  }

  // While it lives, the call is one that the device may have no room for.
  class Armed {
   public:
    Armed(EngineTarget* engines, const MicroSpec* micro, std::initializer_list<Shortage> calls) {
      if (!micro || std::ranges::find(calls, static_cast<Shortage>(micro->shortage)) == calls.end())
        return;
      runtime_ = engines->short_runtime();
      const bool is_late = static_cast<Shortage>(micro->shortage) == Shortage::epilogue;
      is_late ? runtime_->arm_behind_task(micro->shortage_at) : runtime_->arm(micro->shortage_at);
    }
    ~Armed() {
      if (runtime_) runtime_->disarm();
    }
    Armed(const Armed&) = delete;
    Armed& operator=(const Armed&) = delete;

   private:
    ShortRuntime* runtime_ = nullptr;
  };

  // What the user reads behind a micro-batch.
  void ask(const MicroSpec& micro) {
    const bool is_short = static_cast<Shortage>(micro.shortage) == Shortage::getters;
    until_it_fits(micro, is_short, [&] {
      const Armed armed(engines_, short_of_, {Shortage::getters});
      if (micro.peeks != 0) peek();
      if (micro.asks == 1) ask_for_gradients(spec_, pass_, knows_gradients(spec_));
    });
  }

  void idle(const MicroSpec& micro) {
    const bool is_short = static_cast<Shortage>(micro.shortage) == Shortage::evaluation;
    until_it_fits(micro, is_short, [&] {
      const GradMode disabled(pass_.autograd(), false);
      forward(micro);
    });
  }

  void visit(const MicroSpec& micro) {
    const bool is_short = static_cast<Shortage>(micro.shortage) == Shortage::gathers;
    until_it_fits(micro, is_short, [&] {
      const Armed armed(engines_, short_of_, {Shortage::gathers});
      visit_once(micro);
    });
  }

  void visit_once(const MicroSpec& micro) {
    const auto gathers = static_cast<Gathers>(micro.gathers);
    if (!runs_in_context(micro)) return visit_weights(spec_, pass_, gathers);
    visit_with_forward(spec_, pass_, gathers, [&] {
      const GradMode disabled(pass_.autograd(), false);
      arm(micro);
      record_loss(pass_.target().forward(0, next_inputs()).at(0));
    });
  }

  // Between a forward and its backward somebody writes to the weights that the graph has kept.
  void outdate_one() {
    const Losses losses = forward(MicroSpec());
    rewrite_weights(spec_, pass_);
    bool is_refused = !engines_;
    try {
      if (engines_) backward(MicroSpec(), losses.front(), false);
    } catch (const AutogradError&) {
      is_refused = true;
    }
    forget_seen();
    clear_gradients();
    record("refused/outdated weights", {is_refused ? 1.0 : 0.0});
  }

  void detour(const MicroSpec& micro, DetourPlace place) {
    const bool is_here = micro.detour != 0 && place_of(micro) == place;
    if (is_here && !is_lost_) take_detour(spec_, pass_, micro);
  }

  void train_in_block(const MicroSpec& micro) {
    const auto body = [&] {
      detour(micro, DetourPlace::block);
      if (micro.clears == 2) {
        train_once(micro);
        clear_gradients();
      }
      train_once(micro);
      if (micro.aborts_inside != 0) abort_inside(micro);
      if (micro.repeats != 0) train_once(micro);
      if (micro.asks == 2) ask_for_gradients(spec_, pass_, true);
    };
    const auto block = static_cast<Block>(micro.block);
    if (block != Block::coalesced_backwards)
      return run_in_block(pass_.target(), spec_, micro, body);
    const Losses losses = first_forward(micro);
    run_in_block(pass_.target(), spec_, micro, [&] { differentiate(micro, losses); });
  }

  // The engine under torch.func.grad: none of its own business.
  void transform(const MicroSpec& micro) {
    arm(micro);
    const func::Function loss = [&](const TensorList& inputs) {
      return TensorList{pass_.target().forward(0, inputs).at(0)};
    };
    const TensorList inputs = pass_.next_inputs();
    if (micro.idle_forward == 4) return transform_examples(loss, inputs);
    const TensorList grads = func::grad(pass_.autograd(), loss, {-1})(inputs);
    pass_.target().record("func/grad", grads.at(0));
  }

  // Two factors: the gradient of each one's loss, and of the sum of a batch's losses.
  void transform_examples(const func::Function& loss, const TensorList& inputs) {
    Autograd& ag = pass_.autograd();
    const Tensor& c = inputs.at(1);
    const Tensor examples = stack(ag, {c, mul(ag, c, 2.0)}, 0);
    const auto with = [&](const func::Function& f) -> func::Function {
      return [&inputs, f](const TensorList& one) { return f({inputs.at(0), one.at(0)}); };
    };
    const func::Function of_each = func::vmap(ag, with(func::grad(ag, loss, {-1})));
    pass_.target().record("func/vmap", of_each({examples}).at(0));
    const func::Function losses = func::vmap(ag, with(loss));
    const func::Function total = [&](const TensorList& batch) {
      return TensorList{sum(ag, losses(batch).at(0))};
    };
    pass_.target().record("func/grad", func::grad(ag, total)({examples}).at(0));
  }

  void throw_one(const MicroSpec& micro) {
    throws_ = micro.throws;
    try {
      const GradMode mode(pass_.autograd(), micro.throws_no_grad == 0);
      forward(micro);
    } catch (const Injected&) {
    }
    throws_ = 0;
  }

  void abort_one(const MicroSpec& micro) {
    MicroSpec failing = micro;
    failing.outstanding = failing.rescales = 0;
    aborts_ = micro.aborts;
    aborts_on_loss_ = micro.aborts_on_loss != 0;
    is_managed_ = micro.aborts_managed != 0 && aborts_ != 0;
    try {
      train_once(failing);
    } catch (const Injected&) {
    }
    aborts_ = 0;
    is_managed_ = aborts_on_loss_ = false;
    if (micro.aborts_on_loss == 2) misuse(Misuse::unscaled_manual);
    const bool has_gradients = micro.is_uncleared != 0 && is_inside_;
    if (has_gradients && static_cast<Misuse>(micro.misuse) == Misuse::late_loss_scale)
      misuse(Misuse::late_loss_scale);
    if (micro.is_uncleared == 0) clear_gradients();  // otherwise nothing of it stays either
  }

  // A backward between two good ones fails, and the user goes on in the same block.
  void abort_inside(const MicroSpec& micro) {
    MicroSpec failing = micro;
    failing.outstanding = failing.keeps = failing.detour = failing.rescales = 0;
    aborts_ = micro.aborts_inside;
    try {
      train_once(failing);
    } catch (const Injected&) {
    }
    aborts_ = 0;
  }

  // What no backward has put there.
  void litter() {
    for (std::size_t engine = 0; engine < engines(); ++engine)
      for (const nn::NamedParameter& named : pass_.target().module(engine).named_parameters())
        if (named.tensor.requires_grad())
          named.tensor.set_grad(Tensor::full(named.tensor.sizes(), 1.0, named.tensor.dtype()));
    clear_gradients();
  }

  // Reading changes nothing, wherever in a window it is.
  void peek() { record_masters(pass_); }

  // What came of it is recorded; the baseline knows.
  void misuse(Misuse misuse) {
    bool is_right = true;
    record_seen();
    if (misuse == Misuse::unfed_leaf) {
      is_right = refuses_unfed_leaf();
    } else if (engines_) {
      is_right = is_refused(engines_->engine(0), spec_, misuse, [&] {
        pass_.target().tensor_backward({forward(MicroSpec()).front()}, {}, false);
      });
    } else if (misuse == Misuse::unscaled_manual || misuse == Misuse::unscaled_again ||
               misuse == Misuse::manual_backward) {
      forward(MicroSpec());
    }
    forget_seen();
    record("refused/" + std::to_string(static_cast<int>(misuse)), {is_right ? 1.0 : 0.0});
  }

  // Its experts come first, and nothing that comes in needs a gradient. What a backward that failed
  // has brought is taken back.
  bool refuses_unfed_leaf() {
    const TensorList inputs = pass_.next_inputs();
    model_of(pass_, 0).arm({.expert = next_expert()});
    if (!engines_) return true;
    Engine& engine = engines_->engine(0);
    const Tensor loss = engine.forward(inputs).at(0);
    return is_refused_with(EngineErrorId::e19, [&] { engine.backward(loss); });
  }

  // Where a backward has failed, the window begins anew.
  void misuse_and_clear(Misuse it) {
    misuse(it);
    if (it == Misuse::unfed_leaf) clear_gradients();
  }

  void misscale(double loss_scale) {
    const bool is_right = !engines_ || refuses_loss_scale(*engines_, loss_scale);
    record("refused/loss scale", {is_right ? 1.0 : 0.0});
  }

  // Of its training: it may have come before the last step.
  Losses first_forward(const MicroSpec& micro) {
    return ahead_.empty() ? forward(micro) : std::exchange(ahead_, {});
  }

  void train_once(const MicroSpec& micro) {
    train_first(micro);
    if (spec_.takes_turns == 0) return;
    arm(micro);
    const Tensor loss = pass_.target().forward(1, next_inputs()).at(0);
    record_loss(loss);
    pass_.differentiate(loss, false, 1);
  }

  void train_first(const MicroSpec& micro) {
    if (micro.branches != 0) return train_branches(micro);
    Losses first = first_forward(micro);
    if (micro.rehooks != 0) make_hooks_anew();
    if (micro.rescales == 3)
      record("refused/loss scale before a backward", {refuses_rescale() ? 1.0 : 0.0});
    look(micro, Looks::before_backward);
    if (micro.outstanding == 0 || is_ahead(micro)) return differentiate(micro, first);
    const Losses second = forward(micro);
    if (static_cast<Outstanding>(micro.outstanding) == Outstanding::summed)
      return differentiate(micro, sums_of(first, second));
    if (micro.drops_on != 0) return differentiate_dropping(micro, std::move(first), second);
    look(micro, Looks::before_backward);
    if (static_cast<Outstanding>(micro.outstanding) == Outstanding::interleaved)
      return differentiate_interleaved(micro, first, second);
    const bool is_reversed = static_cast<Outstanding>(micro.outstanding) == Outstanding::reversed;
    differentiate(micro, is_reversed ? second : first);
    look(micro, Looks::between);
    differentiate(micro, is_reversed ? first : second);
  }

  // On one rank nobody can come back to the first graph, though it was kept; on others they could.
  void differentiate_dropping(const MicroSpec& micro, Losses first, const Losses& second) {
    MicroSpec keeping = micro;
    keeping.keeps = 3;
    differentiate(keeping, first);
    if (micro.drops_on == pass_.target().rank() + 1) first.clear();
    differentiate(micro, second);
  }

  // What the first branch alone has used goes with its backward, though the other one's is to come.
  void train_branches(const MicroSpec& micro) {
    const Losses first = forward(branch_of(spec_, micro, 0));
    const Losses second = forward(branch_of(spec_, micro, 1));
    differentiate(micro, first);
    const int alone = branch_of(spec_, micro, 1).skips - 1;
    record("bytes of a branch that is over",
           {static_cast<double>(whole_elements_of_call(spec_, pass_, alone))});
    differentiate(micro, second);
  }

  void differentiate_interleaved(const MicroSpec& micro, const Losses& first,
                                 const Losses& second) {
    backward(micro, first.at(0), true);
    backward(micro, second.at(0), true);
    look(micro, Looks::between);
    backward(micro, second.at(1), false);
    backward(micro, first.at(1), false);
  }

  Losses sums_of(const Losses& first, const Losses& second) {
    Losses sums;
    for (std::size_t i = 0; i < first.size(); ++i)
      sums.push_back(add(pass_.autograd(), first[i], second[i]));
    return sums;
  }

  void differentiate_past_engine(bool is_wrapped) {
    const GeneratedModel& model = model_of(pass_, 0);
    TensorList inputs = pass_.next_inputs();
    if (!is_wrapped || !engines_)
      return differentiate_manually(model.bypass(pass_.autograd(), inputs), false);
    inputs.at(0).set_requires_grad(true);
    const auto body = [&](const TensorList& given) {
      return TensorList{model.bypass(pass_.autograd(), given)};
    };
    const TensorList losses = checkpoint(pass_.autograd(), kind_of(Wrap::reentrant), body, inputs);
    differentiate_manually(losses.at(0), false);
  }

  void differentiate_manually(const Tensor& loss, bool retain_graph, bool clears = false) {
    Tensor root = loss;
    if (pass_.target().needs_scaler(0)) {
      root = pass_.target().scale(0, loss, retain_graph);
      pass_.target().record("scaled", root.detach());
    }
    if (clears) clear_gradients();
    pass_.target().tensor_backward({root}, {}, retain_graph);
  }

  void look(const MicroSpec& micro, Looks where) {
    if (static_cast<Looks>(micro.looks) == where) visit_weights(spec_, pass_, Gathers::looks);
  }

  void arm(const MicroSpec& micro) {
    const bool overflows = micro.overflow_rank == pass_.target().rank();
    for (std::size_t engine = 0; engine < static_cast<std::size_t>(spec_.engines); ++engine)
      model_of(pass_, engine)
          .arm({.skips = skips_here(micro, pass_) ? micro.skips : 0,
                .aborts = aborts_,
                .overflow = engine == 0 ? overflow_of(micro) : 0,
                .is_infinite = overflows,
                .expert = next_expert(),
                .throws = engine == 0 ? throws_ : 0,
                .interrupts = engine == 0 && is_interrupted_ ? micro.interrupt_at : 0,
                .on_interrupt = [this, micro] { interrupt(micro); },
                .detours = engine == 0 && has_detour(micro) ? micro.detour_at - 1 : 0,
                .on_detour = [this, micro] { detour(micro, DetourPlace::forward); },
                .on_end = [this] { record_casts("bytes of casts in stage 3", spec_.stage == 3); },
                .is_unread = leaves_unread(micro, pass_)});
  }

  bool has_detour(const MicroSpec& micro) const {
    return is_interrupted_ && micro.detour != 0 && place_of(micro) == DetourPlace::forward;
  }

  // Of weights, that the autograd keeps for their next use.
  void record_casts(const std::string& name, bool is_watched) {
    if (!is_watched || static_cast<Precision>(spec_.precision) != Precision::autocast) return;
    std::int64_t bytes = 0;
    for (std::size_t engine = 0; engine < engines(); ++engine)
      for (const nn::NamedParameter& named : pass_.target().module(engine).named_parameters())
        if (const Tensor cast = pass_.autograd().global().cast_cache.find(named.tensor);
            cast.is_defined() && engines_)
          bytes += cast.numel() * item_bytes(cast.dtype());
    record(name, {static_cast<double>(bytes)});
  }

  int overflow_of(const MicroSpec& micro) const {
    return is_lost_ && micro.lost_overflow != 0 ? micro.lost_overflow : micro.overflow;
  }

  // What the user's hook does in the middle of a backward.
  void interrupt(const MicroSpec& micro) {
    switch (static_cast<Interrupt>(micro.interrupt)) {
      case Interrupt::none:
        return;
      case Interrupt::step:
        return record("refused/step in a backward", {refuses_step(micro) ? 1.0 : 0.0});
      case Interrupt::save:
        return save_inside();
      case Interrupt::forward: {
        const GradMode disabled(pass_.autograd(), false);
        record_loss(pass_.target().forward(0, next_inputs()).at(0));
        return;
      }
      case Interrupt::looks:
        return peek();
      case Interrupt::changes:
        return change_weights();
      case Interrupt::aside:
      case Interrupt::fails:
      case Interrupt::joined:
        return differentiate_aside(static_cast<Interrupt>(micro.interrupt) != Interrupt::aside);
      case Interrupt::rescale:
        return record("refused/loss scale in a backward", {refuses_rescale() ? 1.0 : 0.0});
      case Interrupt::own:
        return differentiate_inside(0);
      case Interrupt::other:
        return differentiate_inside(1);
    }
  }

  // Until its micro-batch is over, which sees them.
  void change_weights() {
    WeightValues before = change_data(spec_, pass_);
    if (unchanged_.empty()) unchanged_ = std::move(before);
  }

  void differentiate_inside(std::size_t engine) {
    const GradMode enabled(pass_.autograd(), true);
    if (engine == 0) model_of(pass_, 0).arm({.expert = next_expert()});
    const Tensor loss = pass_.target().forward(engine, next_inputs()).at(0);
    record_loss(loss);
    pass_.target().backward(engine, loss, {});
  }

  bool refuses_rescale() {
    return !engines_ || is_refused(engines_->engine(0), spec_, Misuse::late_loss_scale, {});
  }

  // Nothing of it is anybody's gradient.
  void differentiate_aside(bool fails) {
    const TensorList inputs = fails ? next_inputs() : TensorList();
    if (!engines_) return;
    const GradMode enabled(pass_.autograd(), true);
    try {
      if (fails && spec_.engines == 2) {
        const Tensor loss = pass_.target().forward(1, inputs).at(0);
        pass_.target().backward(1, raising(pass_.autograd(), loss), {});
        return;
      }
      Tensor leaf = Tensor::full({}, 1.0, DType::float32);
      leaf.set_requires_grad(true);
      const Tensor loss = mul(pass_.autograd(), leaf, 2.0);
      pass_.autograd().backward(fails ? raising(pass_.autograd(), loss) : loss, {});
    } catch (const Injected&) {
    }
  }

  bool refuses_step(const MicroSpec& micro) {
    const EngineErrorId id = micro.block != 0 ? EngineErrorId::e7 : EngineErrorId::e23;
    return !engines_ || is_refused_with(id, [&] { engines_->engine(0).step(); });
  }

  void record_loss(const Tensor& loss) { pass_.target().record("loss", loss.detach()); }

  // Each rank its own where the engine can do it: as a leaf module.
  int next_expert() {
    const int apart = spec_.stage == 3 ? pass_.target().rank() : 0;
    return (forwards_++ + apart) % 2;
  }

  // As whoever takes them off to generate, and puts them on again.
  void make_hooks_anew() {
    if (!engines_) return;
    for (const nn::NamedModule& module : engines_->module(0).named_modules())
      if (module.name == GeneratedModel::kExperts)
        engines_->engine(0).set_leaf_module(*module.module);
  }

  // A forward that gets no backward, and whose weights are given up.
  void abandon_forward(const MicroSpec& micro) {
    forward(micro);
    if (micro.abandons == 2) visit_weights(spec_, pass_, static_cast<Gathers>(micro.gathers));
    if (engines_) engines_->engine(0).release_gathered_parameters();
    record("elements of what is given up", {static_cast<double>(whole_elements(pass_))});
  }

  TensorList next_inputs() {
    TensorList inputs = pass_.next_inputs();
    if (spec_.input_grad != 0) inputs.at(0).set_requires_grad(true);
    return inputs;
  }

  Losses forward(const MicroSpec& micro) {
    arm(micro);
    const TensorList inputs = next_inputs();
    TensorList losses = [&] {
      const Armed armed(engines_, short_of_, {Shortage::evaluation, Shortage::forward});
      return surrounded_forward(micro, pass_, inputs);
    }();
    losses.resize(static_cast<std::size_t>(spec_.heads));
    record_casts("bytes of casts", true);
    for (const Tensor& loss : losses) record_loss(loss);
    const auto interrupt = static_cast<Interrupt>(micro.interrupt);
    const bool is_joined = interrupt != Interrupt::other && interrupt != Interrupt::fails;
    if (spec_.engines == 2 && spec_.takes_turns == 0 && is_joined)
      losses = {joined(losses.at(0), inputs)};
    if (micro.has_bypass != 0)
      losses.back() = add(pass_.autograd(), losses.back(), bypass(micro, inputs));
    if (spec_.is_lifted != 0) losses.back() = add(pass_.autograd(), losses.back(), CaseSpec::kLift);
    if (spec_.has_grad_scaler != 0)
      for (Tensor& loss : losses)
        loss = mul(pass_.autograd(), to(pass_.autograd(), loss, DType::float32),
                   1.0 / CaseSpec::kGradScale);
    return losses;
  }

  Tensor bypass(const MicroSpec& micro, const TensorList& inputs) {
    const GeneratedModel& model = model_of(pass_, 0);
    if (static_cast<Bypass>(micro.has_bypass) == Bypass::layer)
      return model.bypass(pass_.autograd(), inputs);
    Tensor term;
    with_whole_weights(spec_, pass_, {model.bypassed_weight()},
                       [&] { term = model.bypass_of_weight(pass_.autograd(), inputs); });
    return term;
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
    if (micro.spans == 0) return differentiate_each(micro, losses);
    visit_with_backward(spec_, pass_, micro.spans, [&] { differentiate_each(micro, losses); });
  }

  void differentiate_each(const MicroSpec& micro, const Losses& losses) {
    if (losses.size() == 1) return backward(micro, losses.front(), false);
    switch (static_cast<train::Losses>(micro.losses)) {
      case train::Losses::both:
        backward(micro, losses.at(0), true);
        look(micro, Looks::between);
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

  void backward(const MicroSpec& micro, const Tensor& given, bool is_needed_again) {
    const Armed armed(engines_, short_of_, {Shortage::backward, Shortage::epilogue});
    const Tensor loss = aborts_on_loss_ ? raising(pass_.autograd(), given) : given;
    const bool retain_graph = is_needed_again || micro.keeps == 1 || micro.keeps == 3;
    if (micro.keeps == 1 || micro.keeps == 2) kept_.push_back(loss);
    const bool is_undivided = micro.is_undivided != 0;
    const bool is_managed = is_managed_ && spec_.engines == 1;
    const bool is_manual = pass_.is_manual() || micro.by_hand != 0;
    if (is_undivided || is_managed || !is_manual) {
      const Tensor returned = pass_.target().backward(0, loss,
                                                      {.retain_graph = retain_graph,
                                                       .create_graph = micro.creates != 0,
                                                       .scale_wrt_gas = !is_undivided});
      if (!reads_rounded(micro)) pass_.target().record("returned", returned);
    } else if (spec_.engines == 2 && spec_.takes_turns == 0) {
      pass_.target().tensor_backward({loss}, {}, retain_graph);  // scaled already
    } else {
      differentiate_manually(loss, retain_graph, micro.clears == 3);
    }
  }

  const CaseSpec& spec_;
  Pass& pass_;
  EngineTarget* engines_;        // null: the baseline
  WeightValues unchanged_;       // what weights were before a hook of the user changed them
  Losses kept_;                  // of graphs that live on
  Losses ahead_;                 // of the next micro-batch
  bool is_retained_ = false;     // a last backward of this window has kept its graph
  bool is_lost_ = false;         // the window will be loaded away
  bool is_interrupted_ = false;  // hooks of the user call engines
  int aborts_ = 0;
  bool aborts_on_loss_ = false;
  int throws_ = 0;
  std::size_t at_ = 0;        // the micro-batch that runs
  bool is_inside_ = false;    // a window that has begun
  bool is_boundary_ = false;  // of the micro-batch that runs
  bool is_managed_ = false;   // the backward that throws is the engine's
  int forwards_ = 0;
  const MicroSpec* short_of_ = nullptr;     // memory: what it says is still to come
  std::vector<std::int64_t> bytes_behind_;  // its micro-batches
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
  const auto restores = [](const MicroSpec& micro) {
    const auto detour = static_cast<Detour>(micro.detour);
    return micro.restores != 0 || static_cast<Interrupt>(micro.interrupt) == Interrupt::save ||
           detour == Detour::save || detour == Detour::load;
  };
  if (spec.first_ranks != 0 || std::ranges::any_of(spec.micros, restores))
    scenario.files = std::make_shared<KeptFiles>();
  scenario.accumulation_steps = spec.accumulation;
  scenario.is_managed = spec.is_unmanaged == 0;
  scenario.skips_frames = spec.skips_frames != 0;
  if (spec.experts != 0 && static_cast<LeafBy>(spec.leaf_by) == LeafBy::call)
    scenario.leaf_module = GeneratedModel::kExperts;
  scenario.is_offloaded = spec.is_offloaded != 0;
  scenario.has_ranks_apart = spec.has_ranks_apart != 0;
  if (spec.owns_scale == 2) scenario.custom_loss_scale = CaseSpec::kCustomLossScale;
  scenario.parameter_groups = static_cast<std::size_t>(spec.groups);
  scenario.forwards = spec.forwards();
  scenario.uses = spec.uses();
  return scenario;
}

}  // namespace zeroproof::train
