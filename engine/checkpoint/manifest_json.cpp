#include "engine/checkpoint/manifest_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "engine/checkpoint/checksum.h"
#include "engine/checkpoint/file_names.h"

namespace zeroproof {

using nlohmann::json;

std::int64_t read_number(const json& value, std::int64_t least) {
  const auto number = value.is_number_integer() ? value.get<std::int64_t>() : least - 1;
  if (number < least || number > kLargestNumber) throw Malformed(value.dump() + " as a number");
  return number;
}

std::string read_name(const json& value) {
  auto name = unescaped_name(value.get<std::string>());
  if (!name) throw Malformed(value.dump() + " is no name");
  return std::move(*name);
}

Shape read_shape(const json& value) {
  Shape shape;
  for (const json& size : value) shape.push_back(read_number(size));
  return shape;
}

json to_json(const FileRecord& file) {
  return {{"bytes", file.bytes}, {"xxh3_128", file.checksum}};
}

FileRecord read_file_record(const json& value) {
  return {value.at("bytes").get<std::uint64_t>(), value.at("xxh3_128").get<std::string>()};
}

std::optional<std::int64_t> elements_within(const Shape& sizes, std::int64_t most) {
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) {
    if (size < 0 || (size > 0 && elements > most / size)) return std::nullopt;
    elements *= size;
  }
  return elements;
}

Result<void> read_sealed(std::string_view text, const std::string& path, std::string_view schema,
                         const std::function<void(const json& value)>& read) {
  std::string_view line;
  if (!unseal(text, line)) return damaged(path, "its checksum does not match");
  try {
    const json value = json::parse(line);
    const auto found = value.at("schema").get<std::string>();
    if (found != schema)
      return fail(ErrorCode::unreadable,
                  fmt::format("{}: has schema '{}', and this version reads '{}'; load it "
                              "with the version that saved it",
                              path, found, schema));
    read(value);
    return {};
  } catch (const json::exception& error) {
    return damaged(path, error.what());
  } catch (const Malformed& error) {
    return damaged(path, error.what());
  }
}

tl::unexpected<Error> damaged(const std::string& path, std::string_view why) {
  return fail(ErrorCode::unreadable,
              fmt::format("{}: is damaged ({}); restore it from a copy or load another "
                          "checkpoint by its tag",
                          path, why));
}

}  // namespace zeroproof
