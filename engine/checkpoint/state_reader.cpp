#include "engine/checkpoint/state_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/checkpoint/file_names.h"
#include "engine/checkpoint/manifest_json.h"
#include "engine/checkpoint/tensor_file.h"

namespace zeroproof {
namespace {

std::string name_of(const StoredState& state) {
  return state.key == kWeightKey && state.pieces.front().elements < 0
             ? state.parameter
             : state.parameter + "/" + state.key;
}

}  // namespace

Result<StateReader> StateReader::open(RangedFileSystem& files, const std::string& checkpoint,
                                      const StoredState& state) {
  StateReader reader;
  reader.files_ = &files;
  reader.sizes_ = state.sizes;
  for (const StoredPiece& piece : state.pieces)
    if (auto added = reader.add(checkpoint + "/" + piece.file, piece, name_of(state)); !added)
      return tl::unexpected(added.error());
  return reader;
}

Result<void> StateReader::add(const std::string& path, const StoredPiece& of,
                              const std::string& name) {
  const auto beginning = files_->read_range(path, 0, kTensorHeaderBytesMax);
  if (!beginning) return damaged(path, beginning.error().reason);
  auto parsed = parse_tensor_header(*beginning, path);
  if (!parsed) return tl::unexpected(parsed.error());
  TensorHeader& header = parsed->header;
  if (header.name != name) return damaged(path, fmt::format("it holds '{}'", header.name));
  const auto elements = elements_within(header.sizes, kLargestNumber);
  const auto item = static_cast<std::uint64_t>(item_bytes(header.dtype));
  if (!elements || (of.elements >= 0 && of.elements != *elements) ||
      parsed->bytes + static_cast<std::uint64_t>(*elements) * item != of.record.bytes)
    return damaged(path, "its shape and its size differ");
  const bool is_first = pieces_.empty();
  if (of.elements < 0) sizes_ = std::move(header.sizes);
  dtype_ = is_first || dtype_ == header.dtype ? header.dtype : DType::float64;
  const std::int64_t begin = is_first ? 0 : pieces_.back().begin + pieces_.back().elements;
  pieces_.push_back({path, parsed->bytes, header.dtype, begin, *elements});
  return {};
}

Result<std::string> StateReader::read(std::int64_t begin, std::int64_t elements) const {
  std::string bytes;
  for (const Piece& of : pieces_) {
    const std::int64_t from = std::max(begin, of.begin);
    const std::int64_t to = std::min(begin + elements, of.begin + of.elements);
    if (from >= to) continue;
    auto piece = read_piece(of, from - of.begin, to - of.begin);
    if (!piece) return piece;
    if (bytes.empty())
      bytes = std::move(*piece);
    else
      bytes += *piece;
  }
  return bytes;
}

Result<std::string> StateReader::read_piece(const Piece& of, std::int64_t from,
                                            std::int64_t to) const {
  const auto item = static_cast<std::uint64_t>(item_bytes(of.dtype));
  const std::uint64_t bytes = static_cast<std::uint64_t>(to - from) * item;
  auto piece =
      files_->read_range(of.path, of.data_begin + static_cast<std::uint64_t>(from) * item, bytes);
  if (!piece) return damaged(of.path, piece.error().reason);
  if (piece->size() != bytes) return damaged(of.path, "it ends early");
  if (of.dtype == dtype_) return std::move(*piece);
  return element_bytes(element_values(*piece, of.dtype), dtype_);
}

}  // namespace zeroproof
