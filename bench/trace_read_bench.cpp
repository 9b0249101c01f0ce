#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/check.h"
#include "sim/trace/reader.h"
#include "sim/trace/writer.h"

namespace zeroproof {
namespace {

namespace fs = std::filesystem;

// The event lines of the bundled traces, from "lc":N on without that field: what a real job
// records, hook state objects included.
struct RecordedLines {
  HeaderRecord header;
  std::vector<std::string> tails;
};

const RecordedLines& recorded_lines() {
  static const RecordedLines kLines = [] {
    RecordedLines out;
    const fs::path traces = fs::path(ZP_SOURCE_DIR) / "tests/traces";
    std::vector<fs::path> paths;
    for (const auto& entry : fs::recursive_directory_iterator(traces)) {
      if (entry.path().string().find(".jsonl") != std::string::npos) paths.push_back(entry);
    }
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) {
      NameTable names;
      auto reader = TraceReader::open(path, names);
      ZP_CHECK(reader.has_value(), "a bundled trace: " + reader.error().text);
      out.header = reader->header();
      while (true) {
        const auto record = reader->next();
        ZP_CHECK(record.has_value(), "a bundled trace: " + record.error().text);
        if (*record == nullptr) break;
        if ((*record)->event() == nullptr) continue;
        const std::string_view line = (*record)->line;
        const std::size_t lc = line.find("\"lc\":");
        out.tails.emplace_back(line.substr(line.find(',', lc)));
      }
    }
    out.header.rank = 0;
    out.header.world = 64;
    return out;
  }();
  return kLines;
}

// A trace of `events` recorded lines with new logical clocks, removed at exit.
class LongTrace {
 public:
  LongTrace(std::int64_t events, const std::string& suffix)
      : path_(fs::temp_directory_path() /
              fmt::format("zeroproof_bench_{}_{}.{}", ::getpid(), events, suffix)) {
    auto writer = TraceWriter::create(path_);
    ZP_CHECK(writer.has_value(), writer.error().text);
    ZP_CHECK(writer->add(recorded_lines().header).has_value(), "disk full");
    const std::vector<std::string>& tails = recorded_lines().tails;
    Record record;
    std::string line;
    for (std::int64_t lc = 1; lc <= events; ++lc) {
      const std::size_t at = static_cast<std::size_t>(lc) % tails.size();
      line = fmt::format("{{\"rec\":\"ev\",\"lc\":{}{}", lc, tails[at]);
      record.line = line;
      ZP_CHECK(writer->pass(record).has_value(), "disk full");
    }
    ZP_CHECK(writer->finish().has_value(), "disk full");
  }
  ~LongTrace() { fs::remove(path_); }
  LongTrace(const LongTrace&) = delete;
  LongTrace& operator=(const LongTrace&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::int64_t read_events(const fs::path& path) {
  NameTable names;
  auto reader = TraceReader::open(path, names);
  ZP_CHECK(reader.has_value(), reader.error().text);
  std::int64_t events = 0;
  while (true) {
    const auto record = reader->next();
    ZP_CHECK(record.has_value(), record.error().text);
    if (*record == nullptr) return events;
    if ((*record)->event() != nullptr) ++events;
  }
}

long peak_kb() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// events_per_s on one core. peak_growth_kb: by how much the process's peak memory grows between
// reading a tenth of the events and all of them; more than 1 MB fails the benchmark.
void BM_TraceRead(benchmark::State& state, const char* suffix) {
  const std::int64_t events = state.range(0);
  const LongTrace trace(events, suffix);
  {
    const LongTrace tenth(events / 10, suffix);
    read_events(tenth.path());
  }
  const long before_kb = peak_kb();
  for (auto _ : state) benchmark::DoNotOptimize(read_events(trace.path()));
  const long growth_kb = peak_kb() - before_kb;
  if (growth_kb > 1024) state.SkipWithError("peak memory depends on the length of the trace");
  const auto total = static_cast<double>(events * static_cast<std::int64_t>(state.iterations()));
  state.counters["events_per_s"] = benchmark::Counter(total, benchmark::Counter::kIsRate);
  state.counters["peak_growth_kb"] = static_cast<double>(growth_kb);
  const auto bytes = static_cast<double>(fs::file_size(trace.path()));
  state.counters["file_bytes_per_event"] = bytes / static_cast<double>(events);
}

BENCHMARK_CAPTURE(BM_TraceRead, plain, "jsonl")->Arg(250'000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_TraceRead, gzip, "jsonl.gz")->Arg(250'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace zeroproof
