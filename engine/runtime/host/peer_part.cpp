#include "engine/runtime/host/peer_part.h"

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "engine/runtime/host/elements.h"
#include "engine/runtime/process/byte_strings.h"

namespace zeroproof::host {
namespace {

static_assert(std::endian::native == std::endian::little, "parts travel as they lie in memory");

// Everything but the elements of the input.
struct Header {
  std::int64_t op = 0;
  std::int64_t reduce = 0;
  std::int64_t root = 0;
  std::int64_t dtype = 0;
  std::int64_t output_elements = 0;
};

template <class T>
std::string bytes_of(const T* from, std::size_t count) {
  return {reinterpret_cast<const char*>(from), count * sizeof(T)};
}

template <class Enum>
bool is_at_most(std::int64_t value, Enum last) {
  return value >= 0 && value <= static_cast<std::int64_t>(last);
}

// What the inputs of so many ranks make for each.
std::int64_t output_of(CollectiveOp op, std::int64_t input, int ranks) {
  if (op == CollectiveOp::all_gather) return input * ranks;
  if (op != CollectiveOp::reduce_scatter) return input;
  return input % ranks == 0 ? input / ranks : -1;
}

bool is_valid(const Header& header, std::size_t bytes, int ranks) {
  if (!is_at_most(header.op, CollectiveOp::barrier) || !is_at_most(header.reduce, ReduceOp::max) ||
      !is_at_most(header.root, ranks - 1) || !is_at_most(header.dtype, DType::float16))
    return false;
  const auto op = static_cast<CollectiveOp>(header.op);
  if (op == CollectiveOp::barrier) return bytes == 0;
  const auto input = static_cast<std::int64_t>(bytes / sizeof(double));
  return bytes % sizeof(double) == 0 && header.output_elements == output_of(op, input, ranks);
}

}  // namespace

std::string packed_part(const Collective& collective) {
  Header header{.op = static_cast<std::int64_t>(collective.op),
                .reduce = static_cast<std::int64_t>(collective.reduce),
                .root = collective.root};
  std::vector<double> elements;
  if (collective.op != CollectiveOp::barrier) {
    header.dtype = static_cast<std::int64_t>(collective.input.dtype());
    header.output_elements = collective.output.elements;
    for_each_element(collective.input, [&](double x) { elements.push_back(x); });
  }
  return pack({bytes_of(&header, 1), bytes_of(elements.data(), elements.size())});
}

std::optional<PeerPart> unpacked_part(std::string_view bytes, int ranks) {
  const auto parts = unpack(bytes);
  Header header;
  if (!parts || parts->size() != 2 || (*parts)[0].size() != sizeof header) return std::nullopt;
  std::memcpy(&header, (*parts)[0].data(), sizeof header);
  const std::string& data = (*parts)[1];
  if (!is_valid(header, data.size(), ranks)) return std::nullopt;
  PeerPart part;
  part.collective.op = static_cast<CollectiveOp>(header.op);
  part.collective.reduce = static_cast<ReduceOp>(header.reduce);
  part.collective.root = static_cast<int>(header.root);
  if (part.collective.op == CollectiveOp::barrier) return part;
  std::vector<double> elements(data.size() / sizeof(double));
  if (!data.empty()) std::memcpy(elements.data(), data.data(), data.size());
  const auto dtype = static_cast<DType>(header.dtype);
  const auto count = static_cast<std::int64_t>(elements.size());
  part.input = Tensor::of(elements, {count}, dtype);
  part.output = Tensor::full({header.output_elements}, 0.0, dtype);
  part.collective.input = Span::of(part.input);
  part.collective.output = Span::of(part.output);
  return part;
}

}  // namespace zeroproof::host
