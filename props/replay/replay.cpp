#include "props/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/task_graph.h"
#include "sim/trace/reader.h"

namespace zeroproof {
namespace {

constexpr std::uint64_t kRecordsBetweenStopRequests = 4096;
constexpr const char* kUnrecordedPolicy = "deepspeed-0.18.7";  // of a header without the key
constexpr std::string_view kNoPolicy = "none";  // a DeepSpeed before the hook bookkeeping

TraceDevice trace_device_of(const HeaderRecord& header) {
  const bool is_cuda =
      std::any_of(header.producer.begin(), header.producer.end(), [](const auto& entry) {
        return (entry.first == "device" || entry.first == "accelerator") &&
               entry.second.value_or("").starts_with("cuda");
      });
  return is_cuda ? TraceDevice::cuda : TraceDevice::cpu;
}

bool is_of_deepspeed(const HeaderRecord& header) {
  return std::any_of(header.producer.begin(), header.producer.end(), [](const auto& entry) {
    return entry.first == "deepspeed" && entry.second.value_or("none") != "none";
  });
}

RunFacts facts_of(const HeaderRecord& header) {
  return {.program = header.program,
          .dtype = header.dtype,
          .rank = header.rank,
          .world = header.world,
          .stage = static_cast<std::int32_t>(header.stage.value_or(-1)),
          .is_of_deepspeed = is_of_deepspeed(header)};
}

// The levels of one trace and what feeds them.
class TraceReplayer {
 public:
  TraceReplayer(const ReplayOptions& options, TraceReplay& out) : options_(options), out_(out) {}

  // Reads the whole trace. Code usage: the options cannot work for any trace.
  Result<void> run(const std::function<bool()>& should_stop) {
    auto reader = TraceReader::open(out_.path, names_);
    if (!reader) return fault(reader.error());
    out_.program = reader->header().program;
    if (auto made = make_levels(reader->header()); !made) return made;
    if (out_.fault) return {};
    read(*reader, should_stop);
    finish(*reader);
    return {};
  }

  bool was_stopped() const { return was_stopped_; }
  // Of the file, at any set of levels; null where it could not be opened.
  const RankDigest* digest() const { return properties_ ? &properties_->digest() : own_digest(); }
  const RunFacts& facts() const { return facts_; }

 private:
  Result<void> fault(Error error) {
    out_.fault = std::move(error);
    return {};
  }

  Result<void> make_levels(const HeaderRecord& header) {
    structure_.emplace(names_);
    job_ = JobFacts(header);
    if (options_.has_story) story_.emplace(header, names_, job_);
    if (options_.levels.has_queue) queue_.emplace(trace_device_of(header));
    facts_ = facts_of(header);
    if (options_.levels.has_properties)
      properties_.emplace(facts_, names_, job_);
    else
      digest_.emplace(facts_.stage);
    if (trace_device_of(header) == TraceDevice::cuda) mutable_digest().set_completions_seen_early();
    return options_.levels.has_state ? make_state(header) : Result<void>{};
  }

  Result<void> make_state(const HeaderRecord& header) {
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
    state_.emplace(std::move(*level));
    return {};
  }

  Result<void> header_fault(const Error& error) {
    return fault({ErrorCode::unreadable, fmt::format("{}:1: header: {}", out_.path, error.text)});
  }

  void read(TraceReader& reader, const std::function<bool()>& should_stop) {
    for (std::uint64_t count = 1;; ++count) {
      const auto record = reader.next();
      if (!record) {
        out_.fault = record.error();
        return;
      }
      if (*record == nullptr) return;
      structure_->on_record(**record);
      std::visit([&](const auto& body) { feed(body, **record); }, (*record)->body);
      if (out_.fault) return;
      if (count % kRecordsBetweenStopRequests == 0 && should_stop && should_stop()) {
        was_stopped_ = true;
        return;
      }
    }
  }

  void feed(const HookEvent& event, const Record& line) {
    ++out_.events;
    job_.has_begun = job_.has_begun || event.kind == EventKind::param_post_acc;
    if (story_) story_->on_event(event, line.line);
    if (queue_) queue_->on_event(event);
    if (state_) state_->on_event(event);
    if (properties_) properties_->on_event(event);
    if (digest_) digest_->on_event(event, names_);
    if (event.kind == EventKind::gt_begin) ++out_.counts.backwards;
  }

  void feed(const GraphRecord& record, const Record& line) {
    if (!record.graph.is_opaque) {
      if (const auto graph = TaskGraph::make(record.graph); !graph) {
        out_.fault = {ErrorCode::unreadable,
                      fmt::format("{}:{}: {}", out_.path, line.line_number, graph.error().text)};
        return;
      }
    }
    if (queue_) queue_->on_graph(record.graph);
  }

  void feed(const ParamRecord& record, const Record&) {
    if (state_) state_->declare_param(record.name);
    if (properties_) properties_->declare_param(record.name);
    job_.declare(record);
    mutable_digest().declare(record, names_);
  }

  void feed(const TensorRecord& record, const Record&) {
    if (!properties_) return;
    properties_->add_tensor(record.role, record.name, record.values ? &*record.values : nullptr);
  }

  void feed(const GroupRecord& record, const Record&) { job_.declare(record); }
  void feed(const NoteRecord& record, const Record&) { job_.declare(record); }
  void feed(const OptimizerRecord& record, const Record&) { job_.declare(record); }

  void feed(const WrapperRecord& record, const Record&) {
    job_.declare(record);
    if (story_) story_->declare(record);
  }

  void feed(const NumbersRecord& record, const Record&) {
    if (story_) story_->declare(record);
  }

  template <class Other>
  void feed(const Other&, const Record&) {}

  void finish(const TraceReader& reader) {
    const bool is_complete = !out_.fault && !reader.truncation() && !was_stopped_;
    if (!out_.fault && reader.truncation()) {
      out_.fault = {ErrorCode::unreadable, *reader.truncation()};
    }
    if (story_) {
      out_.story = story_->finish(is_complete);
      mutable_digest().set_framework(out_.story->framework);
    }
    if (queue_) out_.queue = queue_->finish();
    if (state_) out_.state = state_->finish();
    if (properties_) {
      properties_->finish(is_complete);
      out_.properties = properties_->report();
    }
    if (digest_) digest_->finish(is_complete, names_, job_);
    count();
    if (out_.story) out_.story->facts = std::move(job_);
    // What is open is open because the end is missing.
    if (!is_complete || digest()->is_killed()) return;
    structure_->finish();
    out_.structure = structure_->findings();
    out_.structure_count = structure_->finding_count();
  }

  RankDigest& mutable_digest() { return properties_ ? properties_->digest() : *digest_; }
  const RankDigest* own_digest() const { return digest_ ? &*digest_ : nullptr; }

  void count() {
    const RankDigest& seen = *digest();
    out_.counts.collectives = seen.collective_count();
    out_.counts.messages = seen.message_count();
    out_.counts.hooks = seen.hooks().size();
    out_.counts.steps = seen.steps().size();
  }

  const ReplayOptions& options_;
  TraceReplay& out_;
  NameTable names_;
  RunFacts facts_;
  JobFacts job_;
  bool was_stopped_ = false;
  std::optional<StructureCheck> structure_;
  std::optional<StoryLevel> story_;
  std::optional<QueueLevel> queue_;
  std::optional<StateLevel> state_;
  std::optional<PropertiesLevel> properties_;
  std::optional<RankDigest> digest_;  // where no properties level keeps one
};

// Lists as long as the model or the world, which only the comparison of numbers reads again.
void drop_long_facts(TraceStory& story) {
  if (!story.numbers.steps.empty()) return;
  story.facts.params.clear();
  story.facts.optimizers.clear();
  story.facts.hand_reduced.clear();
  for (auto& [name, group] : story.facts.groups) group.ranks.reset();
}

}  // namespace

bool TraceReplay::agrees() const {
  return !has_defect && (!queue || queue->holds()) && (!state || state->matched == state->calls) &&
         (!properties || !properties->is_falsified()) && structure_count == 0;
}

ReplaySummary ReplayReport::summary() const {
  ReplaySummary summary{.traces = traces.size()};
  for (const TraceReplay& trace : traces) {
    ++(trace.fault ? summary.unreadable : trace.agrees() ? summary.ok : summary.mismatched);
  }
  return summary;
}

Replay::Replay(ReplayOptions options, std::function<bool()> should_stop)
    : options_(std::move(options)), should_stop_(std::move(should_stop)) {}

Result<void> Replay::add(const std::string& path) {
  TraceReplay trace{.path = path};
  TraceReplayer replayer(options_, trace);
  if (auto result = replayer.run(should_stop_); !result) return result;
  if (replayer.was_stopped()) {
    report_.is_interrupted = true;
    return {};
  }
  if (const RankDigest* digest = replayer.digest()) {
    group_.add(replayer.facts(), *digest, path);
    grouped_.push_back(report_.traces.size());
  }
  if (trace.story) drop_long_facts(*trace.story);
  report_.traces.push_back(std::move(trace));
  return {};
}

ReplayReport Replay::finish() {
  const auto compared = group_.compare();
  for (std::size_t i = 0; i < compared.size(); ++i) {
    auto& properties = report_.traces[grouped_[i]].properties;
    if (properties) properties->merge(compared[i].report);
  }
  report_.digest_bytes = group_.memory_bytes();
  if (options_.has_story) report_.runs = group_.compare_runs(should_stop_);
  return std::move(report_);
}

}  // namespace zeroproof
