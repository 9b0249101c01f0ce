#include "sim/trace/writer.h"

#include <optional>

#include "engine/files/atomic_file.h"
#include "model/check.h"
#include "sim/trace/gzip.h"
#include "sim/trace/record_json.h"

namespace zeroproof {
namespace {

constexpr std::size_t kFlushBytes = std::size_t{256} * 1024;

}  // namespace

struct TraceWriter::State {
  explicit State(AtomicFile out) : file(std::move(out)) {}

  AtomicFile file;
  std::optional<GzipCompressor> gzip;
  std::string text;    // lines not yet written
  std::string packed;  // the same, compressed
  EndRecord counts;
  bool has_header = false;
  bool has_end = false;

  void count(bool is_event) {
    ZP_CHECK(has_header && !has_end, "a record before the header or after the end");
    ++counts.records;
    if (is_event) ++counts.events;
  }

  Result<void> flush(bool is_last) {
    if (!is_last && text.size() < kFlushBytes) return {};
    if (gzip) {
      gzip->add(text, packed);
      if (is_last) gzip->finish(packed);
    } else {
      packed.swap(text);
    }
    text.clear();
    Result<void> written = file.write(packed);
    packed.clear();
    return written;
  }
};

TraceWriter::TraceWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
TraceWriter::TraceWriter(TraceWriter&&) noexcept = default;
TraceWriter& TraceWriter::operator=(TraceWriter&&) noexcept = default;
TraceWriter::~TraceWriter() = default;

Result<TraceWriter> TraceWriter::create(const std::string& path) {
  auto file = AtomicFile::create(path);
  if (!file) return tl::unexpected(file.error());
  auto state = std::make_unique<State>(std::move(*file));
  if (path.ends_with(".gz")) state->gzip.emplace();
  return TraceWriter(std::move(state));
}

template <class T>
Result<void> TraceWriter::add_record(const T& record) {
  state_->count(false);
  append_json_line(record, state_->text);
  return state_->flush(false);
}

Result<void> TraceWriter::add(const HeaderRecord& record) {
  ZP_CHECK(!state_->has_header, "a second header");
  state_->has_header = true;
  append_json_line(record, state_->text);
  return state_->flush(false);
}

Result<void> TraceWriter::add(const ThreadRecord& record) {
  return add_record(record);
}
Result<void> TraceWriter::add(const ParamRecord& record) {
  return add_record(record);
}
Result<void> TraceWriter::add(const TensorRecord& record) {
  return add_record(record);
}
Result<void> TraceWriter::add(const GroupRecord& record) {
  return add_record(record);
}
Result<void> TraceWriter::add(const GraphRecord& record) {
  return add_record(record);
}
Result<void> TraceWriter::add(const NoteRecord& record) {
  return add_record(record);
}

Result<void> TraceWriter::add(const HookEvent& event, const NameTable& names) {
  state_->count(true);
  append_json_line(event, names, state_->text);
  return state_->flush(false);
}

Result<void> TraceWriter::pass(const Record& record) {
  if (std::holds_alternative<HeaderRecord>(record.body)) {
    ZP_CHECK(!state_->has_header, "a second header");
    state_->has_header = true;
  } else if (std::holds_alternative<EndRecord>(record.body)) {
    ZP_CHECK(state_->has_header && !state_->has_end, "a second end");
    state_->has_end = true;
  } else {
    state_->count(record.event() != nullptr);
  }
  state_->text += record.line;
  state_->text += '\n';
  return state_->flush(false);
}

Result<void> TraceWriter::finish() {
  ZP_CHECK(state_->has_header, "a trace without header");
  if (!state_->has_end) append_json_line(state_->counts, state_->text);
  if (auto written = state_->flush(true); !written) return written;
  return state_->file.commit();
}

}  // namespace zeroproof
