#include "props/foreign/dump_reader.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <streambuf>

#include "props/foreign/flight_entry.h"
#include "props/foreign/kineto_event.h"
#include "props/foreign/pickle.h"
#include "sim/trace/byte_source.h"

namespace zeroproof {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kPeekedBytes = 64 << 10;
constexpr std::size_t kPickleBytesMax = std::size_t{1} << 30;
constexpr int kPickleDepthMax = 8;
constexpr std::size_t kPickleEntryValuesMax = 200'000;

struct Unreadable {
  std::string text;
};

// Bytes of a source as a stream, and what went wrong below.
class SourceBuffer final : public std::streambuf {
 public:
  explicit SourceBuffer(ByteSource& source) : source_(source) {}
  const std::string& error() const { return error_; }

 protected:
  int_type underflow() override {
    auto got = source_.read(bytes_);
    if (!got) error_ = got.error();
    if (!got || *got == 0) return traits_type::eof();
    setg(bytes_.data(), bytes_.data(), bytes_.data() + *got);
    return traits_type::to_int_type(bytes_.front());
  }

 private:
  ByteSource& source_;
  std::string error_;
  std::array<char, 1 << 16> bytes_ = {};
};

// Reads the document of one file: the elements of its long list are handed over and dropped.
class DumpParser {
 public:
  explicit DumpParser(RankDump& dump) : dump_(dump) {}

  void read_json(ByteSource& source) {
    SourceBuffer buffer(source);
    std::istream stream(&buffer);
    Json head;
    try {
      head = Json::parse(stream, [this](int depth, Json::parse_event_t event, Json& value) {
        return on_value(depth, event, value);
      });
    } catch (const Json::exception& fault) {
      throw Unreadable{buffer.error().empty() ? reason(fault) : buffer.error()};
    }
    if (!buffer.error().empty()) throw Unreadable{buffer.error()};
    if (source.is_cut_short()) throw Unreadable{"the gzip stream is cut short"};
    finish(head);
  }

  void read_pickle_bytes(std::string_view bytes) {
    const auto document = read_pickle(bytes);
    if (!document) throw Unreadable{document.error()};
    const PickleValue& root = document->values[document->root];
    if (root.kind != PickleKind::dict) throw Unreadable{"the pickle holds no dict"};
    Json head = Json::object();
    for (std::size_t at = 0; at + 1 < root.items.size(); at += 2) {
      const std::string_view key = document->values[root.items[at]].text;
      const PickleValue& value = document->values[root.items[at + 1]];
      if (key == "entries" && value.kind == PickleKind::list) {
        for (const std::uint32_t item : value.items) add_entry(as_json(*document, item));
      } else {
        head[printable(key)] = as_json(*document, root.items[at + 1]);
      }
    }
    finish(head);
  }

 private:
  // nlohmann's own words without its prefix and without the bytes, which may be anything.
  static std::string reason(const Json::exception& fault) {
    const std::string_view text = fault.what();
    const std::size_t begin = text.find("] ");
    const std::size_t end = text.find("; last read");
    return fmt::format(
        "no JSON: {}",
        text.substr(begin == std::string_view::npos ? 0 : begin + 2,
                    end == std::string_view::npos ? std::string_view::npos : end - begin - 2));
  }

  bool on_value(int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key && depth == 1) key_ = value.get<std::string>();
    if (event == Json::parse_event_t::array_start && depth == 0) is_bare_list_ = true;
    const bool is_element = depth == (is_bare_list_ ? 1 : 2);
    if (event != Json::parse_event_t::object_end || !is_element) return true;
    if (is_bare_list_ || key_ == "traceEvents") {
      ++dump_.events;
      kineto_.add(value);
      return false;
    }
    if (key_ != "entries") return true;
    add_entry(value);
    return false;
  }

  void add_entry(const Json& value) {
    auto entry = flight_entry(value);
    if (!entry) throw Unreadable{fmt::format("/entries/{}: {}", dump_.events, entry.error())};
    ++dump_.events;
    dump_.collectives.push_back(std::move(*entry));
  }

  void finish(const Json& head) {
    if (dump_.format == DumpFormat::kineto) {
      kineto_.finish(dump_);
      if (head.is_object()) take_kineto_head(head, dump_);
      return;
    }
    if (!head.is_object()) throw Unreadable{"no flight-recorder dump: the document is no object"};
    take_flight_head(head, dump_);
  }

  static std::string printable(std::string_view text) {
    return Json(text).dump(-1, ' ', true, Json::error_handler_t::replace).size() == text.size() + 2
               ? std::string(text)
               : std::string("?");
  }

  // Shared and self-containing values end at a depth and a number.
  Json as_json(const PickleDocument& document, std::uint32_t index) {
    values_left_ = kPickleEntryValuesMax;
    return as_json(document, index, kPickleDepthMax);
  }

  Json as_json(const PickleDocument& document, std::uint32_t index, int depth) {
    if (depth == 0 || values_left_ == 0)
      throw Unreadable{"a value of the pickle is nested too deeply"};
    --values_left_;
    const PickleValue& value = document.values[index];
    switch (value.kind) {
      case PickleKind::none:
        return nullptr;
      case PickleKind::boolean:
        return value.integer != 0;
      case PickleKind::integer:
        return value.integer;
      case PickleKind::number:
        return value.number;
      case PickleKind::text:
        return std::string(value.text);
      case PickleKind::list: {
        Json list = Json::array();
        for (const std::uint32_t item : value.items)
          list.push_back(as_json(document, item, depth - 1));
        return list;
      }
      case PickleKind::dict:
        break;
    }
    Json dict = Json::object();
    for (std::size_t at = 0; at + 1 < value.items.size(); at += 2) {
      const PickleValue& key = document.values[value.items[at]];
      const std::string name =
          key.kind == PickleKind::text ? std::string(key.text) : fmt::format("{}", key.integer);
      dict[name] = as_json(document, value.items[at + 1], depth - 1);
    }
    return dict;
  }

  RankDump& dump_;
  KinetoEvents kineto_;
  std::string key_;
  bool is_bare_list_ = false;
  std::size_t values_left_ = 0;
};

std::string read_all(ByteSource& source) {
  std::string bytes;
  std::array<char, 1 << 16> piece = {};
  for (;;) {
    const auto got = source.read(piece);
    if (!got) throw Unreadable{got.error()};
    if (*got == 0) return bytes;
    bytes.append(piece.data(), *got);
    if (bytes.size() > kPickleBytesMax) throw Unreadable{"the pickle is larger than 1 GiB"};
  }
}

Result<RankDump> read_dump(const std::string& path, DumpFormat format, ByteSource& source) {
  RankDump dump{.path = path, .format = format};
  try {
    DumpParser parser(dump);
    if (format == DumpFormat::flight_recorder_pickle)
      parser.read_pickle_bytes(read_all(source));
    else
      parser.read_json(source);
  } catch (const Unreadable& fault) {
    return fail(ErrorCode::unreadable, fmt::format("{}: {}; dump it again", path, fault.text));
  }
  if (dump.rank < 0) dump.rank = rank_in_name(path);
  return dump;
}

std::string first_bytes(ByteSource& source) {
  std::string bytes(kPeekedBytes, '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const auto got = source.read({bytes.data() + size, bytes.size() - size});
    if (!got || *got == 0) break;
    size += *got;
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::string_view dump_format_name(DumpFormat format) {
  constexpr std::array<std::string_view, 3> kNames = {"flight_recorder_json",
                                                      "flight_recorder_pickle", "kineto"};
  return kNames[static_cast<std::size_t>(format)];
}

std::optional<DumpFormat> dump_format_of(std::string_view first) {
  if (starts_like_pickle(first)) return DumpFormat::flight_recorder_pickle;
  const std::size_t begin = first.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || (first[begin] != '{' && first[begin] != '['))
    return std::nullopt;
  const auto has = [&](std::string_view word) {
    return first.find(word) != std::string_view::npos;
  };
  const std::string_view line = first.substr(begin, first.find('\n', begin) - begin);
  if (line.find("\"rec\"") != std::string_view::npos) return std::nullopt;  // hooktrace
  if (has("\"traceEvents\"") || (first[begin] == '[' && has("\"ph\""))) return DumpFormat::kineto;
  const bool is_flight = has("\"entries\"") || has("\"pg_config\"") ||
                         has("\"comm_lib_version\"") || has("\"nccl_version\"");
  return is_flight ? std::optional(DumpFormat::flight_recorder_json) : std::nullopt;
}

std::optional<DumpFormat> dump_format_of_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  auto source = open_file_source(path);
  return source ? dump_format_of(first_bytes(**source)) : std::nullopt;
}

Result<RankDump> read_rank_dump(const std::string& path) {
  const auto format = dump_format_of_file(path);
  auto source = open_file_source(path);
  if (!format || !source)
    return fail(
        ErrorCode::unreadable,
        fmt::format("{}: {}", path,
                    source ? "neither a flight-recorder dump nor a Kineto trace" : source.error()));
  return read_dump(path, *format, **source);
}

Result<RankDump> read_rank_dump_bytes(std::string_view bytes, const std::string& name) {
  auto peeked = open_memory_source(bytes);
  const auto format = peeked ? dump_format_of(first_bytes(**peeked)) : std::nullopt;
  auto source = open_memory_source(bytes);
  if (!format || !source)
    return fail(ErrorCode::unreadable,
                fmt::format("{}: neither a flight-recorder dump nor a Kineto trace", name));
  return read_dump(name, *format, **source);
}

std::int32_t rank_in_name(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto digits_at = [&](std::size_t begin) -> std::int32_t {
    std::int64_t value = -1;
    for (std::size_t at = begin; at < name.size() && name[at] >= '0' && name[at] <= '9'; ++at)
      value = std::max<std::int64_t>(value, 0) * 10 + (name[at] - '0');
    return value > 1'000'000 ? -1 : static_cast<std::int32_t>(value);
  };
  const std::size_t word = name.rfind("rank");
  if (word != std::string_view::npos) {
    const std::size_t begin = word + 4;
    const bool has_separator = begin < name.size() && (name[begin] == '_' || name[begin] == '-');
    const std::int32_t rank = digits_at(begin + (has_separator ? 1 : 0));
    if (rank >= 0) return rank;
  }
  const std::string_view stem = name.substr(0, name.find('.'));
  std::size_t begin = stem.size();
  while (begin > 0 && stem[begin - 1] >= '0' && stem[begin - 1] <= '9') --begin;
  return begin == stem.size() ? -1 : digits_at(begin);
}

}  // namespace zeroproof
