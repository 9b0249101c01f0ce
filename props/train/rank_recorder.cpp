#include "props/train/rank_recorder.h"

#include "engine/engine_error.h"
#include "model/autograd_error.h"
#include "model/checkpoint/checkpoint.h"
#include "model/transforms/transform_frame.h"

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

Result<std::unique_ptr<RankRecorder>> RankRecorder::create(const std::string& path,
                                                           const HeaderRecord& header,
                                                           bool is_stage0) {
  auto writer = TraceWriter::create(path);
  if (!writer) return tl::unexpected(writer.error());
  std::unique_ptr<RankRecorder> recorder(new RankRecorder(std::move(*writer), header, is_stage0));
  TraceWriter& file = recorder->writer_;
  recorder->keep(file.add(header));
  recorder->keep(file.add(ThreadRecord{0, "MainThread", true}));
  GroupRecord world{.name = "world", .ranks = std::vector<std::int32_t>()};
  GroupRecord named{.name = "g", .ranks = {}};
  for (std::int32_t rank = 0; rank < header.world; ++rank) {
    world.ranks->push_back(rank);
    named.name += (rank == 0 ? "" : "_") + std::to_string(rank);
  }
  named.ranks = world.ranks;
  recorder->keep(file.add(world));
  recorder->keep(file.add(named));
  return recorder;
}

RankRecorder::RankRecorder(TraceWriter writer, const HeaderRecord& header, bool is_stage0)
    : writer_(std::move(writer)), journal_(*this, names_, header.rank), is_stage0_(is_stage0) {}

RankRecorder::~RankRecorder() = default;

Result<void> RankRecorder::finish() {
  if (error_) return tl::unexpected(*error_);
  return writer_.finish();
}

Result<void> RankRecorder::declare(nn::Module& module, const std::string& prefix, DType dtype) {
  for (const nn::NamedParameter& parameter : module.named_parameters()) {
    keep(writer_.add(ParamRecord{.id = next_param_++,
                                 .name = prefix + parameter.name,
                                 .shape = parameter.tensor.sizes(),
                                 .dtype = std::string(dtype_name(dtype)),
                                 .requires_grad = parameter.tensor.requires_grad()}));
  }
  if (error_) return tl::unexpected(*error_);
  return {};
}

void RankRecorder::on_event(const HookEvent& event) {
  keep(writer_.add(event, names_));
}

void RankRecorder::keep(Result<void> written) {
  if (!written && !error_) error_ = written.error();
}

void RankRecorder::on_model(Autograd& autograd, nn::Module& module, const std::string& prefix) {
  if (autograd_ == nullptr) {
    autograd_ = &autograd;
    journal_.set_autograd(&autograd);
    autograd.add_listener(*this);
  }
  for (const nn::NamedModule& inner : module.named_modules())
    watch(*inner.module, inner.name.empty() ? prefix + "model" : prefix + inner.name);
  if (!is_stage0_) return;  // elsewhere the engine's own hooks make the event
  for (const nn::NamedParameter& parameter : module.named_parameters()) {
    if (!parameter.tensor.requires_grad()) continue;
    const NameId name = names_.intern(prefix + parameter.name);
    parameter.tensor.register_post_accumulate_grad_hook([this, name](const Tensor&) {
      HookEvent event;
      event.kind = EventKind::param_post_acc;
      event.param = name;
      journal_.write(std::move(event));
    });
  }
}

void RankRecorder::watch(nn::Module& module, const std::string& name) {
  module.register_forward_pre_hook([this, name](const TensorList&) {
    write_forward(EventKind::module_fwd_pre, name);
    return TensorList();
  });
  module.register_forward_hook([this, name](const TensorList&, const TensorList&) {
    write_forward(EventKind::module_fwd_post, name);
    return TensorList();
  });
}

void RankRecorder::write_forward(EventKind kind, const std::string& name) {
  HookEvent event;
  event.kind = kind;
  event.name = names_.intern(name);
  event.is_recompute = is_in_task();
  journal_.write(std::move(event));
}

bool RankRecorder::is_in_task() const {
  return autograd_ != nullptr && !autograd_->current_graph_task().is_none();
}

TensorList RankRecorder::run_checkpoint(std::string_view label,
                                        const std::function<TensorList()>& body) {
  const bool is_recompute = is_in_task();
  const std::int64_t run = checkpoint_runs_[std::string(label)]++;
  const auto event = [&](EventKind forward, EventKind recompute) {
    HookEvent made;
    made.kind = is_recompute ? recompute : forward;
    made.name = names_.intern(label);
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
    end.exception = names_.intern(exception_name(std::current_exception()));
    journal_.write(end);
    throw;
  }
}

void RankRecorder::on_function(EventKind kind, std::string_view label) {
  journal_.write(kind, label);
}

void RankRecorder::on_backward_begin(const BackwardCall&) {
  Call call;
  call.number = next_call_++;
  if (!calls_.empty()) call.parent = calls_.back().number;
  calls_.push_back(call);
}

// The task has its id by now.
void RankRecorder::on_graph_task_begin(GraphTaskId task, bool) {
  if (calls_.empty() || calls_.back().has_begun) return;
  calls_.back().task = task;
  write_begin(calls_.back());
}

void RankRecorder::write_begin(Call& call) {
  HookEvent begin;
  begin.kind = EventKind::gt_begin;
  begin.call = call.number;
  begin.parent_call = call.parent;
  begin.graph_task = call.task;
  journal_.write(std::move(begin));
  call.has_begun = true;
  journal_.set_depth(static_cast<std::int32_t>(calls_.size()));
}

void RankRecorder::on_backward_end(std::exception_ptr error) {
  if (!calls_.back().has_begun) write_begin(calls_.back());
  HookEvent end;
  end.kind = EventKind::gt_end;
  end.call = calls_.back().number;
  end.graph_task = calls_.back().task;
  if (error) end.exception = names_.intern(exception_name(error));
  calls_.pop_back();
  journal_.set_depth(static_cast<std::int32_t>(calls_.size()));
  journal_.write(std::move(end));
}

void RankRecorder::on_transform_push(const TransformFrame& frame) {
  HookEvent push;
  push.kind = EventKind::ft_push;
  push.name = names_.intern(transform_name(frame.kind));
  push.index = frame.level;
  journal_.write(std::move(push));
}

void RankRecorder::on_transform_pop(const TransformFrame& frame) {
  HookEvent pop;
  pop.kind = EventKind::ft_pop;
  pop.name = names_.intern(transform_name(frame.kind));
  pop.index = frame.level;
  journal_.write(std::move(pop));
}

}  // namespace zeroproof::train
