#include "sim/trace/reader.h"

#include <fmt/format.h>

#include "sim/trace/byte_source.h"
#include "sim/trace/line_reader.h"
#include "sim/trace/record_order.h"
#include "sim/trace/record_parser.h"

namespace zeroproof {
namespace {

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

constexpr const char* kNoTrace = "not a hooktrace file: ";

}  // namespace

struct TraceReader::State {
  State(std::string name, std::unique_ptr<ByteSource> source, NameTable& names,
        TraceReaderOptions options)
      : path(std::move(name)), lines(std::move(source), options.max_line_bytes), parser(names) {}

  std::string path;
  LineReader lines;
  RecordParser parser;
  Record record;
  HeaderRecord header;
  bool is_header_due = false;  // read by `open`, not yet returned by `next`
  RecordOrder order;
  bool is_finished = false;
  std::uint64_t line_number = 0;
  std::optional<Error> error;
  std::optional<std::string> truncation;

  Result<const Record*> advance();
  Result<const Record*> accept(std::string_view line);
  Result<const Record*> finish();
  tl::unexpected<Error> refuse(std::string_view what);
  void cut(std::string_view what);
};

tl::unexpected<Error> TraceReader::State::refuse(std::string_view what) {
  error = Error{ErrorCode::unreadable, fmt::format("{}:{}: {}", path, line_number, what)};
  return tl::unexpected(*error);
}

void TraceReader::State::cut(std::string_view what) {
  is_finished = true;
  truncation = truncation_text(fmt::format("{}:{}", path, line_number), what);
}

Result<const Record*> TraceReader::State::advance() {
  while (!is_finished) {
    if (error) return tl::unexpected(*error);
    ++line_number;
    const auto line = lines.next();
    if (!line) return refuse(line.error());
    if (!line->has_value()) return finish();
    const std::string_view text = (*line)->text;
    if (is_blank(text)) continue;
    if (!order.has_header() && text.find_first_not_of(" \t\r") != text.find('{')) {
      return refuse(std::string(kNoTrace) + "the first line is not a JSON object");
    }
    auto accepted = accept(text);
    // A last line that lacks its newline and its end was cut while being written.
    if (!accepted && order.has_header() && !(*line)->is_terminated && !parser.was_json()) {
      error.reset();
      cut("the last line is incomplete");
      return nullptr;
    }
    return accepted;
  }
  return nullptr;
}

Result<const Record*> TraceReader::State::accept(std::string_view line) {
  record.line = line;
  record.line_number = line_number;
  const ParseResult parsed = parser.parse(line, record);
  if (!parsed) return refuse(order.has_header() ? parsed.error() : kNoTrace + parsed.error());
  const ParseResult admitted = order.admit(record);
  if (!admitted) return refuse(admitted.error());
  return &record;
}

Result<const Record*> TraceReader::State::finish() {
  if (!order.has_header()) return refuse("empty file; a trace starts with a header record");
  if (lines.is_cut_short()) {
    cut("the gzip data stops early");
  } else if (!order.has_end()) {
    cut("no end record");
  }
  is_finished = true;
  return nullptr;
}

namespace {

Error unreadable(const std::string& path, const std::string& what) {
  return {ErrorCode::unreadable, fmt::format("{}: {}", path, what)};
}

}  // namespace

TraceReader::TraceReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;
TraceReader::~TraceReader() = default;

Result<TraceReader> TraceReader::start(std::unique_ptr<State> state) {
  const auto first = state->advance();
  if (!first) return tl::unexpected(first.error());
  state->header = std::get<HeaderRecord>(state->record.body);
  state->is_header_due = true;
  return TraceReader(std::move(state));
}

Result<TraceReader> TraceReader::open(const std::string& path, NameTable& names,
                                      TraceReaderOptions options) {
  auto source = open_file_source(path);
  if (!source) return tl::unexpected(unreadable(path, source.error()));
  return start(std::make_unique<State>(path, std::move(*source), names, options));
}

Result<TraceReader> TraceReader::from_bytes(std::string_view bytes, std::string name,
                                            NameTable& names, TraceReaderOptions options) {
  auto source = open_memory_source(bytes);
  if (!source) return tl::unexpected(unreadable(name, source.error()));
  return start(std::make_unique<State>(std::move(name), std::move(*source), names, options));
}

const std::string& TraceReader::path() const {
  return state_->path;
}
const HeaderRecord& TraceReader::header() const {
  return state_->header;
}

Result<const Record*> TraceReader::next() {
  if (state_->is_header_due) {
    state_->is_header_due = false;
    return &state_->record;
  }
  return state_->advance();
}

const std::optional<std::string>& TraceReader::truncation() const {
  return state_->truncation;
}

}  // namespace zeroproof
