#include "props/replay/recorded_job.h"

#include <algorithm>
#include <utility>

#include "sim/trace/reader.h"

namespace zeroproof::recorded {
namespace {

std::optional<std::uint64_t> largest_root(const GraphSnapshot& graph) {
  std::optional<std::uint64_t> largest;
  for (const auto& root : graph.roots) {
    if (!root) continue;
    const auto node = std::ranges::find(graph.nodes, root->node, &GraphNode::id);
    if (node == graph.nodes.end() || node->sequence_nr == kAccumulateGradSequence) continue;
    largest = std::max(largest.value_or(0), node->sequence_nr);
  }
  return largest;
}

class JobReader {
 public:
  explicit JobReader(const NameTable& names) : names_(names) {}

  // False: what follows is not wanted.
  bool on(const Record& record, std::int64_t steps_max) {
    if (const auto* header = std::get_if<HeaderRecord>(&record.body)) job_.header = *header;
    if (const auto* param = std::get_if<ParamRecord>(&record.body)) add(*param);
    if (const auto* graph = std::get_if<GraphRecord>(&record.body))
      roots_[graph->graph.call] = largest_root(graph->graph);
    if (record.event()) on_event(*record.event());
    return steps_ < steps_max;
  }

  Job take() { return std::move(job_); }

 private:
  void add(const ParamRecord& param) {
    if (std::ranges::find(job_.params, param.name, &ParamRecord::name) == job_.params.end())
      job_.params.push_back(param);
  }

  std::string text(NameId id) const { return std::string(names_.text(id)); }

  void on_event(const HookEvent& event) {
    switch (event.kind) {
      case EventKind::engine_call:
        return on_call(event);
      case EventKind::engine_return:
        return on_return(event);
      case EventKind::module_fwd_pre:
        return on_module(event);
      case EventKind::module_fwd_post:
        if (forward_ && text(event.name) == root_) end_forward();
        return;
      case EventKind::ckpt_forward_begin:
        checkpoints_.push_back(next_checkpoint_);
        labels_[text(event.name)] = next_checkpoint_++;
        return;
      case EventKind::ckpt_forward_end:
        if (!checkpoints_.empty()) checkpoints_.pop_back();
        return;
      case EventKind::ckpt_recompute_begin:
        recomputed_ = text(event.name);
        return;
      case EventKind::gt_begin:
        return on_backward(event);
      case EventKind::gt_end:
        if (event.call == open_call_ && event.is_exceptional()) job_.backwards.back().raised = true;
        return;
      case EventKind::param_post_acc:
        return on_gradient(event);
      case EventKind::opt_step:
        if (!has_engine_calls_) add_step({});
        return;
      case EventKind::opt_zero_grad:
        if (!in_engine_step_ && has_gradients_) add(Act::zero_grad, event.engine);
        has_gradients_ = has_gradients_ && in_engine_step_;
        return;
      case EventKind::mark:
        return on_mark(text(event.name));
      default:
        return;
    }
  }

  void on_call(const HookEvent& event) {
    const std::string method = text(event.name);
    has_engine_calls_ = has_engine_calls_ || method.starts_with("engine.");
    if (method == "grad_hook") return on_gradient(event);
    if (method == "engine.forward") {
      begin_forward(event.engine, {});
    } else if (method == "engine.backward") {
      backward_of_engine_ = event.engine;
    } else if (method == "engine.step") {
      in_engine_step_ = true;
      add_step(event.engine);
    } else if (method == "engine.scale") {
      add(Act::scale, event.engine);
    } else {
      add_context(Act::enter, event.engine, method);
    }
  }

  void on_return(const HookEvent& event) {
    const std::string method = text(event.name);
    if (method == "engine.forward" && forward_) end_forward();
    if (method == "engine.backward") backward_of_engine_.reset();
    if (method == "engine.step") in_engine_step_ = false;
    add_context(Act::leave, event.engine, method);
  }

  void add_context(Act act, EngineId engine, const std::string& method) {
    const bool is_no_sync = method == "engine.no_sync";
    if (is_no_sync || method == "engine.coalesce_grad_reduction")
      job_.entries.push_back({.act = act, .engine = engine, .is_no_sync = is_no_sync});
  }

  void on_module(const HookEvent& event) {
    if (event.is_recompute || !event.graph_task.is_none()) return;
    if (event.transforms > 0) return leave_out("a module inside torch.func");
    if (!forward_) begin_forward(event.engine, text(event.name));
    forward_->calls.push_back({text(event.name), checkpoints_.empty() ? -1 : checkpoints_.back()});
  }

  // `root`: the module whose end is the forward's; empty: engine.forward ends it.
  void begin_forward(EngineId engine, std::string root) {
    forward_.emplace();
    forward_engine_ = engine;
    root_ = std::move(root);
  }

  void end_forward() {
    add(Act::forward, forward_engine_, job_.forwards.size());
    job_.forwards.push_back(std::move(*forward_));
    forward_.reset();
    checkpoints_.clear();
  }

  void on_backward(const HookEvent& event) {
    if (event.parent_call >= 0) {
      if (const auto label = labels_.find(recomputed_); label != labels_.end())
        job_.reentrant.insert(label->second);
      return;
    }
    if (text(event.name) == "grad") return leave_out("torch.autograd.grad");
    if (forward_) return leave_out("a backward inside a forward");
    const auto root = roots_.find(event.call);
    open_call_ = event.call;
    add(Act::backward, backward_of_engine_.value_or(EngineId{}), job_.backwards.size());
    job_.backwards.push_back({.is_of_engine = backward_of_engine_ || !has_engine_calls_,
                              .keeps_graph = event.keeps_graph,
                              .root = root == roots_.end() ? std::nullopt : root->second,
                              .is_in_no_sync = std::exchange(is_next_in_no_sync_, false)});
    has_gradients_ = true;
  }

  void on_gradient(const HookEvent& event) {
    if (!job_.backwards.empty() && !event.param.is_none())
      job_.backwards.back().modules.insert(owner_of(text(event.param)));
  }

  void on_mark(const std::string& label) {
    if (label == "ddp.no_sync" || label == "fsdp2.no_sync") is_next_in_no_sync_ = true;
    const std::size_t colon = label.find(':');
    if (colon != std::string::npos)
      job_.settings.emplace(label.substr(0, colon), label.substr(colon + 1));
  }

  // A job with several optimizers steps once for each.
  void add_step(EngineId engine) {
    const bool follows_step =
        !job_.entries.empty() && job_.entries.back().act == Act::step && engine.is_none();
    if (follows_step) return leave_out("the step of another optimizer");
    add(Act::step, engine);
    has_gradients_ = false;
    ++steps_;
  }

  void add(Act act, EngineId engine, std::size_t index = 0) {
    job_.entries.push_back({.act = act, .engine = engine, .index = index});
  }

  void leave_out(const std::string& what) { ++job_.left_out[what]; }

  const NameTable& names_;
  Job job_;
  std::int64_t steps_ = 0;
  std::map<std::int64_t, std::optional<std::uint64_t>> roots_;  // by call
  std::optional<Forward> forward_;                              // the open one
  EngineId forward_engine_;
  std::string root_;                            // of the open forward
  bool has_engine_calls_ = false;               // else the user calls the optimizer
  std::optional<EngineId> backward_of_engine_;  // while engine.backward runs
  bool in_engine_step_ = false;
  bool has_gradients_ = false;
  bool is_next_in_no_sync_ = false;
  std::int64_t open_call_ = -1;
  std::vector<std::int64_t> checkpoints_;       // open ones
  std::map<std::string, std::int64_t> labels_;  // the last checkpoint of a label
  std::int64_t next_checkpoint_ = 0;
  std::string recomputed_;
};

}  // namespace

std::string owner_of(const std::string& param) {
  const std::size_t dot = param.rfind('.');
  return dot == std::string::npos ? kRootModule : param.substr(0, dot);
}

Result<Job> read_job(const std::string& path, std::int64_t steps_max) {
  NameTable names;
  auto reader = TraceReader::open(path, names);
  if (!reader) return tl::unexpected(reader.error());
  JobReader job(names);
  for (;;) {
    const auto record = reader->next();
    if (!record) return tl::unexpected(record.error());
    if (*record == nullptr || !job.on(**record, steps_max)) break;
  }
  return job.take();
}

}  // namespace zeroproof::recorded
