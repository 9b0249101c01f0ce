#include "sim/trace/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>

#include "model/check.h"
#include "sim/trace/json_copy.h"
#include "sim/trace/json_line.h"
#include "sim/trace/json_object.h"
#include "sim/trace/kineto_args.h"
#include "sim/trace/order_token.h"
#include "sim/trace/point_to_point.h"
#include "sim/trace/slices.h"

namespace zeroproof {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{64} * 1024;
constexpr std::int32_t kRanksListed = 1024;  // of a world: the header of a file may say anything

struct Document {
  std::int64_t base_ns = 0;
  std::string text;  // not yet given to the sink
  bool has_elements = false;
  PerfettoCounts counts;
};

// One trace of the document.
class RankExport {
 public:
  RankExport(TraceReader& reader, const NameTable& names, Document& document)
      : reader_(reader), names_(names), document_(document), out_(document.text) {
    // Wrapping arithmetic: the clocks of a foreign file may be anything.
    const TraceClock& clock = reader.header().clock;
    offset_ns_ = static_cast<std::uint64_t>(clock.unix0_ns) -
                 static_cast<std::uint64_t>(clock.mono0_ns) -
                 static_cast<std::uint64_t>(document.base_ns);
  }

  void begin();
  // False at the end of the trace.
  Result<bool> step();
  void finish();

 private:
  void add_event(const HookEvent& event, std::string_view line);
  void add_thread(const ThreadRecord& thread);
  void add_slice(const HookEvent& event);
  void close_slice(const HookEvent& event);
  void add_instant(const HookEvent& event);
  void add_collective(const HookEvent& event);
  void add_gathers(const HookEvent& event);
  void add_flow(const HookEvent& event);
  KinetoCollective kineto_of(const HookEvent& event) const;
  void add_counter(const HookEvent& event);

  JsonObject start(std::string_view phase);
  JsonObject start_at(std::string_view phase, std::int32_t thread, double ts_us);
  // With category and arguments, as every event but closings made up by us.
  JsonObject start_full(std::string_view phase, const HookEvent& event) {
    return start_full(phase, event, kind_.substr(0, kind_.find('.')));
  }
  JsonObject start_full(std::string_view phase, const HookEvent& event, std::string_view category);
  void close_unfinished(std::int32_t thread, double ts_us);

  TraceReader& reader_;
  const NameTable& names_;
  Document& document_;
  std::string& out_;
  JsonLine json_;
  std::span<const JsonLineValue> values_;  // of the current line
  std::string_view kind_;                  // of the current line, as written
  std::int32_t pid_ = 0;                   // rank of the current event
  std::uint64_t offset_ns_ = 0;
  double ts_us_ = 0;
  double last_us_ = 0;
  std::map<std::int32_t, std::vector<SliceKey>> open_;  // by thread
  std::set<std::string> gathered_;
  std::map<std::string, std::vector<std::int32_t>> groups_;  // ranks, by name
};

JsonObject RankExport::start(std::string_view phase) {
  out_ += document_.has_elements ? ",\n" : "\n";
  document_.has_elements = true;
  JsonObject object(out_);
  object.set("ph", phase);
  return object;
}

JsonObject RankExport::start_at(std::string_view phase, std::int32_t thread, double ts_us) {
  JsonObject object = start(phase);
  object.set("pid", pid_).set("tid", thread);
  append_json_number(ts_us, false, object.key("ts"));
  return object;
}

JsonObject RankExport::start_full(std::string_view phase, const HookEvent& event,
                                  std::string_view category) {
  JsonObject object = start_at(phase, event.thread, ts_us_);
  object.set("cat", category);
  std::string& args = object.key("args");
  JsonObject copied(args);
  copy_members(values_, {"rec", "t", "r", "th"}, copied);
  if (event.kind == EventKind::coll_issue) add_kineto_args(kineto_of(event), copied);
  copied.close();
  return object;
}

// The dtype of the event, else that of the run; an undeclared group is the world.
KinetoCollective RankExport::kineto_of(const HookEvent& event) const {
  KinetoCollective collective{.op = names_.text(event.name),
                              .dtype = reader_.header().dtype,
                              .group = event.group.is_none() ? "world" : names_.text(event.group),
                              .bytes = event.bytes,
                              .number = event.index,
                              .rank = event.rank};
  for (std::size_t i = 1; i < values_.size(); i = values_[i].end) {
    const bool is_dtype = values_[i].key == "dtype" && values_[i].kind == JsonLineKind::string;
    if (is_dtype) collective.dtype = values_[i].text;
  }
  const auto found = groups_.find(std::string(collective.group));
  if (found != groups_.end()) {
    collective.ranks = found->second;
  } else if (collective.group == "world" && reader_.header().world <= kRanksListed) {
    collective.ranks.emplace();
    for (std::int32_t r = 0; r < reader_.header().world; ++r) collective.ranks->push_back(r);
  }
  return collective;
}

void RankExport::begin() {
  const std::int32_t rank = reader_.header().rank;
  JsonObject object = start("M");
  object.set("pid", rank).set("name", std::string_view("process_name"));
  JsonObject args(object.key("args"));
  args.set("name", fmt::format("rank {}", rank)).close();
  object.close();
  JsonObject place = start("M");
  place.set("pid", rank).set("name", std::string_view("process_sort_index"));
  JsonObject index(place.key("args"));
  index.set("sort_index", rank).close();
  place.close();
}

void RankExport::add_thread(const ThreadRecord& thread) {
  JsonObject object = start("M");
  object.set("pid", reader_.header().rank).set("tid", thread.thread);
  object.set("name", std::string_view("thread_name"));
  JsonObject args(object.key("args"));
  args.set("name", thread.name).close();
  object.close();
}

Result<bool> RankExport::step() {
  const auto record = reader_.next();
  if (!record) return tl::unexpected(record.error());
  if (*record == nullptr) return false;
  if (const auto* thread = std::get_if<ThreadRecord>(&(*record)->body)) add_thread(*thread);
  if (const auto* group = std::get_if<GroupRecord>(&(*record)->body)) {
    if (group->ranks) groups_[group->name] = *group->ranks;
  }
  if (const HookEvent* event = (*record)->event()) add_event(*event, (*record)->line);
  return true;
}

void RankExport::add_event(const HookEvent& event, std::string_view line) {
  const auto values = json_.parse(line);
  ZP_CHECK(values.has_value(), "a line the reader accepted: " + values.error());
  values_ = *values;
  for (std::size_t i = 1; i < values_.size(); i = values_[i].end) {
    if (values_[i].key == "k") kind_ = values_[i].text;
  }
  pid_ = event.rank;
  ++document_.counts.events;
  const auto time_ns =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(event.time_ns) + offset_ns_);
  ts_us_ = static_cast<double>(time_ns) / 1000.0;
  last_us_ = std::max(last_us_, ts_us_);
  const SliceKind kind = slice_kind(event.kind);
  if (kind.is_begin) {
    add_slice(event);
  } else if (kind.is_end) {
    close_slice(event);
  } else if (event.kind == EventKind::coll_issue || event.kind == EventKind::coll_complete) {
    add_collective(event);
  } else if (event.kind == EventKind::zparam_gather_begin ||
             event.kind == EventKind::zparam_gather_end) {
    add_gathers(event);
  } else {
    add_instant(event);
  }
  if (event.kind == EventKind::cb_queue || event.kind == EventKind::cb_begin) add_flow(event);
  add_counter(event);
}

void RankExport::add_slice(const HookEvent& event) {
  open_[event.thread].push_back(slice_key(event));
  start_full("B", event).set("name", slice_name(event, names_)).close();
}

// An end looks for its own begin on the thread and closes what was left open above it, e.g. the
// module forward inside a recompute that stopped early. Without a begin it is an instant.
void RankExport::close_slice(const HookEvent& event) {
  std::vector<SliceKey>& open = open_[event.thread];
  const SliceKey key = slice_key(event);
  if (std::find(open.begin(), open.end(), key) == open.end()) return add_instant(event);
  for (; open.back() != key; open.pop_back()) close_unfinished(event.thread, ts_us_);
  open.pop_back();
  start_full("E", event).close();
}

void RankExport::close_unfinished(std::int32_t thread, double ts_us) {
  ++document_.counts.unfinished;
  JsonObject object = start_at("E", thread, ts_us);
  JsonObject args(object.key("args"));
  args.set("unfinished", true).close();
  object.close();
}

void RankExport::add_instant(const HookEvent& event) {
  std::string name;
  if (!append_order_token(event, names_, TokenDetail::engine, name)) name = kind_;
  // The end of an iteration goes across everything, as Kineto's marker does.
  const std::string_view scope = event.kind == EventKind::opt_step ? "g" : "t";
  start_full("i", event).set("s", scope).set("name", name).close();
}

void RankExport::add_collective(const HookEvent& event) {
  const std::string_view group = event.group.is_none() ? "world" : names_.text(event.group);
  JsonObject object = start_full(event.kind == EventKind::coll_issue ? "b" : "e", event, "coll");
  object.set("name", names_.text(event.name));
  const std::string_view apart = is_point_to_point(names_.text(event.name)) ? ":p2p" : "";
  object.set("id", fmt::format("{}:{}{}:{}", event.rank, group, apart, event.index)).close();
}

// One track a parameter. Gathers of one that is gathered already have no effect.
void RankExport::add_gathers(const HookEvent& event) {
  const bool is_begin = event.kind == EventKind::zparam_gather_begin;
  for (const NameId param : event.params) {
    const std::string id = fmt::format("{}:gather:{}", event.rank, names_.text(param));
    const bool changed = is_begin ? gathered_.insert(id).second : gathered_.erase(id) > 0;
    if (!changed) continue;
    JsonObject object = start_full(is_begin ? "b" : "e", event, "gather");
    object.set("name", fmt::format("gather {}", names_.text(param))).set("id", id).close();
  }
}

void RankExport::add_flow(const HookEvent& event) {
  const bool is_queue = event.kind == EventKind::cb_queue;
  JsonObject object = start_at(is_queue ? "s" : "f", event.thread, ts_us_);
  object.set("cat", std::string_view("cb")).set("name", std::string_view("queued callback"));
  object.set("id", fmt::format("{}:{}:{}", reader_.header().rank, event.graph_task.value,
                               names_.text(event.name)));
  if (!is_queue) object.set("bp", std::string_view("e"));
  object.close();
}

void RankExport::add_counter(const HookEvent& event) {
  const bool is_counted =
      event.kind == EventKind::zparam_gather_end || event.kind == EventKind::zparam_partition;
  if (!is_counted || event.numel < 0) return;
  JsonObject object = start("C");
  object.set("pid", pid_).set("name", std::string_view("gathered elements"));
  append_json_number(ts_us_, false, object.key("ts"));
  JsonObject args(object.key("args"));
  args.set("numel", event.numel).close();
  object.close();
}

void RankExport::finish() {
  pid_ = reader_.header().rank;
  for (const auto& [thread, open] : open_) {
    for (std::size_t i = 0; i < open.size(); ++i) close_unfinished(thread, last_us_);
  }
}

}  // namespace

Result<std::vector<TraceReader>> open_traces(const std::vector<std::string>& paths,
                                             NameTable& names) {
  std::vector<TraceReader> readers;
  for (const std::string& path : paths) {
    auto reader = TraceReader::open(path, names);
    if (!reader) return tl::unexpected(reader.error());
    readers.push_back(std::move(*reader));
  }
  return readers;
}

Result<PerfettoCounts> export_perfetto(std::vector<TraceReader>& readers, const NameTable& names,
                                       const TextSink& sink) {
  Document document;
  if (!readers.empty()) document.base_ns = std::numeric_limits<std::int64_t>::max();
  for (const TraceReader& reader : readers) {
    document.base_ns = std::min(document.base_ns, reader.header().clock.unix0_ns);
  }
  document.text = fmt::format(
      R"({{"displayTimeUnit":"ns","baseTimeNanoseconds":{},"traceEvents":[)", document.base_ns);
  for (TraceReader& reader : readers) {
    RankExport rank(reader, names, document);
    rank.begin();
    while (true) {
      const Result<bool> more = rank.step();
      if (!more) return tl::unexpected(more.error());
      if (!*more) break;
      if (document.text.size() < kChunkBytes) continue;
      if (const auto taken = sink(document.text); !taken) return tl::unexpected(taken.error());
      document.text.clear();
    }
    rank.finish();
  }
  document.text += "\n]}\n";
  if (const auto taken = sink(document.text); !taken) return tl::unexpected(taken.error());
  return document.counts;
}

}  // namespace zeroproof
