#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/checkpoint/checksum.h"
#include "engine/checkpoint/manifest.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// What the files of JSON in a checkpoint have in common.

// Found by the readers below; becomes an error that names the file.
class Malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The largest that a double holds exactly: sums of a few are no overflow.
inline constexpr std::int64_t kLargestNumber = std::int64_t{1} << 53;

// A whole number from `least` on.
std::int64_t read_number(const nlohmann::json& value, std::int64_t least = 0);
std::string read_name(const nlohmann::json& value);
Shape read_shape(const nlohmann::json& value);
FileRecord read_file_record(const nlohmann::json& value);
nlohmann::json to_json(const FileRecord& file);
// None: more than `most`.
std::optional<std::int64_t> elements_within(const Shape& sizes, std::int64_t most);

tl::unexpected<Error> other_schema(const std::string& path, std::string_view found,
                                   std::string_view wanted);

// Checksum, then schema, then what `read` makes of it.
template <class Read>
auto parse_sealed(std::string_view text, const std::string& path, std::string_view schema,
                  const Read& read) -> Result<decltype(read(nlohmann::json()))> {
  std::string_view line;
  if (!unseal(text, line)) return damaged(path, "its checksum does not match");
  try {
    const auto value = nlohmann::json::parse(line);
    const auto found = value.at("schema").template get<std::string>();
    if (found == schema) return read(value);
    return other_schema(path, found, schema);
  } catch (const nlohmann::json::exception& error) {
    return damaged(path, error.what());
  } catch (const Malformed& error) {
    return damaged(path, error.what());
  }
}

}  // namespace zeroproof
