#include "props/replay/rank_cursor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "props/replay/moment.h"
#include "props/report/event_words.h"

namespace zeroproof {
namespace {

constexpr std::size_t kHooksMax = 1 << 16;

std::int64_t element_bytes(std::string_view dtype) {
  if (dtype == "float64" || dtype == "fp64" || dtype == "int64") return 8;
  if (dtype == "bfloat16" || dtype == "float16" || dtype == "bf16" || dtype == "fp16") return 2;
  return 4;
}

}  // namespace

bool IssuedCollective::is_same(const IssuedCollective& other) const {
  const bool has_parameters = !parameter.empty() && !other.parameter.empty();
  return op == other.op && bytes == other.bytes &&
         (!has_parameters || parameter == other.parameter);
}

std::string IssuedCollective::words() const {
  std::string text = op;
  if (bytes >= 0) text += fmt::format(" of {} bytes", bytes);
  if (!parameter.empty()) text += fmt::format(" for {}", parameter);
  return text;
}

struct RankCursor::State {
  NameTable names;
  std::optional<TraceReader> reader;
  std::map<NameId, std::string> members;  // of groups
  std::set<std::string, std::less<>> params;
  std::map<std::int64_t, std::vector<std::string>> sizes;  // parameters by their bytes
  std::map<std::int32_t, std::vector<NameId>> open_hooks;  // by thread: parameters of grad_hook
  std::vector<DiagnosisMoment> hooks;
  std::string marked;    // the parameter that the last mark names, until the next collective
  std::string bucketed;  // of the bucket that was announced last
  DiagnosisMoment last;
  bool is_at_end = false;

  void declare(const ParamRecord& param) {
    params.insert(param.name);
    std::int64_t bytes = element_bytes(param.dtype);
    for (const std::int64_t size : param.shape) bytes *= size;
    sizes[bytes].push_back(param.name);
  }

  void declare(const GroupRecord& group) {
    if (group.ranks)
      members[names.intern(group.name)] = fmt::format("{}", fmt::join(*group.ranks, ","));
  }

  template <class Other>
  void declare(const Other&) {}

  void follow(const HookEvent& event) {
    const std::string_view name = names.text(event.name);
    switch (event.kind) {
      case EventKind::engine_call:
        if (name == "grad_hook") open_hooks[event.thread].push_back(event.param);
        break;
      case EventKind::engine_return:
        if (name == "grad_hook" && !open_hooks[event.thread].empty())
          open_hooks[event.thread].pop_back();
        break;
      case EventKind::mark:
        take_mark(name);
        break;
      case EventKind::bucket_ready:
      case EventKind::bucket_flush:
        take_bucket(event);
        break;
      case EventKind::param_post_acc:
        if (hooks.size() < kHooksMax)
          hooks.push_back({event.rank, event.lc, std::string(names.text(event.param))});
        break;
      default:
        break;
    }
    if (!event_words(event, names).is_detail || event.kind == EventKind::mark)
      last = moment_of(event, names);
  }

  // "reduce:l1.bias": the user said what comes.
  void take_mark(std::string_view label) {
    const std::string_view word = label.substr(label.rfind(':') + 1);
    if (params.contains(word)) marked = word;
  }

  void take_bucket(const HookEvent& event) {
    std::vector<std::string> words;
    for (const NameId param : event.params) words.emplace_back(names.text(param));
    bucketed = listed(words, 4);
  }

  std::string parameter_of(const HookEvent& event) {
    if (!event.param.is_none()) return std::string(names.text(event.param));
    if (!event.params.empty()) {
      std::vector<std::string> words;
      for (const NameId param : event.params) words.emplace_back(names.text(param));
      return listed(words, 4);
    }
    if (!marked.empty()) return std::exchange(marked, {});
    if (!bucketed.empty()) return std::exchange(bucketed, {});
    const auto fitting = sizes.find(event.bytes);
    const bool is_unique = fitting != sizes.end() && fitting->second.size() == 1;
    return is_unique ? fitting->second.front() : std::string();
  }

  IssuedCollective issued(const HookEvent& event) {
    IssuedCollective out{.op = std::string(names.text(event.name)),
                         .group = std::string(names.text(event.group)),
                         .number = event.index,
                         .bytes = event.bytes,
                         .parameter = parameter_of(event),
                         .moment = moment_of(event, names),
                         .before = last};
    const auto known = members.find(event.group);
    out.members = known == members.end() ? out.group : known->second;
    const auto& hook = open_hooks[event.thread];
    if (!hook.empty() && !hook.back().is_none())
      out.place = fmt::format("in the hook of {}", names.text(hook.back()));
    else if (!event.graph_task.is_none())
      out.place = fmt::format("in graph task {}", event.graph_task.value);
    if (!out.parameter.empty()) out.moment.text += " for " + out.parameter;
    return out;
  }
};

RankCursor::RankCursor(std::unique_ptr<State> state) : state_(std::move(state)) {}
RankCursor::RankCursor(RankCursor&&) noexcept = default;
RankCursor::~RankCursor() = default;

Result<RankCursor> RankCursor::open(const std::string& path) {
  auto state = std::make_unique<State>();
  auto reader = TraceReader::open(path, state->names);
  if (!reader) return tl::unexpected(reader.error());
  state->reader.emplace(std::move(*reader));
  return RankCursor(std::move(state));
}

std::optional<IssuedCollective> RankCursor::next() {
  while (!state_->is_at_end) {
    const auto record = state_->reader->next();
    if (!record || *record == nullptr) break;
    const HookEvent* event = (*record)->event();
    if (event == nullptr) {
      std::visit([&](const auto& body) { state_->declare(body); }, (*record)->body);
      continue;
    }
    if (event->kind != EventKind::coll_issue) {
      state_->follow(*event);
      continue;
    }
    IssuedCollective out = state_->issued(*event);
    state_->last = out.moment;
    return out;
  }
  state_->is_at_end = true;
  return std::nullopt;
}

std::vector<DiagnosisMoment> RankCursor::take_hooks() {
  return std::exchange(state_->hooks, {});
}

const DiagnosisMoment& RankCursor::last() const {
  return state_->last;
}

}  // namespace zeroproof
