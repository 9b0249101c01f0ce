#include "props/watch/spool_lines.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>

namespace zeroproof {
namespace {

using Value = nlohmann::ordered_json;

constexpr int kSpoolVersion = 1;
constexpr int kNestingMax = 64;

// The attributes of DeepSpeed's manager, in the order of encoder.py.
constexpr std::array kManagerState = {"remaining_grad_acc_hooks",
                                      "len(_grad_acc_post_hooks)",
                                      "backward_active_depth",
                                      "backward_seen_this_step",
                                      "epilogue_ran_this_backward",
                                      "hooks_fired_this_backward",
                                      "max_expected_hooks_seen",
                                      "post_backward_callback_queued",
                                      "post_backward_callback_graph_task_id"};

// Python's marshal, format 2, as far as plain values need it. A value that cannot be read leaves
// `has_failed`.
class Unmarshal {
 public:
  explicit Unmarshal(std::string_view bytes) : bytes_(bytes) {}

  bool has_failed() const { return has_failed_; }
  bool is_at_end() const { return bytes_.empty(); }

  Value value() {
    if (++nesting_ > kNestingMax) return failed();
    Value read = body(static_cast<char>(take(1).front()));
    --nesting_;
    return read;
  }

 private:
  Value failed() {
    has_failed_ = true;
    bytes_ = {};
    return nullptr;
  }

  // Never shorter than asked for: after a failure, zeros.
  std::string_view take(std::size_t count) {
    static constexpr std::array<char, 8> kZeros = {};
    if (count <= bytes_.size()) {
      const std::string_view taken = bytes_.substr(0, count);
      bytes_.remove_prefix(count);
      return taken;
    }
    failed();
    return {kZeros.data(), std::min(count, kZeros.size())};
  }

  template <class T>
  T number() {
    T read = {};
    std::memcpy(&read, take(sizeof(T)).data(), sizeof(T));
    return read;
  }

  Value body(char type) {
    switch (type) {
      case 'N':
        return nullptr;
      case 'T':
        return true;
      case 'F':
        return false;
      case 'i':
        return number<std::int32_t>();
      case 'l':
        return long_number();
      case 'g':
        return number<double>();
      case 'u':
      case 't':
        return text();
      case '(':
      case '[':
        return list();
      case '{':
        return dictionary();
      default:
        return failed();
    }
  }

  Value text() {
    const auto size = number<std::uint32_t>();
    if (size > bytes_.size()) return failed();
    return std::string(take(size));
  }

  // Digits of 15 bits, the lowest first; a negative count is that of a negative number.
  Value long_number() {
    constexpr int kDigitBits = 15;
    constexpr std::int32_t kDigitsMax = 4;  // 60 bits
    const auto count = number<std::int32_t>();
    const std::int32_t digits = count < 0 ? -count : count;
    if (digits > kDigitsMax + 1) return failed();
    std::uint64_t magnitude = 0;
    for (std::int32_t at = 0; at < digits; ++at)
      magnitude |= std::uint64_t{number<std::uint16_t>()} << (kDigitBits * at);
    const auto read = static_cast<std::int64_t>(magnitude);
    return count < 0 ? -read : read;
  }

  Value list() {
    const auto count = number<std::uint32_t>();
    Value read = Value::array();
    for (std::uint32_t at = 0; at < count && !has_failed_; ++at) read.push_back(value());
    return read;
  }

  Value dictionary() {
    Value read = Value::object();
    while (!has_failed_ && !bytes_.empty() && bytes_.front() != '0') {
      const Value key = value();
      if (!key.is_string()) return failed();
      read[key.get<std::string>()] = value();
    }
    take(1);
    return read;
  }

  std::string_view bytes_;
  int nesting_ = 0;
  bool has_failed_ = false;
};

std::string dumped(const Value& value) {
  return value.dump(-1, ' ', false, Value::error_handler_t::replace);
}

// JSON has no word for a number that is not finite.
void make_plain(Value& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    const double number = value.get<double>();
    value = std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
  }
  if (value.is_structured())
    for (Value& part : value) make_plain(part);
}

bool is_whole(const Value& value) {
  return value.is_number_integer();
}

// One event as it was taken: encoder.py's record.
struct Taken {
  std::string kind;
  std::int64_t t = 0;
  std::int64_t thread = 0;
  std::int64_t graph_task = -1;
  std::int64_t depth = 0;
  Value fields;          // null or an object
  std::string as_it_is;  // a record that is no event; without the members above

  bool is_bracket() const { return kind == "gt.begin" || kind == "gt.end"; }
  std::int64_t call() const { return fields.is_object() ? fields.value("call", -1) : -1; }
};

std::optional<Taken> taken_of(const Value& head, const Value& rest) {
  const bool is_short = head.size() == 4;  // of an emitter, which packs kind and fields once
  if (is_short && (!rest.is_array() || rest.size() != 2)) return std::nullopt;
  const Value& kind = is_short ? rest[0] : head[2];
  const Value& task = head[is_short ? 2 : 3];
  const Value& depth = head[is_short ? 3 : 4];
  if (!kind.is_string() || !is_whole(head[0]) || !is_whole(head[1]) || !is_whole(task) ||
      !is_whole(depth))
    return std::nullopt;
  Taken taken{.kind = kind.get<std::string>(),
              .t = head[0].get<std::int64_t>(),
              .thread = head[1].get<std::int64_t>(),
              .graph_task = task.get<std::int64_t>(),
              .depth = depth.get<std::int64_t>(),
              .fields = is_short ? rest[1] : head[5],
              .as_it_is = {}};
  if (!taken.fields.is_null() && !taken.fields.is_object()) return std::nullopt;
  return taken;
}

}  // namespace

struct SpoolLines::State {
  std::optional<SpoolBase> base;
  std::deque<Taken> waiting;
  std::map<std::int64_t, std::int64_t> graph_tasks;  // by backward call
  std::uint64_t events = 0;
  std::uint64_t records = 0;
  std::int64_t rank = 0;

  bool take_base(const Value& said);
  void take_record(Value record);
  bool is_due() const;
  std::string line_of(Taken taken);
};

SpoolLines::SpoolLines() : state_(std::make_unique<State>()) {}
SpoolLines::~SpoolLines() = default;
SpoolLines::SpoolLines(SpoolLines&&) noexcept = default;
SpoolLines& SpoolLines::operator=(SpoolLines&&) noexcept = default;

const std::optional<SpoolBase>& SpoolLines::base() const {
  return state_->base;
}

std::uint64_t SpoolLines::records() const {
  return state_->records;
}

bool SpoolLines::State::take_base(const Value& said) {
  try {
    const Value& writer = said.at("writer");
    const Value& begin = said.at("begin");
    const Value spool = said.value("spool", Value::object());
    if (spool.value("version", 0) != kSpoolVersion) return false;
    SpoolBase read{.path = begin.at("path").get<std::string>(),
                   .header = dumped(begin.at("header")),
                   .events = writer.at("events").get<std::uint64_t>(),
                   .records = writer.at("records").get<std::uint64_t>(),
                   .pass = spool.value("pass", std::uint64_t{0}),
                   .has_file = !writer.at("path").is_null()};
    rank = begin.at("header").at("rank").get<std::int64_t>();
    if (!base) events = read.events;
    base = std::move(read);
  } catch (const Value::exception&) {
    return false;
  }
  return true;
}

void SpoolLines::State::take_record(Value record) {
  Taken taken;
  make_plain(record);
  taken.as_it_is = dumped(record);
  waiting.push_back(std::move(taken));
}

bool SpoolLines::add(std::string_view record) {
  Unmarshal from(record);
  const Value head = from.value();
  const Value rest = from.is_at_end() ? Value() : from.value();
  if (from.has_failed() || !from.is_at_end()) return false;
  if (head.is_object() && head.contains("base")) return state_->take_base(head.at("base"));
  ++state_->records;
  if (head.is_object()) {
    state_->take_record(head);
    return true;
  }
  if (!head.is_array()) return false;
  if (head.size() == 2) {
    if (!is_whole(head[0]) || !is_whole(head[1])) return false;
    state_->graph_tasks[head[0].get<std::int64_t>()] = head[1].get<std::int64_t>();
    return true;
  }
  if (head.size() != 4 && head.size() != 6) return false;
  auto taken = taken_of(head, rest);
  if (!taken) return false;
  state_->waiting.push_back(std::move(*taken));
  return true;
}

// Whether what stands first may go.
bool SpoolLines::State::is_due() const {
  const Taken& first = waiting.front();
  if (first.kind != "gt.begin" || graph_tasks.contains(first.call())) return true;
  for (const Taken& later : waiting)
    if (later.kind == "gt.end" && later.call() == first.call()) return true;
  return false;
}

std::string SpoolLines::State::line_of(Taken taken) {
  if (!taken.as_it_is.empty()) return std::move(taken.as_it_is);
  ++events;
  if (taken.is_bracket()) {
    const auto task = graph_tasks.find(taken.call());
    taken.graph_task = task == graph_tasks.end() ? -1 : task->second;
  }
  std::string line = fmt::format(
      "{{\"rec\":\"ev\",\"lc\":{},\"t\":{},\"r\":{},\"th\":{},\"k\":{},\"gt\":{},\"d\":{}", events,
      taken.t, rank, taken.thread, dumped(taken.kind), taken.graph_task, taken.depth);
  if (taken.fields.is_object()) {
    Value present = Value::object();
    for (auto& [key, value] : taken.fields.items()) {
      if (value.is_null()) continue;
      Value& kept = present[key] = value;
      if (key != "state" || !taken.kind.starts_with("bhs.") || !value.is_array()) continue;
      kept = Value::object();
      for (std::size_t at = 0; at < std::min(value.size(), kManagerState.size()); ++at)
        kept[kManagerState[at]] = value[at];
    }
    make_plain(present);
    if (!present.empty()) return line + "," + dumped(present).substr(1);
  }
  return line + "}";
}

std::vector<std::string> SpoolLines::take() {
  std::vector<std::string> lines;
  while (!state_->waiting.empty() && state_->is_due()) {
    lines.push_back(state_->line_of(std::move(state_->waiting.front())));
    state_->waiting.pop_front();
  }
  return lines;
}

}  // namespace zeroproof
