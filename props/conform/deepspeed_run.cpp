#include "props/conform/deepspeed_run.h"

#include <fmt/format.h>

#include "props/conform/deepspeed_changes.h"
#include "props/conform/program_run.h"
#include "zeroproof/engine/engine_error.h"
#include "zeroproof/model/autograd_error.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

// Upstream's own words of docs/spec/zero.md 2.20 and 3.14.
bool is_assertion(EngineErrorId id) {
  switch (id) {
    case EngineErrorId::backward_of_invalid_loss:
    case EngineErrorId::scale_of_invalid_loss:
    case EngineErrorId::gradient_added_after_reduction:
    case EngineErrorId::gradient_reduced_twice:
    case EngineErrorId::parameter_twice_in_bucket:
    case EngineErrorId::release_outside_backward:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string python_exception(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const train::Injected&) {
    return "ValueError";
  } catch (const EngineError& thrown) {
    return is_assertion(thrown.id()) ? "AssertionError" : "RuntimeError";
  } catch (const std::runtime_error&) {
    return "RuntimeError";
  } catch (...) {
    return "Exception";
  }
}

ZeroConfig deepspeed_config(const DeepspeedRecording& recorded) {
  const auto has = [&](DeepspeedChange change) { return behaves(change, recorded.release); };
  ZeroConfig config;
  config.stage = static_cast<int>(recorded.header.stage.value_or(0));
  config.gradient_clipping = has(DeepspeedChange::clips_by_default) ? 1.0 : 0.0;
  config.memory_efficient_linear = has(DeepspeedChange::replaces_linear_of_any_model);
  config.reduce_bucket_size = 60;
  config.allgather_bucket_size = 200;
  config.overlap_comm = false;
  config.zero_force_ds_cpu_optimizer = false;
  config.stage3_param_persistence_threshold = 0;
  config.stage3_prefetch_bucket_size = 40;
  config.stage3_max_reuse_distance = 0;
  config.stage3_max_live_parameters = 1000;
  config.train_micro_batch_size_per_gpu = 2;
  config.bf16.enabled = recorded.header.dtype == "bf16";
  config.optimizer.adam.lr = 1e-2;
  return config;
}

DeepspeedRun::DeepspeedRun(const DeepspeedRecording& recorded, DeepspeedNotes& notes,
                           Runtime& runtime, const EngineBehaviour& behaviour)
    : recorded_(recorded),
      notes_(notes),
      runtime_(runtime),
      behaviour_(behaviour),
      config_(deepspeed_config(recorded)),
      autograd_(runtime.ops(), &notes.models) {
  autograd_.global().release = recorded.torch;
}

Tensor DeepspeedRun::tensor_of(const TensorRecord& record, DType dtype) const {
  if (!record.values || !record.shape ||
      std::cmp_not_equal(record.values->size(), numel(*record.shape)))
    throw MissingTensor(
        fmt::format("the trace has no values of {} '{}'", record.role, record.name));
  return Tensor::of(*record.values, *record.shape, dtype).on(runtime_.device());
}

Tensor DeepspeedRun::parameter(const std::string& name) const {
  for (std::size_t i = 0; const TensorRecord* record = recorded_.find("param", i); ++i) {
    if (record->name != name) continue;
    Tensor made = tensor_of(*record, DType::float32);
    made.set_requires_grad(true);
    return made;
  }
  throw MissingTensor(fmt::format("the trace has no param '{}'", name));
}

Tensor DeepspeedRun::data() {
  const TensorRecord* record = recorded_.find("input", next_input_++);
  if (!record) throw RecordingEnds{};
  return tensor_of(*record, dtype());
}

void DeepspeedRun::add_engine(DeepspeedModel kind, const std::string& name,
                              const std::string& leaf) {
  const std::size_t index = engines_.size();
  const std::string prefix = name.empty() ? name : name + ".";
  const DeepspeedModelOptions options{
      .parameter = [&](const std::string& own) { return parameter(prefix + own); },
      .watch = &notes_.models,
      .mark_ready = [this, index](
                        const Tensor& parameter,
                        bool is_ready) { engine(index).set_gradient_ready(parameter, is_ready); }};
  const auto module = make_deepspeed_model(kind, options);
  notes_.models.watch_model(autograd_, *module, {name.empty() ? "model" : name, prefix});
  notes_.sink.add_engine(name);
  ZeroConfig config = config_;
  if (!leaf.empty()) config.leaf_module.names = {leaf};
  EngineOptions engine_options;
  engine_options.id = EngineId{static_cast<std::int32_t>(index)};
  engine_options.policy = behaviour_.policy;
  engine_options.quirks = behaviour_.quirks;
  paused([&] {
    auto engine = Engine::initialize(autograd_, *module, config, runtime_, engine_options);
    if (!engine) throw std::runtime_error(engine.error().text);
    engines_.push_back({module, std::move(*engine)});
  });
}

// From 0.19.6 on, a loss that was divided, also by one, registers its graph task when its gradient
// comes, and queues a callback that forgets the registration.
void DeepspeedRun::backward(const Tensor& loss, const BackwardArguments& arguments,
                            std::size_t index) {
  if (!behaves(DeepspeedChange::tracks_graph_of_backward, recorded_.release)) {
    engine(index).backward(loss, arguments);
    return;
  }
  const Tensor tracked = div(autograd_, loss, 1.0);
  tracked.register_hook([this](const Tensor&) {
    queue_tracker_callback();
    return Tensor();
  });
  engine(index).backward(tracked, arguments);
}

void DeepspeedRun::queue_tracker_callback() {
  Journal& journal = notes_.journal;
  const std::string label =
      fmt::format("{}:_EngineBackwardGraphTracker.register_current_graph.<lambda>",
                  journal.take_callback_number());
  autograd_.queue_callback([&journal, label] {
    journal.write(EventKind::cb_begin, label);
    journal.write(EventKind::cb_end, label);
  });
  journal.write(EventKind::cb_queue, label);
}

void DeepspeedRun::paused(const std::function<void()>& body) {
  struct Pause {
    DeepspeedSink& sink;
    explicit Pause(DeepspeedSink& paused) : sink(paused) { sink.set_paused(true); }
    ~Pause() { sink.set_paused(false); }
  } pause(notes_.sink);
  body();
}

bool DeepspeedRun::guarded(const std::function<void()>& body) {
  std::exception_ptr error;
  try {
    body();
    return true;
  } catch (const MissingTensor&) {
    throw;
  } catch (const RecordingEnds&) {
    return true;
  } catch (const std::exception& thrown) {
    error = std::current_exception();
    notes_.recording.header.notes.emplace_back(thrown.what());
  } catch (...) {
    error = std::current_exception();
  }
  notes_.journal.write(EventKind::exc, python_exception(error));
  return false;
}

void DeepspeedRun::dump(std::string_view role, const std::string& name, const Tensor& value) {
  TensorRecord record{std::string(role), name, {}, {}, {}};
  if (value.is_defined()) {
    record.shape = value.sizes();
    record.dtype = dtype_name(value.dtype());
    record.values = value.values();
  }
  notes_.recording.tensors.push_back(std::move(record));
}

void DeepspeedRun::compare_grads(const std::string& tag, std::size_t index) {
  paused([&] {
    for (FullTensor& gradient : engine(index).full_gradients()) {
      TensorRecord record{"grad", tag + ":" + gradient.name, gradient.sizes, "float32", {}};
      if (!gradient.values.empty()) record.values = std::move(gradient.values);
      notes_.recording.tensors.push_back(std::move(record));
    }
  });
}

void DeepspeedRun::step(std::size_t index) {
  mark("step_begin");
  notes_.journal.write(EventKind::opt_step, {});
  engine(index).step();
  mark("step_end");
}

void DeepspeedRun::finish() {
  for (Trained& trained : engines_) {
    try {
      paused([&] { dump_parameters(trained); });
    } catch (const std::exception& thrown) {  // what is still in use cannot be given back
      notes_.recording.header.notes.emplace_back(thrown.what());
    }
  }
}

void DeepspeedRun::dump_parameters(Trained& trained) {
  const auto named = trained.module->named_parameters();
  TensorList all;
  for (const nn::NamedParameter& parameter : named) all.push_back(parameter.tensor);
  const auto read = [&] {
    for (const nn::NamedParameter& parameter : named)
      dump("param_final", parameter.name, parameter.tensor);
  };
  if (config_.stage == 3) {
    trained.engine->gathered_parameters(all, std::nullopt, read);
  } else {
    read();
  }
}

}  // namespace zeroproof
