#include "props/foreign/kineto_event.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace zeroproof {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kNodePrefix = "autograd::engine::evaluate_function: ";
constexpr std::string_view kCallPrefix = "c10d::";
constexpr std::string_view kComms = "record_param_comms";

// The operations of c10d by their dispatcher names; the rest is called as it is.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kCallNames = {
    {{"allreduce_", "all_reduce"},
     {"allgather_", "all_gather"},
     {"_allgather_base_", "all_gather_into_tensor"},
     {"_reduce_scatter_base_", "reduce_scatter_tensor"},
     {"reduce_scatter_", "reduce_scatter"},
     {"broadcast_", "broadcast"},
     {"alltoall_", "all_to_all"},
     {"barrier", "barrier"}}};

std::string op_of_call(std::string_view name) {
  for (const auto& [call, op] : kCallNames)
    if (name == call) return std::string(op);
  return std::string(name);
}

std::string text_at(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::int64_t integer_at(const Json& object, const char* key, std::int64_t absent) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number_integer() ? at->get<std::int64_t>() : absent;
}

// The first list of integers at or below `value`, as shapes are nested by tensor lists.
void append_sizes(const Json& value, std::vector<std::vector<std::int64_t>>& out, int depth) {
  if (!value.is_array() || value.empty() || depth == 0) return;
  if (!value.front().is_number_integer()) {
    for (const Json& inner : value) append_sizes(inner, out, depth - 1);
    return;
  }
  auto& sizes = out.emplace_back();
  for (const Json& size : value)
    if (size.is_number_integer()) sizes.push_back(size.get<std::int64_t>());
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

}  // namespace

void KinetoEvents::add(const Json& event) {
  if (!event.is_object() || text_at(event, "ph") != "X") return;
  const std::string name = text_at(event, "name");
  if (name.starts_with(kNodePrefix)) add_node(event, name.substr(kNodePrefix.size()));
  if (name.starts_with(kCallPrefix)) add_call(event, name.substr(kCallPrefix.size()));
  if (name == kComms) add_comms(event);
}

void KinetoEvents::add_node(const Json& event, const std::string& name) {
  Timed& timed = nodes_.emplace_back();
  timed.start_us = start_of(event);
  const std::size_t scope = name.rfind("::");
  timed.node.name = scope == std::string::npos ? name : name.substr(scope + 2);
  timed.node.sequence_nr = integer_at(arguments_of(event), "Sequence number", -1);
}

void KinetoEvents::add_call(const Json& event, const std::string& name) {
  Timed& timed = calls_.emplace_back();
  const Json& arguments = arguments_of(event);
  timed.start_us = start_of(event);
  timed.collective.op = op_of_call(name);
  timed.collective.group = std::string(1, '0');  // not "0": g++ 12 warns falsely at -O2
  const auto sizes = arguments.find("Input Dims");
  if (sizes != arguments.end() && sizes->is_array() && !sizes->empty())
    append_sizes((*sizes)[0], timed.collective.input_sizes, 4);
}

// What NCCL's slices say more: group, dtype and both sizes.
void KinetoEvents::add_comms(const Json& event) {
  const Json& arguments = arguments_of(event);
  std::string op = text_at(arguments, "Collective name");
  if (op.empty() || op == "wait" || op == "init" || op == "finalize") return;
  Timed& timed = comms_.emplace_back();
  timed.start_us = start_of(event);
  timed.collective.op = op.starts_with("_") ? op.substr(1) : op;
  timed.collective.group = text_at(arguments, "Process Group Name");
  timed.collective.input_sizes = {{integer_at(arguments, "In msg nelems", 0)}};
  timed.collective.output_sizes = {{integer_at(arguments, "Out msg nelems", 0)}};
  if (std::string dtype = text_at(arguments, "dtype"); !dtype.empty())
    timed.collective.input_dtypes = {std::move(dtype)};
}

void KinetoEvents::finish(RankDump& dump) {
  const auto by_start = [](const Timed& a, const Timed& b) { return a.start_us < b.start_us; };
  std::vector<Timed>& issued = comms_.empty() ? calls_ : comms_;
  std::stable_sort(issued.begin(), issued.end(), by_start);
  std::stable_sort(nodes_.begin(), nodes_.end(), by_start);
  std::map<std::string, std::int64_t> numbers;
  for (Timed& timed : issued) {
    timed.collective.number = ++numbers[timed.collective.group];
    dump.collectives.push_back(std::move(timed.collective));
  }
  for (Timed& timed : nodes_) dump.nodes.push_back(std::move(timed.node));
}

void take_kineto_head(const Json& head, RankDump& dump) {
  const auto info = head.find("distributedInfo");
  if (info == head.end() || !info->is_object()) return;
  dump.rank = static_cast<std::int32_t>(integer_at(*info, "rank", -1));
  dump.world = static_cast<std::int32_t>(integer_at(*info, "world_size", 0));
  const auto groups = info->find("pg_config");
  if (groups == info->end() || !groups->is_array()) return;
  for (const Json& group : *groups) {
    if (!group.is_object()) continue;
    std::vector<std::vector<std::int64_t>> ranks;
    const auto at = group.find("ranks");
    if (at != group.end()) append_sizes(*at, ranks, 1);
    auto& members = dump.groups[text_at(group, "pg_name")];
    if (!ranks.empty()) members.assign(ranks.front().begin(), ranks.front().end());
  }
}

}  // namespace zeroproof
