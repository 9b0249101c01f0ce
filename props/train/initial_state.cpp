#include "props/train/initial_state.h"

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "engine/files/atomic_file.h"
#include "model/nn/decoder.h"

namespace zeroproof::train {
namespace {

using OrderedJson = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "the format's order of bytes");

// The tensors of the file, one after the other.
class Header {
 public:
  void add(const std::string& name, const char* dtype, const Shape& sizes, std::int64_t item) {
    const std::int64_t end = end_ + numel(sizes) * item;
    json_[name] = {{"dtype", dtype}, {"shape", sizes}, {"data_offsets", {end_, end}}};
    end_ = end;
  }

  // The length of the JSON, and the JSON, filled up to a multiple of eight bytes.
  std::string bytes() const {
    constexpr std::size_t kAlignment = 8;
    std::string text = json_.dump();
    text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
    const std::uint64_t length = text.size();
    std::string bytes(sizeof(length), '\0');
    std::memcpy(bytes.data(), &length, sizeof(length));
    return bytes + text;
  }

 private:
  OrderedJson json_ = OrderedJson::object();
  std::int64_t end_ = 0;
};

template <class Element>
Result<void> write_elements(AtomicFile& file, const Tensor& tensor) {
  std::vector<Element> elements;
  elements.reserve(static_cast<std::size_t>(tensor.numel()));
  for (const double value : tensor.values()) elements.push_back(static_cast<Element>(value));
  return file.write(
      {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(Element)});
}

Result<void> write_batches(AtomicFile& file, const DecoderCell& cell, std::size_t part) {
  const std::int64_t sequences = cell.world_size * cell.batch;
  for (std::int64_t turn = 0; turn < kBatchTurns; ++turn) {
    const Tensor numbers = batch_of(cell, turn, {0, sequences})[part];
    if (auto written = write_elements<std::int32_t>(file, numbers); !written) return written;
  }
  return {};
}

}  // namespace

Result<void> write_initial_state(const DecoderCell& cell, const std::string& path) {
  const Shape batches = {kBatchTurns, cell.world_size * cell.batch, cell.length};
  Header header;
  header.add("batches.ids", "I32", batches, sizeof(std::int32_t));
  header.add("batches.targets", "I32", batches, sizeof(std::int32_t));
  for (const nn::ParameterShape& shape : nn::parameter_shapes(cell.sizes))
    header.add(shape.name, "F32", shape.sizes, sizeof(float));
  auto file = AtomicFile::create(path);
  if (!file) return tl::unexpected(file.error());
  if (auto written = file->write(header.bytes()); !written) return written;
  for (std::size_t part = 0; part < 2; ++part)
    if (auto written = write_batches(*file, cell, part); !written) return written;
  const nn::Decoder module(cell.sizes, cell.seed);
  for (const auto& parameter : module.named_parameters())
    if (auto written = write_elements<float>(*file, parameter.tensor); !written) return written;
  return file->commit();
}

}  // namespace zeroproof::train
