#include "engine/checkpoint/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

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
  return fail(ErrorCode::unreadable,
              fmt::format("{}: is no tensor file of this version: {}; load it with the version "
                          "that saved it, or restore it from a copy",
                          path, why));
}

}  // namespace

std::string tensor_header_text(const TensorHeader& header) {
  const nlohmann::json line = {{"schema", kSchema},
                               {"name", escaped_name(header.name)},
                               {"dtype", dtype_name(header.dtype)},
                               {"shape", header.sizes}};
  return line.dump() + "\n";
}

std::string element_bytes(const std::vector<double>& values, DType dtype) {
  std::string bytes;
  bytes.reserve(values.size() * static_cast<std::size_t>(item_bytes(dtype)));
  for (const double value : values)
    append_little_endian(bytes, encode_element(dtype, value), item_bytes(dtype));
  return bytes;
}

std::vector<double> element_values(std::string_view bytes, DType dtype) {
  const auto item = static_cast<std::size_t>(item_bytes(dtype));
  std::vector<double> values;
  values.reserve(bytes.size() / item);
  for (; !bytes.empty(); bytes.remove_prefix(item))
    values.push_back(decode_element(dtype, little_endian(bytes.substr(0, item))));
  return values;
}

std::string tensor_bytes(const FullTensor& tensor, DType dtype) {
  const bool fits =
      std::ranges::all_of(tensor.values, [&](double v) { return is_exact(dtype, v); });
  const DType stored = fits ? dtype : DType::float64;
  std::string bytes = tensor_header_text({tensor.name, stored, tensor.sizes});
  bytes.reserve(bytes.size() + tensor.values.size() * static_cast<std::size_t>(item_bytes(stored)));
  for (const double value : tensor.values) {
    append_little_endian(bytes, encode_element(stored, value), item_bytes(stored));
  }
  return bytes;
}

Result<ParsedTensorHeader> parse_tensor_header(std::string_view beginning,
                                               const std::string& path) {
  const std::size_t line = beginning.find('\n');
  if (line == beginning.npos) return no_tensor(path, "it has no header");
  try {
    const auto header = nlohmann::json::parse(beginning.substr(0, line));
    if (header.at("schema") != kSchema) return no_tensor(path, header.at("schema").dump());
    const auto dtype = dtype_of(header.at("dtype").get<std::string>());
    auto name = unescaped_name(header.at("name").get<std::string>());
    if (!dtype || !name) return no_tensor(path, "its dtype or name is unknown");
    TensorHeader parsed{std::move(*name), *dtype, {}};
    for (const auto& size : header.at("shape")) {
      if (!size.is_number_integer()) return no_tensor(path, "its shape has no whole numbers");
      parsed.sizes.push_back(size.get<std::int64_t>());
    }
    return ParsedTensorHeader{std::move(parsed), line + 1};
  } catch (const nlohmann::json::exception& error) {
    return no_tensor(path, error.what());
  }
}

Result<FullTensor> parse_tensor(std::string_view bytes, const std::string& path) {
  auto parsed = parse_tensor_header(bytes, path);
  if (!parsed) return tl::unexpected(parsed.error());
  TensorHeader& header = parsed->header;
  const std::string_view data = bytes.substr(parsed->bytes);
  if (bytes_of(header.sizes, header.dtype, data.size()) != data.size())
    return no_tensor(path, "its shape and its size differ");
  return FullTensor{std::move(header.name), std::move(header.sizes),
                    element_values(data, header.dtype)};
}

}  // namespace zeroproof
