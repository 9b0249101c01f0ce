#include "props/report/picture/picture_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "model/check.h"
#include "props/report/event_words.h"
#include "props/report/picture/event_category.h"
#include "props/report/picture/picture_order.h"
#include "props/report/picture/picture_spans.h"
#include "props/report/text.h"
#include "sim/trace/json_copy.h"
#include "sim/trace/record_json.h"
#include "sim/trace/slices.h"

namespace zeroproof {
namespace {

struct OpenSlice {
  SliceKey key;
  std::uint32_t bar = 0;
};

// What one process has shown so far.
struct Process {
  explicit Process(std::uint32_t of) : number(of), spans(of) {}

  std::uint32_t number;
  PictureSpans spans;
  std::map<std::int32_t, std::vector<OpenSlice>> slices;           // open, by thread
  std::map<std::uint64_t, std::uint32_t> event_of;                 // by lc
  std::map<std::int64_t, std::uint32_t> task_of;                   // by call
  std::map<std::pair<GraphTaskId, NameId>, std::uint32_t> queued;  // callbacks: events
};

// "hook p4" of "hook p4 begins"; "callback" of "callback runs".
std::string bar_label(std::string words) {
  for (const std::string_view verb : {" begins", " enters", " runs"}) {
    const std::size_t at = words.find(verb);
    if (at != std::string::npos) words.erase(at, verb.size());
  }
  return words;
}

std::vector<std::pair<std::string, std::string>> facts_of(const HeaderRecord& header,
                                                          const std::string& name) {
  std::vector<std::pair<std::string, std::string>> facts;
  const auto add = [&](const std::string& key, const std::string& value) {
    if (!value.empty()) facts.emplace_back(visible(key), visible(value));
  };
  add("program", header.program);
  if (header.stage) add("stage", std::to_string(*header.stage));
  add("dtype", header.dtype);
  if (header.world > 1) add("world", std::to_string(header.world));
  add("policy", header.policy);
  for (const auto& [key, value] : header.producer) add(key, value.value_or(""));
  add("from", name);
  return facts;
}

std::string run_of(const HeaderRecord& header) {
  return fmt::format("{} {} {} {}", header.program, header.stage.value_or(-1), header.dtype,
                     header.world);
}

}  // namespace

struct PictureBuilder::State {
  explicit State(const NameTable& table) : names(table) {}

  void add(const HookEvent& event, std::string_view line);
  Process& process_of(const HookEvent& event);
  std::uint32_t add_event(const Process& process, const HookEvent& event, std::string_view line);
  void place_on_thread(Process& process, const HookEvent& event, std::uint32_t id);
  bool close_slice(std::vector<OpenSlice>& open, const HookEvent& event, std::uint32_t id);
  void link_callback(Process& process, const HookEvent& event, std::uint32_t id);
  void leave_open(Process& process);
  void name_processes();
  void set_times();

  const NameTable& names;
  PictureDraft draft;
  PictureCollectives collectives;
  JsonLine json;
  std::size_t sources = 0;
  std::map<std::pair<std::size_t, std::int32_t>, Process> processes;  // by source and rank
  std::map<std::pair<std::string, std::int32_t>, int> runs;           // by run and rank: how many
  // Of the current source:
  HeaderRecord header;
  std::string name;
  std::uint64_t offset_ns = 0;
  std::map<std::int32_t, std::string> threads;
};

Process& PictureBuilder::State::process_of(const HookEvent& event) {
  std::vector<PictureProcess>& all = draft.picture.processes;
  const auto [at, is_new] =
      processes.try_emplace({sources - 1, event.rank}, static_cast<std::uint32_t>(all.size()));
  if (!is_new) return at->second;
  const std::string run = run_of(header);
  const int times = runs[{run, event.rank}]++;
  all.push_back({.title = fmt::format("rank {}", event.rank),
                 .facts = facts_of(header, name),
                 .run = times == 0 ? run : fmt::format("{} again {}", run, times),
                 .source = sources - 1,
                 .rank = event.rank});
  return at->second;
}

std::uint32_t PictureBuilder::State::add_event(const Process& process, const HookEvent& event,
                                               std::string_view line) {
  const auto values = json.parse(line);
  ZP_CHECK(values.has_value(), "a line that was read or written: " + values.error());
  PictureEvent added;
  std::string kind(event_kind_name(event.kind));
  for (std::size_t i = 1; i < values->size(); i = (*values)[i].end) {
    if ((*values)[i].key == "k") kind = (*values)[i].text;  // also one that we do not know
  }
  JsonObject fields(added.fields);
  copy_members(*values, {"rec", "lc", "t", "r", "th", "k"}, fields);
  fields.close();
  added.process = process.number;
  added.category = picture_category(event, names);
  added.lc = event.lc;
  // Wrapping arithmetic: the clocks of a foreign file may be anything.
  added.time_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(event.time_ns) + offset_ns);
  added.thread = event.thread;
  added.depth = event.depth;
  EventWords words = event_words(event, names);
  if (event.kind == EventKind::unknown) words.text = visible(kind);
  added.is_detail = words.is_detail;
  added.words = draft.intern(std::move(words.text));
  added.kind = draft.intern(std::move(kind));
  draft.picture.events.push_back(std::move(added));
  return static_cast<std::uint32_t>(draft.picture.events.size() - 1);
}

void PictureBuilder::State::add(const HookEvent& event, std::string_view line) {
  Process& process = process_of(event);
  const std::uint32_t id = add_event(process, event, line);
  process.event_of[event.lc] = id;
  if (event.kind == EventKind::gt_begin) process.task_of[event.call] = id;
  place_on_thread(process, event, id);
  process.spans.add(event, id, names, draft, collectives);
  link_callback(process, event, id);
}

void PictureBuilder::State::place_on_thread(Process& process, const HookEvent& event,
                                            std::uint32_t id) {
  const auto name_of = threads.find(event.thread);
  const std::uint32_t track = draft.track(
      process.number, PictureTrackKind::thread, event.thread,
      name_of != threads.end() ? name_of->second : fmt::format("thread {}", event.thread));
  std::vector<OpenSlice>& open = process.slices[event.thread];
  const SliceKind kind = slice_kind(event.kind);
  const bool is_end = kind.is_end && close_slice(open, event, id);
  PictureEvent& added = draft.picture.events[id];
  added.track = track;
  added.row = static_cast<std::uint32_t>(open.size());
  added.is_moment = !kind.is_begin && !is_end;
  std::uint32_t& rows = draft.picture.tracks[track].rows;
  rows = std::max(rows, added.row + 1);
  if (!kind.is_begin) return;
  const std::string label = bar_label(draft.picture.strings[added.words]);
  open.push_back({slice_key(event), draft.add_bar(id, track, added.row, label)});
}

// An end closes what was left open above its begin, as a recompute that stopped early leaves it.
// False: it has no begin.
bool PictureBuilder::State::close_slice(std::vector<OpenSlice>& open, const HookEvent& event,
                                        std::uint32_t id) {
  const SliceKey key = slice_key(event);
  const auto has_key = [&](const OpenSlice& slice) { return slice.key == key; };
  if (std::none_of(open.begin(), open.end(), has_key)) return false;
  for (; !has_key(open.back()); open.pop_back()) {
    draft.picture.bars[open.back().bar].is_open = true;
    draft.end_bar(open.back().bar, id);
  }
  draft.end_bar(open.back().bar, id);
  open.pop_back();
  return true;
}

void PictureBuilder::State::link_callback(Process& process, const HookEvent& event,
                                          std::uint32_t id) {
  const std::pair<GraphTaskId, NameId> key{event.graph_task, event.name};
  if (event.kind == EventKind::cb_queue) process.queued[key] = id;
  if (event.kind != EventKind::cb_begin) return;
  const auto queued = process.queued.find(key);
  if (queued == process.queued.end()) return;
  draft.picture.links.emplace_back(queued->second, id);
  process.queued.erase(queued);
}

// What has no end reaches to the last event of its process.
void PictureBuilder::State::leave_open(Process& process) {
  const std::uint32_t last = process.event_of.rbegin()->second;
  for (const auto& [thread, open] : process.slices) {
    for (const OpenSlice& slice : open) {
      draft.picture.bars[slice.bar].is_open = true;
      draft.end_bar(slice.bar, last);
    }
  }
  process.spans.leave_open(last, draft);
}

// Several sources with one rank are distinguished by their names.
void PictureBuilder::State::name_processes() {
  std::map<std::string, int> uses;
  for (const PictureProcess& process : draft.picture.processes) ++uses[process.title];
  for (PictureProcess& process : draft.picture.processes) {
    if (uses[process.title] == 1 || process.facts.empty()) continue;
    const std::filesystem::path from = process.facts.back().second;
    process.title += "  " + from.filename().string();
  }
}

void PictureBuilder::State::set_times() {
  std::vector<PictureEvent>& events = draft.picture.events;
  if (events.empty()) return;
  const auto first =
      std::min_element(events.begin(), events.end(),
                       [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  const auto base = static_cast<std::uint64_t>(first->time_ns);
  for (PictureEvent& event : events) {
    event.time_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(event.time_ns) - base);
  }
}

PictureBuilder::PictureBuilder(const NameTable& names) : state_(std::make_unique<State>(names)) {}

PictureBuilder::~PictureBuilder() = default;

void PictureBuilder::begin_source(const HeaderRecord& header, std::string_view name) {
  ++state_->sources;
  state_->header = header;
  state_->name = name;
  state_->threads.clear();
  state_->offset_ns = static_cast<std::uint64_t>(header.clock.unix0_ns) -
                      static_cast<std::uint64_t>(header.clock.mono0_ns);
  bool& has_time = state_->draft.picture.has_time;
  has_time = has_time || header.clock.source != "virtual";
}

void PictureBuilder::declare(const ThreadRecord& thread) {
  state_->threads[thread.thread] = thread.name;
}

void PictureBuilder::add(const HookEvent& event, std::string_view line) {
  ZP_CHECK(state_->sources > 0, "an event before its source");
  state_->add(event, line);
}

void PictureBuilder::add(const HookEvent& event) {
  std::string line;
  append_json_line(event, state_->names, line);
  const std::size_t length = line.size();
  line.append(kJsonPadding, ' ');
  add(event, std::string_view(line).substr(0, length));
}

std::size_t PictureBuilder::event_count() const {
  return state_->draft.picture.events.size();
}

std::int64_t PictureBuilder::find_event(std::size_t source, std::int32_t rank,
                                        std::uint64_t lc) const {
  const auto process = state_->processes.find({source, rank});
  if (process == state_->processes.end()) return -1;
  const auto found = process->second.event_of.find(lc);
  if (found == process->second.event_of.end()) return -1;
  return found->second;
}

std::int64_t PictureBuilder::find_task(std::size_t source, std::int64_t call) const {
  for (const auto& [key, process] : state_->processes) {
    if (key.first != source) continue;
    const auto found = process.task_of.find(call);
    if (found != process.task_of.end()) return found->second;
  }
  return -1;
}

Picture PictureBuilder::finish() {
  for (auto& [key, process] : state_->processes) state_->leave_open(process);
  state_->draft.sort_tracks();
  state_->name_processes();
  state_->set_times();
  order_picture(state_->draft.picture, state_->collectives.all());
  return std::move(state_->draft.picture);
}

}  // namespace zeroproof
