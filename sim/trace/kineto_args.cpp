#include "sim/trace/kineto_args.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zeroproof {
namespace {

// Which tensors of a collective hold a share of one rank only.
enum class Share : std::uint8_t { none, input, output };

struct OpWords {
  std::string_view op;
  std::string_view kineto;
  Share share;
};

constexpr OpWords kOps[] = {
    {"all_reduce", "allreduce", Share::none},
    {"all_reduce_coalesced", "allreduce_coalesced", Share::none},
    {"broadcast", "broadcast", Share::none},
    {"reduce", "reduce", Share::none},
    {"all_gather", "all_gather", Share::input},
    {"all_gather_into_tensor", "_allgather_base", Share::input},
    {"all_gather_coalesced", "all_gather_into_tensor_coalesced", Share::input},
    {"reduce_scatter", "reduce_scatter", Share::output},
    {"reduce_scatter_tensor", "_reduce_scatter_base", Share::output},
    {"reduce_scatter_coalesced", "reduce_scatter_tensor_coalesced", Share::output},
    {"all_to_all", "all_to_all", Share::none},
    {"all_to_all_single", "all_to_all", Share::none},
    {"barrier", "barrier", Share::none},
};

struct TypeWords {
  std::string_view names[3];  // as hooktrace may have it
  std::string_view kineto;    // c10's
  std::int64_t bytes;
};

constexpr TypeWords kTypes[] = {
    {{"float32", "fp32", "torch.float32"}, "Float", 4},
    {{"float64", "fp64", "torch.float64"}, "Double", 8},
    {{"bfloat16", "bf16", "torch.bfloat16"}, "BFloat16", 2},
    {{"float16", "fp16", "torch.float16"}, "Half", 2},
    {{"int64", "long", "torch.int64"}, "Long", 8},
    {{"int32", "int", "torch.int32"}, "Int", 4},
    {{"uint8", "byte", "torch.uint8"}, "Byte", 1},
};

const TypeWords* type_of(std::string_view dtype) {
  for (const TypeWords& type : kTypes) {
    for (const std::string_view name : type.names) {
      if (name == dtype) return &type;
    }
  }
  return nullptr;
}

OpWords words_of(std::string_view op) {
  for (const OpWords& words : kOps) {
    if (words.op == op) return words;
  }
  return {op, op, Share::none};
}

}  // namespace

void add_kineto_args(const KinetoCollective& collective, JsonObject& args) {
  const OpWords words = words_of(collective.op);
  const auto size =
      collective.ranks ? static_cast<std::int64_t>(collective.ranks->size()) : std::int64_t{0};
  args.set("Collective name", words.kineto);
  const TypeWords* type = type_of(collective.dtype);
  const bool is_counted =
      type != nullptr && collective.bytes >= 0 && collective.bytes % type->bytes == 0;
  if (is_counted) {
    args.set("dtype", type->kineto);
    const std::int64_t whole = collective.bytes / type->bytes;
    const bool is_shared = words.share == Share::none || (size > 0 && whole % size == 0);
    const std::int64_t share = words.share == Share::none || size == 0 ? whole : whole / size;
    if (is_shared) {
      args.set("In msg nelems", words.share == Share::input ? share : whole);
      args.set("Out msg nelems", words.share == Share::output ? share : whole);
    }
  }
  if (size > 0) args.set("Group size", size);
  args.set("Process Group Name", collective.group);
  if (size > 0) {
    args.set("Process Group Ranks", fmt::format("[{}]", fmt::join(*collective.ranks, ", ")));
  }
  args.set("Rank", collective.rank);
  if (collective.number >= 0) args.set("Seq", collective.number);
}

}  // namespace zeroproof
