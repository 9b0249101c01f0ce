#include "props/conform/program_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "zeroproof/internal/model/transforms/transform_frame.h"
#include "zeroproof/model/autograd_error.h"

namespace zeroproof {
namespace {

// The recorded programs ran one after another in one process, so its thread was far ahead of a
// fresh one (rule N3).
constexpr std::uint64_t kFirstSequenceNr = 1000;

Device device_of(const HeaderRecord& header) {
  for (const auto& [key, value] : header.producer)
    if (key == "device" && value && value->starts_with("cuda")) return Device::cuda(0);
  return Device::cpu();
}

}  // namespace

ProgramRun::ProgramRun(const Recording& recorded, DType dtype)
    : recorded_(recorded), dtype_(dtype), device_(device_of(recorded.header)) {
  recording_.header.program = recorded.header.program;
  autograd_.set_next_sequence_nr(kFirstSequenceNr);
  autograd_.global().release = recorded.torch;
}

Tensor ProgramRun::recorded_tensor(const std::string& role, const std::string& name) const {
  const auto at = recorded_.tensors.find({role, name});
  if (at == recorded_.tensors.end() || !at->second.values || !at->second.shape)
    throw MissingTensor(fmt::format("the trace has no {} '{}'", role, name));
  if (std::cmp_not_equal(at->second.values->size(), numel(*at->second.shape)))
    throw MissingTensor(fmt::format("the values of {} '{}' do not fill its shape", role, name));
  const DType recorded = dtype_of(at->second.dtype).value_or(dtype_);
  return Tensor::of(*at->second.values, *at->second.shape, std::max(dtype_, recorded)).on(device_);
}

Tensor ProgramRun::input(std::string_view name) {
  const int index = next_input_++;
  return recorded_tensor("input", name.empty() ? fmt::format("in{}", index) : std::string(name));
}

Tensor ProgramRun::leaf_input(std::string_view name, const LeafOptions& options) {
  return name_leaf(std::string(name), input(name), options);
}

nn::Linear ProgramRun::linear(const std::string& name, const LinearOptions& options) {
  const auto parameter = [&](const char* kind, const LeafOptions& leaf) {
    const std::string full = name + kind;
    return name_leaf(full, recorded_tensor("param", full), leaf);
  };
  nn::Linear linear{parameter(".weight", options.weight), {}};
  if (options.has_bias) linear.bias = parameter(".bias", options.bias);
  return linear;
}

Tensor ProgramRun::name_leaf(const std::string& name, Tensor leaf, const LeafOptions& options) {
  leaves_.emplace_back(name, leaf);
  leaf.set_requires_grad(options.requires_grad);
  if (!options.requires_grad) return leaf;
  if (options.has_tensor_hook) {
    leaf.register_hook([this, name](const Tensor& grad) {
      HookEvent fired = event(EventKind::param_tensor_hook, {});
      fired.param = names_.intern(name);
      fired.is_grad_none = !grad.is_defined();
      send(fired);
      return Tensor();
    });
  }
  if (options.is_observed) observe(name, leaf);
  return leaf;
}

void ProgramRun::observe(const std::string& name, const Tensor& leaf) {
  leaf.register_post_accumulate_grad_hook([this, name](const Tensor&) {
    HookEvent fired = event(EventKind::param_post_acc, {});
    fired.param = names_.intern(name);
    send(fired);
  });
}

Tensor ProgramRun::ckpt(const std::string& label, CheckpointKind kind,
                        std::function<Tensor(const Tensor&)> body, const Tensor& input,
                        const CheckpointOptions& options) {
  const auto observed = [this, label, body = std::move(body)](const TensorList& inputs) {
    return run_body(label, body, inputs[0]);
  };
  return checkpoint(autograd_, kind, observed, {input}, options)[0];
}

TensorList ProgramRun::run_body(const std::string& label,
                                const std::function<Tensor(const Tensor&)>& body,
                                const Tensor& input) {
  const std::int64_t run = body_runs_[label]++;
  const auto bracket = [&](EventKind forward, EventKind recompute) {
    HookEvent made = event(run == 0 ? forward : recompute, label);
    made.index = run;
    return made;
  };
  const auto end = [&] {
    return bracket(EventKind::ckpt_forward_end, EventKind::ckpt_recompute_end);
  };
  send(bracket(EventKind::ckpt_forward_begin, EventKind::ckpt_recompute_begin));
  try {
    TensorList outputs = {body(input)};
    send(end());
    return outputs;
  } catch (const StopRecomputation&) {
    HookEvent stopped = end();
    stopped.is_early_stop = true;
    send(stopped);
    throw;
  } catch (...) {
    HookEvent failed = end();
    failed.exception = names_.intern(exception_type(std::current_exception()));
    send(failed);
    throw;
  }
}

void ProgramRun::mark(std::string_view label) {
  emit(EventKind::mark, label);
}
void ProgramRun::mark(std::string_view label, bool fact) {
  mark(fmt::format("{}:{}", label, fact ? "True" : "False"));
}
void ProgramRun::emit(EventKind kind, std::string_view name) {
  HookEvent made = event(kind, name);
  const bool is_forward = kind == EventKind::module_fwd_pre || kind == EventKind::module_fwd_post;
  made.is_recompute = is_forward && !made.graph_task.is_none();
  send(made);
}

void ProgramRun::bucket_ready(std::size_t index) {
  HookEvent made = event(EventKind::bucket_ready, {});
  made.index = static_cast<std::int64_t>(index);
  send(made);
}

HookHandle ProgramRun::hook(const Tensor& tensor, const std::string& label, Tensor::Hook then) {
  return tensor.register_hook([this, label, then = std::move(then)](const Tensor& grad) {
    HookEvent fired = event(EventKind::tensor_hook, label);
    fired.is_grad_none = !grad.is_defined();
    send(fired);
    return then ? then(grad) : Tensor();
  });
}

void ProgramRun::prehook(const std::shared_ptr<Node>& node, const std::string& label) {
  node->register_prehook([this, label](const TensorList&) {
    emit(EventKind::node_prehook, label);
    return TensorList{};
  });
}

void ProgramRun::posthook(const std::shared_ptr<Node>& node, const std::string& label) {
  node->register_hook([this, label](const TensorList&, const TensorList&) {
    emit(EventKind::node_posthook, label);
    return TensorList{};
  });
}

void ProgramRun::queue(const std::string& label, std::function<void()> then) {
  autograd_.queue_callback([this, label, then = std::move(then)] {
    emit(EventKind::cb_begin, label);
    if (then) then();
    emit(EventKind::cb_end, label);
  });
  emit(EventKind::cb_queue, label);
}

void ProgramRun::guarded(const std::function<void()>& body) {
  const auto note = [this](const std::exception& error) {
    HookEvent caught = event(EventKind::exc, exception_type(std::current_exception()));
    caught.message = names_.intern(error.what());
    send(caught);
  };
  try {
    body();
  } catch (const AutogradError& error) {
    note(error);
  } catch (const ValueError& error) {
    note(error);
  }
}

void ProgramRun::dump(std::string_view role, std::string_view name, const Tensor& tensor) {
  TensorRecord record{std::string(role), std::string(name), {}, {}, {}};
  if (tensor.is_defined()) {
    record.shape = tensor.sizes();
    record.dtype = dtype_name(tensor.dtype());
    record.values = tensor.values();
  }
  recording_.tensors[{record.role, record.name}] = std::move(record);
}

Recording ProgramRun::finish() {
  for (const auto& [name, leaf] : leaves_) {
    dump("grad", name, leaf.grad());
    leaf.set_grad({});  // one with a graph owns its leaf, as in PyTorch
  }
  return std::move(recording_);
}

void ProgramRun::on_backward_begin(const BackwardCall& call) {
  const auto leaf_name = [this](const Tensor& leaf) -> std::string {
    for (const auto& [name, known] : leaves_)
      if (known.is_same(leaf)) return name;
    return {};
  };
  GraphWalk walk = walk_graph(autograd_, call, leaf_name);
  HookEvent begin = event(EventKind::gt_begin, {});
  begin.call = walk.snapshot.call = next_call_++;
  if (!calls_.empty()) begin.parent_call = calls_.back().number;
  send(begin);
  calls_.push_back({begin.call, std::move(walk)});
}

void ProgramRun::on_node(const Node& node) {
  // A nested task may run a node that only an outer call knows; the recorder's hooks stay there.
  for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
    const auto at = call->walk.ids.find(&node);
    if (at == call->walk.ids.end()) continue;
    HookEvent run = event(EventKind::node_exec, node.name());
    run.node = at->second.value;
    run.call = call->number;
    send(run);
  }
}

void ProgramRun::on_backward_end(std::exception_ptr error) {
  HookEvent end = event(EventKind::gt_end, {});
  end.call = calls_.back().number;
  if (error) end.exception = names_.intern(exception_type(error));
  calls_.pop_back();
  end.depth = static_cast<std::int32_t>(calls_.size());
  send(end);
}

void ProgramRun::on_transform_push(const TransformFrame& frame) {
  HookEvent push = event(EventKind::ft_push, transform_name(frame.kind));
  push.index = frame.level;
  send(push);
}

void ProgramRun::on_transform_pop(const TransformFrame& frame) {
  HookEvent pop = event(EventKind::ft_pop, transform_name(frame.kind));
  pop.index = frame.level;
  send(pop);
}

HookEvent ProgramRun::event(EventKind kind, std::string_view name) {
  HookEvent event;
  event.kind = kind;
  event.thread = autograd_.current_thread();
  event.depth = static_cast<std::int32_t>(calls_.size());
  event.graph_task = autograd_.current_graph_task();
  if (const auto& transforms = autograd_.local().transforms) event.transforms = transforms->level;
  if (!name.empty()) event.name = names_.intern(name);
  return event;
}

void ProgramRun::send(HookEvent event) {
  event.lc = ++clock_;
  sink_.on_event(event);
}

std::string exception_type(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ValueError&) {
    return "ValueError";
  } catch (const StopRecomputation&) {
    return "_StopRecomputationError";
  } catch (const CheckpointError&) {
    return "CheckpointError";
  } catch (const AutogradError&) {
    return "RuntimeError";
  } catch (...) {
    return "Exception";
  }
}

}  // namespace zeroproof
