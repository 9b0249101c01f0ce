#include "props/replay/replay.h"

#include "props/replay/trace_replayer.h"
#include "sim/trace/reader.h"

namespace zeroproof {
namespace {

constexpr std::uint64_t kRecordsBetweenStopRequests = 4096;

// False: it was stopped.
Result<bool> read_trace(TraceReplayer& replayer, const std::function<bool()>& should_stop) {
  auto reader = TraceReader::open(replayer.result().path, replayer.names());
  if (!reader) {
    replayer.set_fault(reader.error());
    return true;
  }
  if (auto made = replayer.begin(reader->header()); !made) return tl::unexpected(made.error());
  if (replayer.has_fault()) return true;
  for (std::uint64_t count = 1; !replayer.has_fault(); ++count) {
    const auto record = reader->next();
    if (!record) replayer.set_fault(record.error());
    if (!record || *record == nullptr) break;
    replayer.feed(**record);
    if (count % kRecordsBetweenStopRequests == 0 && should_stop && should_stop()) return false;
  }
  replayer.finish(reader->truncation());
  return true;
}

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
  TraceReplayer replayer(options_, path);
  const auto read = read_trace(replayer, should_stop_);
  if (!read) return tl::unexpected(read.error());
  if (!*read) {
    report_.is_interrupted = true;
    return {};
  }
  if (const RankDigest* digest = replayer.digest())
    add(std::move(replayer.result()), replayer.facts(), *digest);
  else
    report_.traces.push_back(std::move(replayer.result()));
  return {};
}

void Replay::add(TraceReplay trace, const RunFacts& facts, RankDigest digest) {
  group_.add(facts, std::move(digest), trace.path);
  grouped_.push_back(report_.traces.size());
  if (trace.story) drop_long_facts(*trace.story);
  report_.traces.push_back(std::move(trace));
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
