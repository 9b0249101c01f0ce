// `zeroproof convert`: a trace in another form.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/files/atomic_file.h"
#include "props/cli/verb.h"
#include "props/foreign/dump_format.h"
#include "props/report/json_values.h"
#include "sim/trace/gzip.h"
#include "sim/trace/perfetto.h"
#include "sim/trace/reader.h"
#include "sim/trace/writer.h"

namespace zeroproof {
namespace {

using OrderedJson = nlohmann::ordered_json;

bool is_perfetto_name(std::string_view path) {
  for (const std::string_view end : {".perfetto.json", ".chrome.json"}) {
    if (path.ends_with(end) || path.ends_with(std::string(end) + ".gz")) return true;
  }
  return false;
}

// A file that is compressed when its name ends in ".gz".
class DocumentFile {
 public:
  static Result<DocumentFile> create(const std::string& path) {
    auto file = AtomicFile::create(path);
    if (!file) return tl::unexpected(file.error());
    return DocumentFile(std::move(*file), path.ends_with(".gz"));
  }

  Result<void> write(std::string_view text) {
    if (!gzip_) return file_.write(text);
    gzip_->add(text, compressed_);
    return flush();
  }

  Result<void> commit() {
    if (gzip_) {
      gzip_->finish(compressed_);
      if (auto written = flush(); !written) return written;
    }
    return file_.commit();
  }

 private:
  DocumentFile(AtomicFile file, bool is_compressed)
      : file_(std::move(file)),
        gzip_(is_compressed ? std::make_unique<GzipCompressor>() : nullptr) {}

  Result<void> flush() {
    auto written = file_.write(compressed_);
    compressed_.clear();
    return written;
  }

  AtomicFile file_;
  std::unique_ptr<GzipCompressor> gzip_;
  std::string compressed_;
};

class ConvertVerb final : public Verb {
 public:
  void declare(Flags& flags) override {
    flags.add_words(words_,
                    {"FILE", "traces to read, then the file to write; a name *.gz is compressed"});
    flags.add_value("to", to_,
                    {"FORM",
                     "hooktrace or perfetto (default: by the name of the last file)",
                     {"hooktrace", "perfetto"}});
  }

  Result<VerbResult> run(Session&) override {
    if (words_.size() < 2) {
      return fail(ErrorCode::usage, "convert: name a trace to read and a file to write");
    }
    output_ = words_.back();
    words_.pop_back();
    for (const std::string& word : words_)
      if (auto dump = refuse_dump(word); !dump) return tl::unexpected(dump.error());
    const bool is_perfetto = to_.empty() ? is_perfetto_name(output_) : to_ == "perfetto";
    if (!is_perfetto && words_.size() > 1) {
      return fail(ErrorCode::usage,
                  "convert: several traces make one file only with --to perfetto");
    }
    if (auto done = is_perfetto ? write_perfetto() : write_hooktrace(); !done) {
      return tl::unexpected(done.error());
    }
    return VerbResult{
        .text = [this] { return fmt::format("{}: {} events\n", output_, events_); },
        .json =
            [this, is_perfetto] {
              return document_text<OrderedJson>({{"schema", "zeroproof.convert/1"},
                                                 {"inputs", words_},
                                                 {"output", output_},
                                                 {"form", is_perfetto ? "perfetto" : "hooktrace"},
                                                 {"events", events_},
                                                 {"unfinished", unfinished_}});
            }};
  }

 private:
  Result<void> write_perfetto() {
    NameTable names;
    auto readers = open_traces(words_, names);
    if (!readers) return tl::unexpected(readers.error());
    auto file = DocumentFile::create(output_);
    if (!file) return tl::unexpected(file.error());
    const auto counts = export_perfetto(*readers, names,
                                        [&](std::string_view piece) { return file->write(piece); });
    if (!counts) return tl::unexpected(counts.error());
    events_ = counts->events;
    unfinished_ = counts->unfinished;
    return file->commit();
  }

  // Line by line, so that records and fields of later minor versions survive.
  Result<void> write_hooktrace() {
    NameTable names;
    auto reader = TraceReader::open(words_.front(), names);
    if (!reader) return tl::unexpected(reader.error());
    auto writer = TraceWriter::create(output_);
    if (!writer) return tl::unexpected(writer.error());
    for (;;) {
      const auto record = reader->next();
      if (!record) return tl::unexpected(record.error());
      if (*record == nullptr) break;
      if ((*record)->event() != nullptr) ++events_;
      if (auto passed = writer->pass(**record); !passed) return passed;
    }
    if (reader->truncation()) return fail(ErrorCode::unreadable, *reader->truncation());
    return writer->finish();
  }

  std::vector<std::string> words_;
  std::string to_;
  std::string output_;
  std::uint64_t events_ = 0;
  std::uint64_t unfinished_ = 0;
};

}  // namespace

std::unique_ptr<Verb> make_convert() {
  return std::make_unique<ConvertVerb>();
}

}  // namespace zeroproof
