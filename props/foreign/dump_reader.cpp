#include "props/foreign/dump_reader.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "props/foreign/flight_entry.h"
#include "props/foreign/kineto_event.h"
#include "props/foreign/pickle.h"
#include "props/foreign/pickle_json.h"
#include "sim/trace/byte_source.h"
#include "sim/trace/json_document.h"
#include "sim/trace/parse_result.h"

namespace zeroproof {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kPeekedHeadBytes = 64 << 10;
constexpr std::size_t kPickleBytesMax = std::size_t{256} << 20;
constexpr std::array<std::string_view, 5> kHeadKeys = {"version", "rank", "pg_config", "pg_status",
                                                       "distributedInfo"};

bool is_head_key(std::string_view key) {
  return std::find(kHeadKeys.begin(), kHeadKeys.end(), key) != kHeadKeys.end();
}

// Takes the parts of a dump's document; texts it returns are errors.
class DumpSink final : public JsonDocumentSink {
 public:
  explicit DumpSink(RankDump& dump) : dump_(dump), flight_(dump), kineto_(dump) {}

  JsonMember wanted(std::string_view key) override {
    if (key == list_key()) return JsonMember::elements;
    return is_head_key(key) ? JsonMember::whole : JsonMember::skipped;
  }

  std::string on_value(std::string_view key, std::string_view text) override {
    Json value = Json::parse(text, nullptr, false);
    if (value.is_discarded()) return fmt::format("{}: no JSON", printable(key));
    return take_member(key, std::move(value));
  }

  std::string on_element(std::string_view, std::string_view text) override {
    if (is_kineto() && !KinetoEvents::is_of_interest(text)) {
      ++dump_.events;
      return {};
    }
    const Json value = Json::parse(text, nullptr, false);
    if (value.is_discarded()) return place() + ": no JSON";
    return take_element(value);
  }

  std::string take_member(std::string_view key, Json value) {
    if (key != list_key()) head_[std::string(key)] = std::move(value);
    return {};
  }

  std::string take_element(const Json& value) {
    auto taken = is_kineto() ? kineto_.add(value) : flight_.add(value);
    if (!taken) return fmt::format("{}: {}", place(), taken.error());
    ++dump_.events;
    return {};
  }

  std::string finish() {
    const auto finished = is_kineto() ? kineto_.finish(head_) : flight_.finish(head_);
    return finished ? std::string() : finished.error();
  }

  std::string_view list_key() const { return is_kineto() ? "traceEvents" : "entries"; }

 private:
  bool is_kineto() const { return dump_.format == DumpFormat::kineto; }
  std::string place() const { return fmt::format("/{}/{}", list_key(), dump_.events); }

  RankDump& dump_;
  FlightEntries flight_;
  KinetoEvents kineto_;
  Json head_ = Json::object();
};

tl::expected<std::string, std::string> read_all(ByteSource& source) {
  std::string bytes;
  std::array<char, 1 << 16> piece = {};
  for (;;) {
    const auto got = source.read(piece);
    if (!got) return tl::unexpected(got.error());
    if (*got == 0) return bytes;
    bytes.append(piece.data(), *got);
    if (bytes.size() > kPickleBytesMax)
      return tl::unexpected(
          fmt::format("the pickle is longer than {} bytes, which is the limit", kPickleBytesMax));
  }
}

std::string read_pickle_document(ByteSource& source, DumpSink& sink) {
  const auto bytes = read_all(source);
  if (!bytes) return bytes.error();
  const auto document = read_pickle(*bytes);
  if (!document) return document.error();
  const PickleValue& root = document->values[document->root];
  if (root.kind != PickleKind::dict) return "the pickle holds no dict";
  const std::span<const std::uint32_t> members = document->items(root);
  for (std::size_t at = 0; at + 1 < members.size(); at += 2) {
    const std::string_view key = document->text(document->values[members[at]]);
    const PickleValue& value = document->values[members[at + 1]];
    const bool is_list = key == sink.list_key() && value.kind == PickleKind::list;
    if (!is_list && sink.wanted(key) == JsonMember::skipped) continue;
    const auto one = members.subspan(at + 1, 1);
    for (const std::uint32_t item : is_list ? document->items(value) : one) {
      auto converted = pickle_json(*document, item);
      if (!converted) return converted.error();
      std::string fault =
          is_list ? sink.take_element(*converted) : sink.take_member(key, std::move(*converted));
      if (!fault.empty()) return fault;
    }
  }
  return {};
}

std::string read_document(ByteSource& source, RankDump& dump) {
  DumpSink sink(dump);
  std::string fault;
  if (dump.format == DumpFormat::flight_recorder_pickle) {
    fault = read_pickle_document(source, sink);
    if (fault.empty() && source.is_cut_short()) fault = "the gzip stream is cut short";
  } else if (const auto end = read_json_document(source, sink)) {
    dump.is_truncated = end->is_truncated || source.is_cut_short();
  } else {
    fault = end.error();
  }
  return fault.empty() ? sink.finish() : fault;
}

Result<RankDump> read_dump(const std::string& path, DumpFormat format, ByteSource& source,
                           std::shared_ptr<DumpWords> words) {
  RankDump dump{.path = path, .format = format, .rank = rank_in_name(path)};
  dump.words = words ? std::move(words) : std::make_shared<DumpWords>();
  const std::string fault = read_document(source, dump);
  if (fault.empty()) return dump;
  return fail(ErrorCode::unreadable, fmt::format("{}: {}; dump it again", path, fault));
}

tl::unexpected<Error> no_dump(const std::string& path) {
  return fail(ErrorCode::unreadable,
              fmt::format("{}: neither a flight-recorder dump nor a Kineto trace", path));
}

}  // namespace

Result<RankDump> read_rank_dump(const std::string& path, std::shared_ptr<DumpWords> words) {
  const auto format = dump_format_of_file(path);
  auto source = open_file_source(path);
  if (!source) return fail(ErrorCode::unreadable, fmt::format("{}: {}", path, source.error()));
  if (!format) return no_dump(path);
  return read_dump(path, *format, **source, std::move(words));
}

Result<RankDump> read_rank_dump_bytes(std::string_view bytes, const std::string& name) {
  auto peeked = open_memory_source(bytes);
  std::string first(kPeekedHeadBytes, '\0');
  std::size_t size = 0;
  while (peeked && size < first.size()) {
    const auto got = (*peeked)->read({first.data() + size, first.size() - size});
    if (!got || *got == 0) break;
    size += *got;
  }
  const auto format = dump_format_of(std::string_view(first).substr(0, size));
  auto source = open_memory_source(bytes);
  if (!format || !source) return no_dump(name);
  return read_dump(name, *format, **source, nullptr);
}

}  // namespace zeroproof
