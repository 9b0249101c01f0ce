#include "engine/checkpoint/resharded_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/checkpoint/shard_blocks.h"
#include "engine/checkpoint/tensor_file.h"

namespace zeroproof {
namespace {

// What is held of a part.
constexpr std::int64_t kHeldElements = kBlockElements / 8;

}  // namespace

Result<ReshardedState> ReshardedState::open(RangedFileSystem& files, const std::string& checkpoint,
                                            const std::vector<const StoredState*>& saved,
                                            const PartitionRule& rule, const ParallelRank& tensor) {
  ReshardedState state;
  for (const StoredState* of : saved) {
    auto reader = StateReader::open(files, checkpoint, *of);
    if (!reader) return tl::unexpected(reader.error());
    const bool is_alike = state.parts_.empty() || state.dtype_ == reader->dtype();
    state.dtype_ = is_alike ? reader->dtype() : DType::float64;
    state.sizes_.push_back(reader->sizes());
    state.parts_.push_back({.reader = std::move(*reader), .begin = 0, .held = {}});
  }
  state.item_ = static_cast<std::size_t>(item_bytes(state.dtype_));
  auto planned = plan_reshard(state.sizes_, rule, tensor, {});
  if (!planned)
    return fail(planned.error().code,
                fmt::format("{}: '{}/{}' does not fit: {}", checkpoint, saved.front()->parameter,
                            saved.front()->key, planned.error().text));
  state.plan_ = std::move(planned->plan);
  state.rule_ = std::move(planned->rule);
  return state;
}

Result<std::string> ReshardedState::read(std::int64_t begin, std::int64_t elements) {
  if (!plan_.axis) return parts_.front().reader.read(begin, elements);
  std::string bytes;
  bytes.reserve(static_cast<std::size_t>(elements) * item_);
  Result<void> put;
  each_piece(plan_, sizes_, begin, elements, [&](const PartPiece& piece) {
    put = append(piece, bytes);
    return put.has_value();
  });
  if (!put) return tl::unexpected(put.error());
  return bytes;
}

Result<void> ReshardedState::append(const PartPiece& piece, std::string& bytes) {
  if (piece.part == AxisRun::kZeros) {
    bytes.append(static_cast<std::size_t>(piece.elements) * item_, '\0');  // 0.0 in every dtype
    return {};
  }
  Part& part = parts_[static_cast<std::size_t>(piece.part)];
  const std::int64_t end = piece.begin + piece.elements;
  for (std::int64_t at = piece.begin; at < end;) {
    if (auto holds = hold(part, at); !holds) return holds;
    const auto from = static_cast<std::size_t>(at - part.begin) * item_;
    const auto count =
        std::min(static_cast<std::size_t>(end - at) * item_, part.held.size() - from);
    bytes.append(part.held, from, count);
    at += static_cast<std::int64_t>(count / item_);
  }
  return {};
}

Result<void> ReshardedState::hold(Part& part, std::int64_t begin) const {
  const auto held = static_cast<std::int64_t>(part.held.size() / item_);
  if (part.begin <= begin && begin < part.begin + held) return {};
  const std::int64_t elements = std::min(kHeldElements, numel(part.reader.sizes()) - begin);
  auto bytes = part.reader.read(begin, elements);
  if (!bytes) return tl::unexpected(bytes.error());
  const bool is_alike = part.reader.dtype() == dtype_;
  part.held = is_alike ? std::move(*bytes)
                       : element_bytes(element_values(*bytes, part.reader.dtype()), dtype_);
  part.begin = begin;
  return {};
}

}  // namespace zeroproof
