#include "props/foreign/flight_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "props/foreign/json_fields.h"

namespace zeroproof {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kNumberMax = std::int64_t{1} << 53;
constexpr std::size_t kCollectivesMax = 2'000'000;

struct WrongField {
  std::string text;
};

[[noreturn]] void wrong(const char* key, const char* wanted, const Json& found) {
  throw WrongField{fmt::format("{}: {} is expected, there is {}", key, wanted, found.type_name())};
}

std::string text_of(const Json& entry, const char* key, bool is_required) {
  const auto at = entry.find(key);
  if (at == entry.end() || at->is_null()) {
    if (is_required) throw WrongField{fmt::format("{} is missing", key)};
    return {};
  }
  if (!at->is_string()) wrong(key, "a string", *at);
  return at->get<std::string>();
}

std::int64_t integer_of(const Json& entry, const char* key, bool is_required) {
  const auto at = entry.find(key);
  if (at == entry.end() || at->is_null()) {
    if (is_required) throw WrongField{fmt::format("{} is missing", key)};
    return -1;
  }
  const auto value = json_integer(*at);
  if (!value && at->is_number_integer())
    throw WrongField{fmt::format("{}: {} does not fit 64 bits", key, at->dump())};
  if (!value) wrong(key, "an integer", *at);
  return *value;
}

bool flag_of(const Json& entry, const char* key) {
  const auto at = entry.find(key);
  return at != entry.end() && at->is_boolean() && at->get<bool>();
}

TensorSizes sizes_of(const Json& entry, const char* key) {
  TensorSizes sizes;
  const auto at = entry.find(key);
  if (at == entry.end() || at->is_null()) return sizes;
  if (!at->is_array()) wrong(key, "a list of sizes", *at);
  for (const Json& tensor : *at) {
    if (!tensor.is_array()) wrong(key, "a list of sizes", tensor);
    auto& one = sizes.emplace_back();
    for (const Json& size : tensor) {
      const auto value = json_integer(size);
      if (!value) wrong(key, "an integer", size);
      one.push_back(*value);
    }
  }
  return sizes;
}

std::vector<std::string> words_of(const Json& entry, const char* key) {
  std::vector<std::string> words;
  const auto at = entry.find(key);
  if (at == entry.end() || at->is_null()) return words;
  if (!at->is_array()) wrong(key, "a list of strings", *at);
  for (const Json& word : *at) {
    if (!word.is_string()) wrong(key, "a string", word);
    words.push_back(word.get<std::string>());
  }
  return words;
}

OpState state_of(const Json& entry) {
  const std::string word = text_of(entry, "state", false);
  for (const OpState state : {OpState::scheduled, OpState::started, OpState::completed})
    if (word == op_state_name(state)) return state;
  return OpState::unknown;
}

// "0->1" of a send, "1<-0" or "1<-?" of a receive: ranks within the group.
void take_ends(std::string_view ends, std::string_view op, DumpedCollective& out) {
  const std::size_t arrow = ends.find(op == "send" ? "->" : "<-");
  if (arrow == std::string_view::npos) return;
  const auto number = [](std::string_view text) -> std::int32_t {
    std::int64_t value = -1;
    std::from_chars(text.data(), text.data() + text.size(), value);
    if (value > kRankMax)
      throw WrongField{fmt::format("profiling_name: rank {} is above {}", value, kRankMax)};
    return static_cast<std::int32_t>(value);
  };
  const std::int32_t left = number(ends.substr(0, arrow));
  const std::int32_t right = number(ends.substr(arrow + 2));
  out.from_rank = op == "send" ? left : right;
  out.to_rank = op == "send" ? right : left;
}

// "nccl:send 0->1": the library, the operation and the two ends. A library's name may hold a colon.
void take_name(const std::string& profiling_name, CollectiveShape& shape, DumpedCollective& out) {
  const std::string_view whole = profiling_name;
  const std::string_view name = whole.substr(whole.rfind(':') + 1);
  const std::size_t blank = name.find(' ');
  shape.op = name.substr(0, blank);
  out.is_point_to_point = shape.op == "send" || shape.op == "recv";
  if (out.is_point_to_point && blank != std::string_view::npos)
    take_ends(name.substr(blank + 1), shape.op, out);
}

void take_group(const Json& entry, CollectiveShape& shape) {
  const auto group = entry.find("process_group");
  if (group == entry.end() || group->is_null()) {
    shape.group = fmt::format("{}", std::max<std::int64_t>(integer_of(entry, "pg_id", false), 0));
    return;
  }
  if (!group->is_array() || group->empty() || !(*group)[0].is_string())
    wrong("process_group", "a pair of strings", *group);
  shape.group = (*group)[0].get<std::string>();
  if (group->size() > 1 && (*group)[1].is_string()) shape.group_desc = (*group)[1];
}

// The innermost frame that is not PyTorch's own.
std::string frame_of(const Json& entry) {
  const auto frames = entry.find("frames");
  if (frames == entry.end() || !frames->is_array()) return {};
  for (const Json& frame : *frames) {
    if (!frame.is_object()) continue;
    const std::string file = text_of(frame, "filename", false);
    const bool is_library = file.find("/torch/") != std::string::npos || file.starts_with("??");
    if (file.empty() || is_library) continue;
    return fmt::format("{}:{} {}", file, integer_of(frame, "line", false),
                       text_of(frame, "name", false));
  }
  return {};
}

DumpedCollective collective_of(const Json& entry, DumpWords& words) {
  if (!entry.is_object()) wrong("entry", "an object", entry);
  DumpedCollective out;
  CollectiveShape shape;
  take_name(text_of(entry, "profiling_name", true), shape, out);
  take_group(entry, shape);
  const bool is_p2p = out.is_point_to_point || flag_of(entry, "is_p2p");
  out.is_point_to_point = is_p2p;
  out.number = integer_of(entry, is_p2p ? "p2p_seq_id" : "collective_seq_id", true);
  if (out.number < 0 || out.number > kNumberMax)
    throw WrongField{fmt::format("sequence number {} is out of range", out.number)};
  shape.input_sizes = sizes_of(entry, "input_sizes");
  shape.output_sizes = sizes_of(entry, "output_sizes");
  shape.input_dtypes = words_of(entry, "input_dtypes");
  shape.output_dtypes = words_of(entry, "output_dtypes");
  shape.frame = frame_of(entry);
  out.state = state_of(entry);
  out.is_retired = flag_of(entry, "retired");
  out.shape = words.shape(std::move(shape));
  return out;
}

}  // namespace

std::string_view op_state_name(OpState state) {
  constexpr std::array<std::string_view, 4> kNames = {"", "scheduled", "started", "completed"};
  return kNames[static_cast<std::size_t>(state)];
}

tl::expected<void, std::string> FlightEntries::add(const Json& entry) {
  try {
    if (dump_.collectives.size() == kCollectivesMax)
      throw WrongField{fmt::format("more than {} entries, which is the limit", kCollectivesMax)};
    dump_.collectives.push_back(collective_of(entry, *dump_.words));
    number_batch(entry);
    if (dump_.events == 0) dump_.first_record = integer_of(entry, "record_id", false);
    if (const std::int64_t id = integer_of(entry, "pg_id", false); id >= 0)
      names_[fmt::format("{}", id)] = dump_.collectives.back().shape->group;
    return {};
  } catch (const WrongField& field) {
    return tl::unexpected(field.text);
  }
}

tl::expected<void, std::string> FlightEntries::finish(const Json& head) {
  dump_.version = json_text(head, "version");
  const auto rank = head.find("rank");
  if (rank != head.end() && rank->is_number_integer()) {
    const auto value = json_integer(*rank);
    if (!value || *value < 0 || *value > kRankMax)
      return tl::unexpected(fmt::format("rank: {} is not from 0 to {}", rank->dump(), kRankMax));
    dump_.rank = static_cast<std::int32_t>(*value);
  }
  const auto config = head.find("pg_config");
  if (config != head.end() && config->is_object()) take_groups(*config);
  const auto status = head.find("pg_status");
  if (status != head.end() && status->is_object()) take_progress(*status);
  make_ranks_global();
  close_batches();
  return {};
}

// Gloo writes one nameless group "" whose ranks are not those of any group; it is skipped.
void FlightEntries::take_groups(const Json& config) {
  for (const auto& [name, one] : config.items()) {
    if (!one.is_object() || name.empty()) continue;
    auto members = json_ranks(one, "ranks");
    if (!members.empty())
      dump_.groups[name] = {json_text(one, "desc"), dump_.words->members(std::move(members))};
  }
}

// Gloo counts point-to-point operations too and never says that one started: its numbers are not
// those of collectives.
void FlightEntries::take_progress(const Json& status) {
  for (const auto& [id, one] : status.items()) {
    if (!one.is_object()) continue;
    const auto started = json_integer(one, "last_started_collective");
    const GroupProgress progress = {json_integer(one, "last_enqueued_collective").value_or(-1),
                                    json_integer(one, "last_completed_collective").value_or(-1)};
    const auto name = names_.find(id);
    const bool is_counted = !started || *started >= 0 || progress.completed <= 0;
    if (!is_counted || progress.enqueued < progress.completed) continue;
    if (name != names_.end())
      dump_.progress[name->second] = progress;
    else if (names_.empty() || dump_.groups.contains(id))
      dump_.progress[id] = progress;
  }
}

// A batch of sends and receives ends by an entry that PyTorch 2.11 does not call point to point:
// its collective number is that of the collective before it.
void FlightEntries::number_batch(const Json& entry) {
  std::vector<DumpedCollective>& all = dump_.collectives;
  DumpedCollective& last = all.back();
  if (last.shape->op != "coalesced" || last.is_point_to_point || all.size() < 2) return;
  const DumpedCollective& member = all[all.size() - 2];
  const std::int64_t number = integer_of(entry, "p2p_seq_id", false);
  const bool is_same_group = member.shape->group == last.shape->group;
  if (!is_same_group || !member.is_point_to_point || member.number != number) return;
  last.is_point_to_point = true;
  last.number = number;
}

// NCCL follows a coalesced batch by its last entry, `coalesced`; the entries of its operations stay
// "scheduled" forever.
void FlightEntries::close_batches() {
  std::vector<DumpedCollective>& all = dump_.collectives;
  for (std::size_t end = 0; end < all.size(); ++end) {
    const DumpedCollective& last = all[end];
    if (last.shape->op != "coalesced") continue;
    for (std::size_t at = end; at-- > 0;) {
      DumpedCollective& one = all[at];
      if (one.shape->group != last.shape->group) continue;
      if (one.number != last.number || one.is_point_to_point != last.is_point_to_point) break;
      one.state = last.state;
      one.is_retired = last.is_retired;
    }
  }
}

void FlightEntries::make_ranks_global() {
  for (DumpedCollective& one : dump_.collectives) {
    const auto group = dump_.groups.find(one.shape->group);
    if (!one.is_point_to_point || group == dump_.groups.end()) continue;
    const auto& members = *group->second.members;
    for (std::int32_t* rank : {&one.from_rank, &one.to_rank})
      if (*rank >= 0 && static_cast<std::size_t>(*rank) < members.size())
        *rank = members[static_cast<std::size_t>(*rank)];
  }
}

}  // namespace zeroproof
