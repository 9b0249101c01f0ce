#include "props/foreign/kineto_event.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "props/foreign/json_fields.h"

namespace zeroproof {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kNodePrefix = "autograd::engine::evaluate_function: ";
constexpr std::string_view kCallPrefix = "c10d::";
constexpr std::string_view kComms = "record_param_comms";
constexpr std::array<std::string_view, 4> kLibraries = {"nccl:", "gloo:", "rccl:", "xccl:"};
constexpr std::size_t kSlicesMax = 4'000'000;

// The operations of c10d by their dispatcher names; the rest is called as it is.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kCallNames = {
    {{"allreduce_", "all_reduce"},
     {"allreduce_coalesced_", "allreduce_coalesced"},
     {"allgather_", "all_gather"},
     {"allgather_coalesced_", "allgather_coalesced"},
     {"_allgather_base_", "all_gather_into_tensor"},
     {"allgather_into_tensor_coalesced_", "all_gather_into_tensor_coalesced"},
     {"_reduce_scatter_base_", "reduce_scatter_tensor"},
     {"reduce_scatter_", "reduce_scatter"},
     {"reduce_scatter_tensor_coalesced_", "reduce_scatter_tensor_coalesced"},
     {"broadcast_", "broadcast"},
     {"reduce_", "reduce"},
     {"gather_", "gather"},
     {"scatter_", "scatter"},
     {"alltoall_", "all_to_all"},
     {"alltoall_base_", "all_to_all_single"},
     {"recv_", "recv"},
     {"recv_any_source_", "recv"}}};

std::string op_of_call(std::string_view name) {
  for (const auto& [call, op] : kCallNames)
    if (name == call) return std::string(op);
  return std::string(name);
}

// The first list of integers at or below `value`, as shapes are nested by tensor lists.
void append_sizes(const Json& value, TensorSizes& out, int depth) {
  if (!value.is_array() || value.empty() || depth == 0) return;
  if (!value.front().is_number_integer()) {
    for (const Json& inner : value) append_sizes(inner, out, depth - 1);
    return;
  }
  auto& sizes = out.emplace_back();
  for (const Json& size : value)
    if (const auto number = json_integer(size)) sizes.push_back(*number);
}

void take_first_sizes(const Json& arguments, CollectiveShape& shape) {
  const auto sizes = arguments.find("Input Dims");
  if (sizes != arguments.end() && sizes->is_array() && !sizes->empty())
    append_sizes((*sizes)[0], shape.input_sizes, 4);
}

const Json& arguments_of(const Json& event) {
  static const Json kNone = Json::object();
  const auto at = event.find("args");
  return at != event.end() && at->is_object() ? *at : kNone;
}

double start_of(const Json& event) {
  const auto at = event.find("ts");
  return at != event.end() && at->is_number() ? at->get<double>() : 0;
}

bool is_message(std::string_view op) {
  return op == "send" || op == "recv";
}

std::int32_t rank_at(const Json& arguments, const char* key) {
  const auto rank = json_integer(arguments, key);
  return rank && *rank >= 0 && *rank <= kRankMax ? static_cast<std::int32_t>(*rank) : -1;
}

// Python's repr of a dict, as some builds write it, as JSON: good for what is read here.
Json parsed_head(const Json& value) {
  if (!value.is_string()) return value;
  std::string text = value.get<std::string>();
  std::replace(text.begin(), text.end(), '\'', '"');
  return Json::parse(text, nullptr, false);
}

}  // namespace

bool KinetoEvents::is_of_interest(std::string_view text) {
  constexpr std::array<std::string_view, 3> kWords = {kNodePrefix, kCallPrefix, kComms};
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  return std::any_of(kWords.begin(), kWords.end(), has) ||
         std::any_of(kLibraries.begin(), kLibraries.end(), has);
}

tl::expected<void, std::string> KinetoEvents::add(const Json& event) {
  if (!event.is_object() || json_text(event, "ph") != "X") return {};
  if (nodes_.size() + calls_.size() + annotations_.size() + comms_.size() >= kSlicesMax)
    return tl::unexpected(
        fmt::format("more than {} collectives and nodes, which is the limit", kSlicesMax));
  const std::string name = json_text(event, "name");
  const bool is_annotation = std::any_of(kLibraries.begin(), kLibraries.end(),
                                         [&](auto library) { return name.starts_with(library); });
  if (name.starts_with(kNodePrefix)) add_node(event, name.substr(kNodePrefix.size()));
  if (name.starts_with(kCallPrefix)) add_call(event, name.substr(kCallPrefix.size()));
  if (name == kComms) add_comms(event);
  if (is_annotation && json_text(event, "cat") != "gpu_user_annotation")
    add_annotation(event, name.substr(name.find(':') + 1));
  return {};
}

void KinetoEvents::add_node(const Json& event, const std::string& name) {
  const std::size_t scope = name.rfind("::");
  nodes_.push_back({start_of(event),
                    {scope == std::string::npos ? name : name.substr(scope + 2),
                     json_integer(arguments_of(event), "Sequence number").value_or(-1)}});
}

// The peer of a message is a rank within its group.
void KinetoEvents::add_call(const Json& event, const std::string& name) {
  const Json& arguments = arguments_of(event);
  CollectiveShape shape{.op = op_of_call(name)};
  Timed& timed = calls_.emplace_back();
  timed.start_us = start_of(event);
  timed.collective.is_point_to_point = is_message(shape.op);
  take_first_sizes(arguments, shape);
  const auto inputs = arguments.find("Concrete Inputs");
  const bool has_peer = timed.collective.is_point_to_point && inputs != arguments.end() &&
                        inputs->is_array() && inputs->size() > 2 && name != "recv_any_source_";
  if (has_peer) {
    const Json peer = {{"peer", (*inputs)[2]}};
    (shape.op == "send" ? timed.collective.to_rank : timed.collective.from_rank) =
        rank_at(peer, "peer");
  }
  timed.collective.shape = dump_.words->shape(std::move(shape));
}

void KinetoEvents::add_annotation(const Json& event, const std::string& name) {
  CollectiveShape shape{.op = name.substr(0, name.find(' '))};
  Timed& timed = annotations_.emplace_back();
  timed.start_us = start_of(event);
  timed.collective.is_point_to_point = is_message(shape.op);
  take_first_sizes(arguments_of(event), shape);
  timed.collective.shape = dump_.words->shape(std::move(shape));
}

// What NCCL's slices say more: group, number, dtype, both sizes, and the peer's global rank.
void KinetoEvents::add_comms(const Json& event) {
  const Json& arguments = arguments_of(event);
  std::string op = json_text(arguments, "Collective name");
  if (op.empty()) ++nameless_comms_;
  if (op.empty() || op == "wait" || op == "init" || op == "finalize") return;
  CollectiveShape shape{.op = op.starts_with("_") ? op.substr(1) : op};
  shape.group = json_text(arguments, "Process Group Name");
  if (shape.group.empty())
    shape.group = fmt::format("{}", json_integer(arguments, "Process Group ID").value_or(0));
  shape.group_desc = json_text(arguments, "Process Group Description");
  shape.input_sizes = {{json_integer(arguments, "In msg nelems").value_or(0)}};
  shape.output_sizes = {{json_integer(arguments, "Out msg nelems").value_or(0)}};
  if (std::string dtype = json_text(arguments, "dtype"); !dtype.empty())
    shape.input_dtypes = {std::move(dtype)};
  if (auto members = json_ranks(arguments, "Process Group Ranks"); !members.empty())
    dump_.groups[shape.group] = {shape.group_desc, dump_.words->members(std::move(members))};
  Timed& timed = comms_.emplace_back();
  timed.start_us = start_of(event);
  timed.collective.is_point_to_point = is_message(shape.op);
  if (timed.collective.is_point_to_point) take_message_ends(arguments, shape, timed);
  if (const auto number = json_integer(arguments, "Seq"); number && *number >= 0) {
    timed.has_number = true;
    timed.collective.number = *number;
  }
  timed.collective.shape = dump_.words->shape(std::move(shape));
}

void KinetoEvents::take_message_ends(const Json& arguments, const CollectiveShape& shape,
                                     Timed& timed) const {
  if (shape.op == "send")
    timed.collective.to_rank = rank_at(arguments, "Dst Rank");
  else
    timed.collective.from_rank = rank_at(arguments, "Src Rank");
}

tl::expected<void, std::string> KinetoEvents::take_head(const Json& head) {
  const auto found = head.find("distributedInfo");
  if (found == head.end()) return {};
  const Json info = parsed_head(*found);
  if (!info.is_object()) return {};
  const std::pair<const char*, std::int32_t*> numbers[] = {{"rank", &dump_.rank},
                                                           {"world_size", &dump_.world}};
  for (const auto& [key, out] : numbers) {
    const auto at = info.find(key);
    if (at == info.end() || !at->is_number_integer()) continue;
    const auto value = json_integer(*at);
    if (!value || *value < 0 || *value > kRankMax)
      return tl::unexpected(
          fmt::format("distributedInfo: {} {} is not from 0 to {}", key, at->dump(), kRankMax));
    *out = static_cast<std::int32_t>(*value);
  }
  const auto config = info.find("pg_config");
  if (config != info.end() && config->is_array()) take_groups(*config);
  return {};
}

void KinetoEvents::take_groups(const Json& config) {
  for (const Json& group : config) {
    if (!group.is_object()) continue;
    auto members = json_ranks(group, "ranks");
    const std::string name = json_text(group, "pg_name");
    if (!members.empty() && !name.empty())
      dump_.groups[name] = {json_text(group, "pg_desc"), dump_.words->members(std::move(members))};
  }
}

// Annotations of a library stand for calls that old versions do not show.
std::vector<KinetoEvents::Timed>& KinetoEvents::evidence() {
  if (!comms_.empty()) return comms_;
  return annotations_.size() > calls_.size() ? annotations_ : calls_;
}

// Calls do not name their group. It is clear where the rank has exactly one with others in it.
void KinetoEvents::name_group_of_calls(std::vector<Timed>& calls) {
  std::vector<std::string> names;
  for (const auto& [name, group] : dump_.groups) {
    const auto& members = *group.members;
    const bool is_member = std::binary_search(members.begin(), members.end(), dump_.rank);
    if (is_member && members.size() > 1) names.push_back(name);
  }
  if (names.size() != 1) return;
  for (Timed& timed : calls) {
    CollectiveShape shape = *timed.collective.shape;
    shape.group = names.front();
    shape.group_desc = dump_.groups[names.front()].desc;
    timed.collective.shape = dump_.words->shape(std::move(shape));
    finish_message(timed.collective);
  }
}

// A call gives the peer within the group, which is known now.
void KinetoEvents::finish_message(DumpedCollective& one) const {
  const auto group = dump_.groups.find(one.shape->group);
  if (!one.is_point_to_point || group == dump_.groups.end()) return;
  const auto& members = *group->second.members;
  for (std::int32_t* rank : {&one.from_rank, &one.to_rank})
    if (*rank >= 0 && static_cast<std::size_t>(*rank) < members.size())
      *rank = members[static_cast<std::size_t>(*rank)];
}

tl::expected<void, std::string> KinetoEvents::finish(const Json& head) {
  if (auto taken = take_head(head); !taken) return taken;
  const auto by_start = [](const auto& a, const auto& b) { return a.start_us < b.start_us; };
  std::vector<Timed>& issued = evidence();
  const bool is_named = &issued == &comms_;
  if (issued.empty()) dump_.unread = nameless_comms_;
  std::stable_sort(issued.begin(), issued.end(), by_start);
  std::stable_sort(nodes_.begin(), nodes_.end(), by_start);
  if (!is_named) name_group_of_calls(issued);
  dump_.has_numbers = is_named && std::all_of(issued.begin(), issued.end(),
                                              [](const Timed& one) { return one.has_number; });
  std::map<std::pair<std::string_view, bool>, std::int64_t> numbers;
  for (Timed& timed : issued) {
    DumpedCollective& one = timed.collective;
    if (!dump_.has_numbers) one.number = ++numbers[{one.shape->group, one.is_point_to_point}];
    if (one.is_point_to_point) (one.shape->op == "send" ? one.from_rank : one.to_rank) = dump_.rank;
    dump_.collectives.push_back(one);
  }
  if (!issued.empty()) dump_.begin_us = issued.front().start_us;
  for (TimedNode& timed : nodes_) dump_.nodes.push_back(std::move(timed.node));
  return {};
}

}  // namespace zeroproof
