#include "tests/model/random_program.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "model/accumulate_grad.h"
#include "model/custom_function.h"
#include "tests/model/pick.h"
#include "zeroproof/model/functions.h"

namespace zeroproof::testing {
namespace {

constexpr double kMost = 1 << 24;  // of a value and of a sum over all weighted paths

// What the generator knows of a tensor: whether it has a gradient, and bounds.
struct Facts {
  bool requires_grad = false;
  double value = 1;  // largest magnitude
  double paths = 1;  // sum of the weights of all paths to leaves
};

bool makes_two(StepKind kind) {
  return kind == StepKind::unbind || kind == StepKind::function_two;
}

std::vector<Facts> facts_of(const Step& step, const Facts& a, const Facts& b) {
  const bool either = a.requires_grad || b.requires_grad;
  const double values = a.value + b.value;
  const double paths = a.paths + b.paths;
  switch (step.kind) {
    case StepKind::mul:
      return {{either, a.value * b.value, a.paths * b.value + b.paths * a.value}};
    case StepKind::scale:
      return {{a.requires_grad, 3 * a.value, 3 * a.paths}};
    case StepKind::detach:
      return {{false, a.value, 1}};
    case StepKind::no_grad_add:
      return {{false, values, 1}};
    case StepKind::unbind:
      return {{either, a.value, a.paths}, {either, b.value, b.paths}};
    case StepKind::function_two:
      return {{either, values, paths}, {either, values, paths}};
    default:
      return {{either, 2 * values, 2 * paths}};
  }
}

class Generator {
 public:
  explicit Generator(const ProgramSize& size) : size_(size) {
    const int leaves = pick(1, size.leaves_max + 1);
    for (int i = 0; i < leaves; ++i) {
      program_.leaves.push_back({pick(-3, 4), i > 0 && pick(0, 5) == 0});
      facts_.push_back({!program_.leaves.back().is_frozen, 3, 1});
    }
    const int steps = pick(1, size.steps_max + 1);
    for (int i = 0; i < steps; ++i) add_step();
    const int backwards = pick(1, size.backwards_max + 1);
    for (int i = 0; i < backwards; ++i) program_.backwards.push_back(random_backward());
    const int nested = size.nested_max == 0 ? 0 : pick(1, size.nested_max + 1);
    for (int i = 0; i < nested; ++i)
      program_.nested.push_back({differentiable(), differentiable(), pick<std::size_t>(0, 2)});
  }

  Program program() && { return std::move(program_); }

 private:
  std::size_t any() const {
    const std::size_t recent = std::min<std::size_t>(facts_.size(), 6);
    if (pick(0, 2) == 0) return facts_.size() - 1 - pick<std::size_t>(0, recent);
    return pick<std::size_t>(0, facts_.size());
  }

  std::size_t differentiable() const {
    const std::size_t place = any();
    return facts_[place].requires_grad ? place : 0;  // leaf 0 is never frozen
  }

  void add_step() {
    constexpr StepKind kKinds[] = {
        StepKind::add,    StepKind::add,    StepKind::sub,           StepKind::mul,
        StepKind::scale,  StepKind::detach, StepKind::function,      StepKind::no_grad_add,
        StepKind::unbind, StepKind::unbind, StepKind::function_none, StepKind::function_two};
    const std::size_t kinds = std::size(kKinds) - (size_.has_partial_gradients ? 0 : 4);
    Step step{kKinds[pick<std::size_t>(0, kinds)], any(), any(), pick(-3, 4)};
    std::vector<Facts> made = facts_of(step, facts_[step.a], facts_[step.b]);
    if (std::max(made[0].value, made[0].paths) > kMost) {
      step = {StepKind::detach, 0, 0, 1};
      made = facts_of(step, facts_[0], facts_[0]);
    }
    program_.steps.push_back(step);
    facts_.insert(facts_.end(), made.begin(), made.end());
  }

  BackwardSpec random_backward() const {
    BackwardSpec spec;
    for (int i = pick(1, 4); i > 0; --i) spec.roots.push_back(differentiable());
    if (pick(0, 3) != 0) return spec;
    for (int i = pick(1, 4); i > 0; --i) spec.inputs.push_back(differentiable());
    spec.is_accumulating = pick(0, 2) == 0;
    return spec;
  }

  ProgramSize size_;
  Program program_;
  std::vector<Facts> facts_;
};

const char* word_of(StepKind kind) {
  constexpr const char* kWords[] = {"add",           "sub",         "mul",    "scale",
                                    "detach",        "no_grad_add", "unbind", "function",
                                    "function_none", "function_two"};
  return kWords[static_cast<std::size_t>(kind)];
}

// Named functions of a + 2 b, without a gradient for b, and of the pair a + b, a - b. The last one
// sees undefined gradients as they are and passes them on.
CustomFunction function_of(Autograd& ag, StepKind kind) {
  CustomFunction function{.name = "ExactFunctionBackward"};
  if (kind == StepKind::function_two) {
    function.forward = [&ag](FunctionContext& context, const TensorList& in) {
      context.set_materialize_grads(false);
      return TensorList{add(ag, in[0], in[1]), sub(ag, in[0], in[1])};
    };
    function.backward = [&ag](FunctionContext&, const TensorList& g) {
      if (!g[0].is_defined()) return TensorList{g[1], g[1].is_defined() ? neg(ag, g[1]) : Tensor()};
      if (!g[1].is_defined()) return TensorList{g[0], g[0]};
      return TensorList{add(ag, g[0], g[1]), sub(ag, g[0], g[1])};
    };
    return function;
  }
  function.forward = [&ag](FunctionContext& context, const TensorList& in) {
    context.save_for_backward({in[1]});
    return TensorList{add(ag, in[0], mul(ag, in[1], 2.0))};
  };
  function.backward = [&ag, kind](FunctionContext& context, const TensorList& g) {
    context.saved_tensors();
    return TensorList{g[0], kind == StepKind::function_none ? Tensor() : mul(ag, g[0], 2.0)};
  };
  return function;
}

// The derivative of one element, from the back to the front.
class ReferenceTape {
 public:
  ReferenceTape(const Program& program, std::size_t element) : program_(program) {
    for (const LeafSpec& leaf : program.leaves) {
      values_.push_back(element == 0 ? leaf.value : leaf.value + 1);
      has_grad_.push_back(!leaf.is_frozen);
    }
    for (const Step& step : program.steps) forward(step);
  }

  // Adds the gradient of the roots' sum to `total`.
  void backward(const BackwardSpec& spec, std::vector<double>& total) {
    std::vector<double> grads(values_.size(), 0.0);
    for (const std::size_t root : spec.roots) grads[root] += 1;
    std::size_t end = values_.size();
    for (std::size_t i = program_.steps.size(); i-- > 0;) {
      end -= makes_two(program_.steps[i].kind) ? 2 : 1;
      if (has_grad_[end]) pull_back(program_.steps[i], end, grads);
    }
    for (std::size_t i = 0; i < total.size(); ++i) {
      const bool is_input = std::count(spec.inputs.begin(), spec.inputs.end(), i) != 0;
      if (spec.is_accumulating && has_grad_[i] && (spec.inputs.empty() || is_input))
        total[i] += grads[i];
    }
  }

 private:
  void forward(const Step& step) {
    const double a = values_[step.a];
    const double b = values_[step.b];
    const bool is_cut = step.kind == StepKind::detach || step.kind == StepKind::no_grad_add;
    const bool is_unary = step.kind == StepKind::scale;
    has_grad_.push_back(!is_cut && (has_grad_[step.a] || (!is_unary && has_grad_[step.b])));
    if (makes_two(step.kind)) has_grad_.push_back(has_grad_.back());
    switch (step.kind) {
      case StepKind::add:
      case StepKind::no_grad_add:
        return values_.push_back(a + b);
      case StepKind::sub:
        return values_.push_back(a - b);
      case StepKind::mul:
        return values_.push_back(a * b);
      case StepKind::scale:
        return values_.push_back(step.factor * a);
      case StepKind::detach:
        return values_.push_back(a);
      case StepKind::unbind:
        return values_.insert(values_.end(), {a, b}), void();
      case StepKind::function:
      case StepKind::function_none:
        return values_.push_back(a + 2 * b);
      case StepKind::function_two:
        return values_.insert(values_.end(), {a + b, a - b}), void();
    }
  }

  void pull_back(const Step& step, std::size_t output, std::vector<double>& grads) const {
    const double g = grads[output];
    const double second = makes_two(step.kind) ? grads[output + 1] : 0.0;
    const auto give = [&](double to_a, double to_b) {
      grads[step.a] += to_a;
      grads[step.b] += to_b;
    };
    switch (step.kind) {
      case StepKind::add:
        return give(g, g);
      case StepKind::sub:
        return give(g, -g);
      case StepKind::mul:
        return give(g * values_[step.b], g * values_[step.a]);
      case StepKind::scale:
        return give(g * step.factor, 0);
      case StepKind::unbind:
        return give(g, second);
      case StepKind::function:
        return give(g, 2 * g);
      case StepKind::function_none:
        return give(g, 0);
      case StepKind::function_two:
        return give(g + second, g - second);
      case StepKind::detach:
      case StepKind::no_grad_add:
        return;
    }
  }

  const Program& program_;
  std::vector<double> values_;
  std::vector<bool> has_grad_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Program& program) {
  for (const LeafSpec& leaf : program.leaves)
    out << (leaf.is_frozen ? "frozen " : "leaf ") << leaf.value << "; ";
  for (const Step& step : program.steps)
    out << word_of(step.kind) << ' ' << step.a << ' ' << step.b << ' ' << step.factor << "; ";
  for (const BackwardSpec& spec : program.backwards) {
    out << (spec.is_accumulating ? "backward" : "grad");
    for (const std::size_t root : spec.roots) out << ' ' << root;
    if (!spec.inputs.empty()) out << " for";
    for (const std::size_t input : spec.inputs) out << ' ' << input;
    out << "; ";
  }
  for (const NestedSpec& nested : program.nested)
    out << "at " << nested.at << " level " << nested.level << " backward " << nested.root << "; ";
  return out;
}

Program random_program(const ProgramSize& size) {
  return Generator(size).program();
}

std::vector<std::vector<double>> reference_gradients(const Program& program) {
  std::vector<std::vector<double>> grads(program.leaves.size(), std::vector<double>(2, 0.0));
  for (std::size_t element = 0; element < 2; ++element) {
    std::vector<double> total(program.leaves.size(), 0.0);
    ReferenceTape tape(program, element);
    for (const BackwardSpec& spec : program.backwards) tape.backward(spec, total);
    for (std::size_t i = 0; i < total.size(); ++i) grads[i][element] = total[i];
  }
  return grads;
}

Numbers numbers_of(const Tensor& tensor) {
  return tensor.is_defined() ? Numbers(tensor.values()) : std::nullopt;
}

void TaskRecorder::on_backward_begin(const BackwardCall& call) {
  const std::size_t task = tasks_.size();
  GraphWalk walk = walk_graph(*autograd_, call);
  tasks_.push_back({.graph = walk.snapshot, .is_nested = !running_.empty()});
  if (!running_.empty()) {
    const auto node = gradient_edge(*autograd_, start_).node;
    tasks_[running_.back().task].starts[running_.back().walk.ids.at(node.get())].push_back(task);
  }
  running_.push_back({task, std::move(walk)});
}

void TaskRecorder::on_node(const Node& node) {
  const Running& running = running_.back();
  const auto at = running.walk.ids.find(&node);
  if (at == running.walk.ids.end()) return;  // the artificial root
  tasks_[running.task].order.push_back(at->second);
  steps_.push_back({running.task, at->second});
}

void TaskRecorder::on_backward_end(std::exception_ptr) {
  running_.pop_back();
}

ProgramRun::ProgramRun(const Program& program, Chooser* chooser)
    : program_(program), autograd_(ops_, &recorder_) {
  recorder_.attach(autograd_);
  if (chooser) autograd_.set_scheduling(*chooser, OrderModel::any_topological);
  for (const LeafSpec& leaf : program_.leaves) {
    tensors_.push_back(Tensor::of({1.0 * leaf.value, leaf.value + 1.0}, {2}));
    tensors_.back().set_requires_grad(!leaf.is_frozen);
  }
  for (const Step& step : program_.steps) add_outputs(step);
  for (const NestedSpec& nested : program_.nested) hook_nested(nested);
}

void ProgramRun::run_backwards() {
  for (const BackwardSpec& spec : program_.backwards) run(spec);
}

void ProgramRun::add_outputs(const Step& step) {
  const Tensor a = tensors_[step.a];
  const Tensor b = tensors_[step.b];
  const auto put = [this](const TensorList& made) {
    tensors_.insert(tensors_.end(), made.begin(), made.end());
  };
  switch (step.kind) {
    case StepKind::add:
      return put({add(autograd_, a, b)});
    case StepKind::sub:
      return put({sub(autograd_, a, b)});
    case StepKind::mul:
      return put({mul(autograd_, a, b)});
    case StepKind::scale:
      return put({mul(autograd_, a, static_cast<double>(step.factor))});
    case StepKind::detach:
      return put({a.detach()});
    case StepKind::no_grad_add: {
      const GradMode no_grad(autograd_, false);
      return put({add(autograd_, a, b)});
    }
    case StepKind::unbind:
      return put(unbind(autograd_, stack(autograd_, {a, b}, 0), 0));
    case StepKind::function:
    case StepKind::function_none:
    case StepKind::function_two:
      return put(apply_function(autograd_, function_of(autograd_, step.kind), {a, b}));
  }
}

void ProgramRun::hook_nested(const NestedSpec& nested) {
  tensors_[nested.at].register_hook([this, nested](const Tensor&) {
    if (recorder_.level() == nested.level) {
      recorder_.start_from(tensors_[nested.at]);
      run({{nested.root}, {}, true});
    }
    return Tensor();
  });
}

TensorList ProgramRun::tensors_at(const std::vector<std::size_t>& places) const {
  TensorList list;
  for (const std::size_t place : places) list.push_back(tensors_[place]);
  return list;
}

void ProgramRun::run(const BackwardSpec& spec) {
  const BackwardOptions options{.retain_graph = true, .inputs = tensors_at(spec.inputs)};
  TensorList roots = tensors_at(spec.roots);
  if (spec.is_accumulating) {
    return autograd_.backward(roots, TensorList(roots.size(), Tensor::full({2}, 1.0)), options);
  }
  for (Tensor& root : roots) root = sum(autograd_, root);
  for (const Tensor& grad : autograd_.grad(roots, options.inputs, options))
    captured_.push_back(grad);
}

std::vector<Numbers> ProgramRun::results() const {
  std::vector<Numbers> numbers;
  for (std::size_t i = 0; i < program_.leaves.size(); ++i)
    numbers.push_back(numbers_of(tensors_[i].grad()));
  for (const Tensor& grad : captured_) numbers.push_back(numbers_of(grad));
  return numbers;
}

}  // namespace zeroproof::testing
