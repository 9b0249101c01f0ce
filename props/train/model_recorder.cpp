#include "props/train/model_recorder.h"

#include "zeroproof/internal/model/transforms/transform_frame.h"
#include "zeroproof/model/checkpoint/checkpoint.h"

namespace zeroproof::train {
namespace {

// Python's name of what passes through.
std::string exception_name(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Injected&) {
    return "ValueError";
  } catch (const std::runtime_error&) {
    return "RuntimeError";
  } catch (...) {
    return "Exception";
  }
}

}  // namespace

void ModelRecorder::on_model(Autograd& autograd, nn::Module& module, const std::string& prefix) {
  watch_model(autograd, module, {.root = prefix + "model", .prefix = prefix});
}

void ModelRecorder::watch_model(Autograd& autograd, nn::Module& module, const ModelNames& names) {
  if (autograd_ == nullptr) {
    autograd_ = &autograd;
    journal_.set_autograd(&autograd);
    autograd.add_listener(*this);
  }
  for (const nn::NamedModule& inner : module.named_modules())
    watch(*inner.module, inner.name.empty() ? names.root : names.prefix + inner.name);
  if (is_stage0_) watch_gradients(module, names.prefix);
}

// In other stages the engine's own hooks make the event.
void ModelRecorder::watch_gradients(const nn::Module& module, const std::string& prefix) {
  for (const nn::NamedParameter& parameter : module.named_parameters()) {
    if (!parameter.tensor.requires_grad()) continue;
    const NameId full_name = name(prefix + parameter.name);
    parameter.tensor.register_post_accumulate_grad_hook([this, full_name](const Tensor&) {
      HookEvent event;
      event.kind = EventKind::param_post_acc;
      event.param = full_name;
      journal_.write(std::move(event));
    });
  }
}

void ModelRecorder::watch(nn::Module& module, const std::string& full_name) {
  module.register_forward_pre_hook([this, full_name](const TensorList&) {
    write_forward(EventKind::module_fwd_pre, full_name);
    return TensorList();
  });
  module.register_forward_hook([this, full_name](const TensorList&, const TensorList&) {
    write_forward(EventKind::module_fwd_post, full_name);
    return TensorList();
  });
}

void ModelRecorder::write_forward(EventKind kind, const std::string& full_name) {
  HookEvent event;
  event.kind = kind;
  event.name = name(full_name);
  event.is_recompute = is_in_task();
  journal_.write(std::move(event));
}

bool ModelRecorder::is_in_task() const {
  return autograd_ != nullptr && !autograd_->current_graph_task().is_none();
}

TensorList ModelRecorder::run_checkpoint(std::string_view label,
                                         const std::function<TensorList()>& body) {
  const bool is_recompute = is_in_task();
  const std::int64_t run = checkpoint_runs_[std::string(label)]++;
  const auto event = [&](EventKind forward, EventKind recompute) {
    HookEvent made;
    made.kind = is_recompute ? recompute : forward;
    made.name = name(label);
    made.index = run;
    return made;
  };
  HookEvent end = event(EventKind::ckpt_forward_end, EventKind::ckpt_recompute_end);
  journal_.write(event(EventKind::ckpt_forward_begin, EventKind::ckpt_recompute_begin));
  try {
    TensorList outputs = body();
    journal_.write(end);
    return outputs;
  } catch (const StopRecomputation&) {
    end.is_early_stop = true;
    journal_.write(end);
    throw;
  } catch (...) {
    end.exception = name(exception_name(std::current_exception()));
    journal_.write(end);
    throw;
  }
}

void ModelRecorder::on_function(EventKind kind, std::string_view label) {
  journal_.write(kind, label);
}

void ModelRecorder::on_backward_begin(const BackwardCall&) {
  Call call;
  call.number = next_call_++;
  if (!calls_.empty()) call.parent = calls_.back().number;
  calls_.push_back(call);
}

// The task has its id by now.
void ModelRecorder::on_graph_task_begin(GraphTaskId task, bool) {
  if (calls_.empty() || calls_.back().has_begun) return;
  calls_.back().task = task;
  write_begin(calls_.back());
}

void ModelRecorder::write_begin(Call& call) {
  HookEvent begin;
  begin.kind = EventKind::gt_begin;
  begin.call = call.number;
  begin.parent_call = call.parent;
  begin.graph_task = call.task;
  journal_.write(std::move(begin));
  call.has_begun = true;
  journal_.set_depth(static_cast<std::int32_t>(calls_.size()));
}

void ModelRecorder::on_backward_end(std::exception_ptr error) {
  if (!calls_.back().has_begun) write_begin(calls_.back());
  HookEvent end;
  end.kind = EventKind::gt_end;
  end.call = calls_.back().number;
  end.graph_task = calls_.back().task;
  if (error) end.exception = name(exception_name(error));
  calls_.pop_back();
  journal_.set_depth(static_cast<std::int32_t>(calls_.size()));
  journal_.write(std::move(end));
}

void ModelRecorder::on_transform_push(const TransformFrame& frame) {
  HookEvent push;
  push.kind = EventKind::ft_push;
  push.name = name(transform_name(frame.kind));
  push.index = frame.level;
  journal_.write(std::move(push));
}

void ModelRecorder::on_transform_pop(const TransformFrame& frame) {
  HookEvent pop;
  pop.kind = EventKind::ft_pop;
  pop.name = name(transform_name(frame.kind));
  pop.index = frame.level;
  journal_.write(std::move(pop));
}

}  // namespace zeroproof::train
