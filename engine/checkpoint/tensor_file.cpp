#include "engine/checkpoint/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/checkpoint/element_bits.h"
#include "engine/checkpoint/file_names.h"

namespace zeroproof {
namespace {

constexpr const char* kSchema = "zeroproof.tensor/1";

bool is_exact(DType dtype, double value) {
  const double again = decode_element(dtype, encode_element(dtype, value));
  return std::bit_cast<std::uint64_t>(again) == std::bit_cast<std::uint64_t>(value);
}

void append_little_endian(std::string& bytes, std::uint64_t word, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(word >> (8 * i)));
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    word = (word << 8) | static_cast<unsigned char>(bytes[i]);
  }
  return word;
}

// None: not sizes, or more bytes than `bytes_max`.
std::optional<std::uint64_t> bytes_of(const Shape& sizes, DType dtype, std::uint64_t bytes_max) {
  auto bytes = static_cast<std::uint64_t>(item_bytes(dtype));
  if (std::ranges::find(sizes, 0) != sizes.end()) bytes = 0;
  for (const std::int64_t size : sizes) {
    if (size < 0) return std::nullopt;
    if (size > 0 && bytes > bytes_max / static_cast<std::uint64_t>(size)) return std::nullopt;
    bytes *= static_cast<std::uint64_t>(size);
  }
  return bytes;
}

tl::unexpected<Error> no_tensor(const std::string& path, std::string_view why) {
  return fail(
      ErrorCode::unreadable,
      fmt::format("{}: is no tensor file of this version: {}; load it with the version that "
                  "saved it, or restore it from a copy",
                  path, why));
}

}  // namespace

std::string tensor_bytes(const FullTensor& tensor, DType dtype) {
  const bool fits =
      std::ranges::all_of(tensor.values, [&](double v) { return is_exact(dtype, v); });
  const DType stored = fits ? dtype : DType::float64;
  nlohmann::json header = {{"schema", kSchema},
                           {"name", escaped_name(tensor.name)},
                           {"dtype", dtype_name(stored)},
                           {"shape", tensor.sizes}};
  std::string bytes = header.dump() + "\n";
  bytes.reserve(bytes.size() + tensor.values.size() * static_cast<std::size_t>(item_bytes(stored)));
  for (const double value : tensor.values) {
    append_little_endian(bytes, encode_element(stored, value), item_bytes(stored));
  }
  return bytes;
}

Result<FullTensor> parse_tensor(std::string_view bytes, const std::string& path) {
  const std::size_t line = bytes.find('\n');
  if (line == bytes.npos) return no_tensor(path, "it has no header");
  std::string_view data = bytes.substr(line + 1);
  try {
    const auto header = nlohmann::json::parse(bytes.substr(0, line));
    if (header.at("schema") != kSchema) return no_tensor(path, header.at("schema").dump());
    const auto dtype = dtype_of(header.at("dtype").get<std::string>());
    const auto name = unescaped_name(header.at("name").get<std::string>());
    if (!dtype || !name) return no_tensor(path, "its dtype or name is unknown");
    FullTensor tensor{*name, {}, {}};
    for (const auto& size : header.at("shape")) {
      if (!size.is_number_integer()) return no_tensor(path, "its shape has no whole numbers");
      tensor.sizes.push_back(size.get<std::int64_t>());
    }
    if (bytes_of(tensor.sizes, *dtype, data.size()) != data.size()) {
      return no_tensor(path, "its shape and its size differ");
    }
    const auto item = static_cast<std::size_t>(item_bytes(*dtype));
    tensor.values.reserve(data.size() / item);
    for (; !data.empty(); data.remove_prefix(item)) {
      tensor.values.push_back(decode_element(*dtype, little_endian(data.substr(0, item))));
    }
    return tensor;
  } catch (const nlohmann::json::exception& error) {
    return no_tensor(path, error.what());
  }
}

}  // namespace zeroproof
