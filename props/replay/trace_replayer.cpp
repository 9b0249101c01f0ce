#include "props/replay/trace_replayer.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/task_graph.h"

namespace zeroproof {
namespace {

constexpr const char* kUnrecordedPolicy = "deepspeed-0.18.7";  // of a header without the key
constexpr std::string_view kNoPolicy = "none";  // a DeepSpeed before the hook bookkeeping

TraceDevice recorded_device_of(const HeaderRecord& header) {
  const bool is_cuda =
      std::any_of(header.producer.begin(), header.producer.end(), [](const auto& entry) {
        return (entry.first == "device" || entry.first == "accelerator") &&
               entry.second.value_or("").starts_with("cuda");
      });
  return is_cuda ? TraceDevice::cuda : TraceDevice::cpu;
}

bool is_recorded_from_deepspeed(const HeaderRecord& header) {
  return std::any_of(header.producer.begin(), header.producer.end(), [](const auto& entry) {
    return entry.first == "deepspeed" && entry.second.value_or("none") != "none";
  });
}

RunFacts run_facts_of(const HeaderRecord& header) {
  return {.program = header.program,
          .dtype = header.dtype,
          .rank = header.rank,
          .world = header.world,
          .stage = static_cast<std::int32_t>(header.stage.value_or(-1)),
          .is_of_deepspeed = is_recorded_from_deepspeed(header)};
}

}  // namespace

struct TraceReplayer::Levels {
  TraceReplayer& of;
  StructureCheck structure;
  std::optional<StoryLevel> story;
  std::optional<QueueLevel> queue;
  std::optional<StateLevel> state;
  std::optional<PropertiesLevel> properties;
  std::optional<RankDigest> digest;  // where no properties level keeps one

  explicit Levels(TraceReplayer& replayer) : of(replayer), structure(replayer.names_) {}

  void feed(const HookEvent& event, const Record& line) {
    ++of.out_.events;
    of.job_.has_begun = of.job_.has_begun || event.kind == EventKind::param_post_acc;
    if (story) story->on_event(event, line.line);
    if (queue) queue->on_event(event);
    if (state) state->on_event(event);
    if (properties) properties->on_event(event);
    if (digest) digest->on_event(event, of.names_);
    if (event.kind == EventKind::gt_begin) ++of.out_.counts.backwards;
  }

  void feed(const GraphRecord& record, const Record& line) {
    if (!record.graph.is_opaque) {
      if (const auto graph = TaskGraph::make(record.graph); !graph) {
        of.set_fault({ErrorCode::unreadable, fmt::format("{}:{}: {}", of.out_.path,
                                                         line.line_number, graph.error().text)});
        return;
      }
    }
    if (queue) queue->on_graph(record.graph);
  }

  void feed(const ParamRecord& record, const Record&) {
    if (state) state->declare_param(record.name);
    if (properties) properties->declare_param(record.name);
    of.job_.declare(record);
    of.mutable_digest().declare(record, of.names_);
  }

  void feed(const TensorRecord& record, const Record&) {
    if (!properties) return;
    properties->add_tensor(record.role, record.name, record.values ? &*record.values : nullptr);
  }

  void feed(const GroupRecord& record, const Record&) { of.job_.declare(record); }
  void feed(const NoteRecord& record, const Record&) { of.job_.declare(record); }
  void feed(const OptimizerRecord& record, const Record&) { of.job_.declare(record); }

  void feed(const WrapperRecord& record, const Record&) {
    of.job_.declare(record);
    if (story) story->declare(record);
  }

  void feed(const NumbersRecord& record, const Record&) {
    if (story) story->declare(record);
  }

  template <class Other>
  void feed(const Other&, const Record&) {}
};

TraceReplayer::TraceReplayer(const ReplayOptions& options, std::string path) : options_(options) {
  out_.path = std::move(path);
}

TraceReplayer::~TraceReplayer() = default;

Result<void> TraceReplayer::begin(const HeaderRecord& header) {
  out_.program = header.program;
  levels_ = std::make_unique<Levels>(*this);
  job_ = JobFacts(header);
  if (options_.has_story) levels_->story.emplace(header, names_, job_);
  if (options_.levels.has_queue) levels_->queue.emplace(recorded_device_of(header));
  facts_ = run_facts_of(header);
  if (options_.levels.has_properties)
    levels_->properties.emplace(facts_, names_, job_);
  else
    levels_->digest.emplace(facts_.stage);
  if (recorded_device_of(header) == TraceDevice::cuda)
    mutable_digest().set_completions_seen_early();
  return options_.levels.has_state ? make_state(header) : Result<void>{};
}

Result<void> TraceReplayer::make_state(const HeaderRecord& header) {
  const bool is_recorded = options_.policy.empty() && !header.policy.empty();
  const std::string policy = is_recorded               ? header.policy
                             : options_.policy.empty() ? kUnrecordedPolicy
                                                       : options_.policy;
  PolicyMode mode = options_.mode.value_or(PolicyMode::graph_task_callback);
  if (!options_.mode && !header.mode.empty()) {
    const auto recorded = policy_mode_of(header.mode);
    if (!recorded) return header_fault(recorded.error());
    mode = *recorded;
  }
  if (is_recorded && policy == kNoPolicy) {  // no calls were recorded
    out_.state = StateReport{.policy = policy, .mode = mode};
    return {};
  }
  const auto info = find_policy(policy);
  if (is_recorded && info && !(*info)->has_manager) {  // it has no calls to compare
    out_.state = StateReport{.policy = std::string((*info)->id), .mode = mode};
    return {};
  }
  const bool is_script = !header.policy.empty() && !header.stage;
  const bool is_driven_by_hooks = options_.has_story && !is_script;
  if (info && !(*info)->has_manager && is_driven_by_hooks) return {};  // what_if() answers
  auto level = StateLevel::make(policy, mode, names_);
  if (!level && is_recorded) return header_fault(level.error());
  if (!level) return tl::unexpected(level.error());
  levels_->state.emplace(std::move(*level));
  return {};
}

Result<void> TraceReplayer::header_fault(const Error& error) {
  set_fault({ErrorCode::unreadable, fmt::format("{}:1: header: {}", out_.path, error.text)});
  return {};
}

void TraceReplayer::feed(const Record& record) {
  levels_->structure.on_record(record);
  std::visit([&](const auto& body) { levels_->feed(body, record); }, record.body);
}

void TraceReplayer::finish(const std::optional<std::string>& truncation) {
  Levels& levels = *levels_;
  const bool is_complete = !out_.fault && !truncation;
  if (!out_.fault && truncation) set_fault({ErrorCode::unreadable, *truncation});
  if (levels.story) {
    out_.story = levels.story->finish(is_complete);
    mutable_digest().set_framework(out_.story->framework);
  }
  if (levels.queue) out_.queue = levels.queue->finish();
  if (levels.state) out_.state = levels.state->finish();
  if (levels.properties) {
    levels.properties->finish(is_complete);
    out_.properties = levels.properties->report();
  }
  if (levels.digest) levels.digest->finish(is_complete, names_, job_);
  count(out_);
  if (out_.story) out_.story->facts = std::move(job_);
  // What is open is open because the end is missing.
  if (!is_complete || digest()->is_killed()) return;
  levels.structure.finish();
  out_.structure = levels.structure.findings();
  out_.structure_count = levels.structure.finding_count();
}

TraceReplayer::SoFar TraceReplayer::so_far(bool has_end) const {
  SoFar now{out_, *digest()};
  if (levels_->story) {
    StoryLevel story = *levels_->story;
    now.trace.story = story.finish(has_end);
    now.trace.story->facts = job_;
    now.digest.set_framework(now.trace.story->framework);
  }
  if (levels_->properties) now.trace.properties = levels_->properties->report();
  count(now.trace);
  now.digest.finish(has_end, names_, job_);
  return now;
}

void TraceReplayer::count(TraceReplay& into) const {
  const RankDigest& seen = *digest();
  into.counts.collectives = seen.collective_count();
  into.counts.messages = seen.message_count();
  into.counts.hooks = seen.hooks().size();
  into.counts.steps = seen.steps().size();
}

const RankDigest* TraceReplayer::digest() const {
  if (!levels_) return nullptr;
  if (levels_->properties) return &levels_->properties->digest();
  return levels_->digest ? &*levels_->digest : nullptr;
}

RankDigest& TraceReplayer::mutable_digest() {
  return levels_->properties ? levels_->properties->digest() : *levels_->digest;
}

}  // namespace zeroproof
