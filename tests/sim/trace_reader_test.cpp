#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/trace/gzip.h"
#include "sim/trace/line_reader.h"
#include "sim/trace/reader.h"
#include "tests/scratch_path.h"

namespace zeroproof {
namespace {

const std::string kHeader =
    R"({"rec":"header","format":"hooktrace","version":[1,0],"rank":0,"world":1,)"
    R"("clock":{"unit":"ns","mono0":1,"unix0":2}})"
    "\n";
const std::string kEnd = R"({"rec":"end","events":0,"records":0})"
                         "\n";

std::string event(const std::string& fields, int lc = 1) {
  return R"({"rec":"ev","lc":)" + std::to_string(lc) + R"(,"t":5,"r":0,"th":0,"gt":-1,"d":0,)" +
         fields + "}\n";
}

// Everything a file gives: its records, then either an error, a truncation or neither.
struct Outcome {
  std::size_t records = 0;
  std::vector<HookEvent> events;
  std::string error;
  std::string truncation;
};

Outcome drain(Result<TraceReader> reader) {
  Outcome out;
  while (reader) {
    const auto record = reader->next();
    if (!record) {
      out.error = record.error().text;
      EXPECT_EQ(record.error().code, ErrorCode::unreadable);
      EXPECT_EQ(reader->next().error().text, out.error) << "the fault must persist";
      return out;
    }
    if (*record == nullptr) {
      out.truncation = reader->truncation().value_or("");
      return out;
    }
    ++out.records;
    if (const HookEvent* event = (*record)->event()) out.events.push_back(*event);
  }
  EXPECT_EQ(reader.error().code, ErrorCode::unreadable);
  out.error = reader.error().text;
  return out;
}

Outcome read_bytes(const std::string& bytes, TraceReaderOptions options = {}) {
  NameTable names;
  return drain(TraceReader::from_bytes(bytes, "t.jsonl", names, options));
}

Outcome read_file(const std::string& path) {
  NameTable names;
  return drain(TraceReader::open(path, names));
}

std::string gzip(const std::string& bytes) {
  std::string out;
  GzipCompressor compressor;
  compressor.add(bytes, out);
  compressor.finish(out);
  return out;
}

std::string bundled(const std::string& name) {
  return ZP_SOURCE_DIR "/tests/traces/" + name;
}

// ---- what a correct trace gives ------------------------------------------------------------

TEST(TraceReader, Reads_every_bundled_trace_as_its_end_record_says) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(bundled(""))) {
    if (entry.path().string().find(".jsonl") == std::string::npos) continue;
    ++files;
    NameTable names;
    auto reader = TraceReader::open(entry.path(), names);
    ASSERT_TRUE(reader) << reader.error().text;
    std::uint64_t events = 0;
    std::uint64_t records = 0;
    EndRecord end;
    while (true) {
      const auto record = reader->next();
      ASSERT_TRUE(record) << record.error().text;
      if (*record == nullptr) break;
      if (const auto* last = std::get_if<EndRecord>(&(*record)->body)) end = *last;
      ++records;
      events += (*record)->event() != nullptr ? 1 : 0;
    }
    EXPECT_FALSE(reader->truncation()) << *reader->truncation();
    EXPECT_EQ(events, end.events) << entry.path();
    EXPECT_EQ(records, end.records + 2) << entry.path();
  }
  EXPECT_GE(files, 20);
}

TEST(TraceReader, Maps_a_manager_call_to_state_argument_and_result) {
  NameTable names;
  auto reader =
      TraceReader::open(bundled("manager-scripts/manager_pr7886_callback_1080.jsonl.gz"), names);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->header().policy, "pr7886");
  EXPECT_EQ(reader->header().mode, "graph_task_callback");
  EXPECT_EQ(reader->header().seed, 1080);
  int seen = 0;
  while (true) {
    const auto record = reader->next();
    ASSERT_TRUE(record);
    if (*record == nullptr) break;
    const HookEvent* event = (*record)->event();
    if (event == nullptr) continue;
    if (event->lc == 6) {
      EXPECT_EQ(event->kind, EventKind::bhs_return);
      EXPECT_EQ(names.text(event->name), "should_refresh_expected_hook_count");
      EXPECT_EQ(event->returned, true);
      ++seen;
    }
    if (event->lc != 10) continue;
    ASSERT_TRUE(event->manager);
    EXPECT_EQ(event->manager->post_hooks, 1);
    EXPECT_EQ(event->manager->hooks_fired, 1);
    EXPECT_EQ(event->manager->max_expected_hooks, 1);
    EXPECT_TRUE(event->manager->callback_graph_task.is_none());
    ++seen;
  }
  EXPECT_EQ(seen, 2);
}

TEST(TraceReader, Takes_fields_in_any_order_and_keeps_what_it_does_not_know) {
  const std::string line =
      R"({"future":{"a":[1,{"b":null}]},"label":7,"d":0,"gt":-1,"k":"next.kind","th":0,"r":0,)"
      R"("t":5,"lc":1,"rec":"ev","big":123456789012345678901234567890,"huge":1e999})";
  const std::string coll =
      R"({"cseq":3,"op":"all_reduce","async":true,"k":"coll.issue","d":0,"gt":4,"th":1,"r":0,)"
      R"("t":5,"lc":2,"rec":"ev","engine":1,"ft":[[1,"Grad"]]})";
  const std::string strange = R"({"rec":"from_1_7","x":1})";
  NameTable names;
  const std::string bytes = kHeader + line + "\n\n" + strange + "\n" + coll + "\r\n" + kEnd;
  auto reader = TraceReader::from_bytes(bytes, "t", names);
  ASSERT_TRUE(reader) << reader.error().text;
  ASSERT_TRUE(reader->next());
  const auto first = reader->next();
  ASSERT_TRUE(first) << first.error().text;
  EXPECT_EQ((*first)->line, line);
  EXPECT_EQ((*first)->event()->kind, EventKind::unknown);
  const auto second = reader->next();
  ASSERT_TRUE(second) << second.error().text;
  EXPECT_EQ(std::get<UnknownRecord>((*second)->body).type, "from_1_7");
  EXPECT_EQ((*second)->line_number, 4U);
  const auto third = reader->next();
  ASSERT_TRUE(third) << third.error().text;
  const HookEvent& issued = *(*third)->event();
  EXPECT_EQ(issued.kind, EventKind::coll_issue);
  EXPECT_EQ(issued.index, 3);
  EXPECT_EQ(issued.engine, EngineId{1});
  EXPECT_EQ(issued.transforms, 1);
  EXPECT_TRUE(issued.is_async);
  EXPECT_EQ(names.text(issued.name), "all_reduce");
}

TEST(TraceReader, Reads_a_graph_record_with_invalid_edges_and_inputs) {
  const std::string graph =
      R"({"rec":"graph","call":2,"roots":[[0,1],null],"accumulate":false,"inputs":[1,null],)"
      R"("nodes":[{"id":0,"name":"Mul","seq":9,"next":[[1,0],null,[null,0]]},)"
      R"({"id":1,"name":"AccumulateGrad","seq":-1,"next":[],"param":"w"}]})"
      "\n";
  NameTable names;
  const std::string bytes = kHeader + graph + kEnd;
  auto reader = TraceReader::from_bytes(bytes, "t", names);
  ASSERT_TRUE(reader && reader->next());
  const auto record = reader->next();
  ASSERT_TRUE(record) << record.error().text;
  const GraphSnapshot& snapshot = std::get<GraphRecord>((*record)->body).graph;
  EXPECT_EQ(snapshot.call, 2);
  EXPECT_FALSE(snapshot.accumulate);
  ASSERT_EQ(snapshot.roots.size(), 2U);
  EXPECT_EQ(snapshot.roots[0]->slot, 1);
  EXPECT_FALSE(snapshot.roots[1]);
  ASSERT_EQ(snapshot.nodes.size(), 2U);
  EXPECT_EQ(snapshot.nodes[0].sequence_nr, 9U);
  ASSERT_EQ(snapshot.nodes[0].next.size(), 3U);
  EXPECT_EQ(snapshot.nodes[0].next[0]->node, NodeId{1});
  EXPECT_FALSE(snapshot.nodes[0].next[1] || snapshot.nodes[0].next[2]);
  EXPECT_EQ(snapshot.nodes[1].sequence_nr, kAccumulateGradSequence);
  EXPECT_EQ(snapshot.nodes[1].param, "w");
  EXPECT_EQ(snapshot.inputs->size(), 2U);
}

TEST(TraceReader, Reads_plain_gzip_and_concatenated_gzip_alike) {
  const std::string text = kHeader + event(R"("k":"mark","label":"a")") + kEnd;
  const std::size_t middle = text.size() / 2;
  for (const std::string& bytes :
       {text, gzip(text), gzip(text.substr(0, middle)) + gzip(text.substr(middle))}) {
    const Outcome out = read_bytes(bytes);
    EXPECT_EQ(out.error + out.truncation, "");
    EXPECT_EQ(out.records, 3U);
  }
}

// ---- faults ----------------------------------------------------------------------------------

// A faulty line between a good event and the end: the event is delivered, the message names line 3.
struct Fault {
  const char* name;
  std::string line;
  const char* says;
};

class TraceReaderFault : public ::testing::TestWithParam<Fault> {};

TEST_P(TraceReaderFault, Is_one_clear_line_after_what_was_read) {
  const std::string before = kHeader + event(R"("k":"mark","label":"a")");
  for (const bool is_gzip : {false, true}) {
    const std::string text = before + GetParam().line + "\n" + kEnd;
    const Outcome out = read_bytes(is_gzip ? gzip(text) : text, {.max_line_bytes = 4096});
    EXPECT_EQ(out.records, 2U);
    EXPECT_EQ(out.error.rfind("t.jsonl:3: ", 0), 0U) << out.error;
    EXPECT_NE(out.error.find(GetParam().says), std::string::npos) << out.error;
    EXPECT_EQ(out.error.find('\n'), std::string::npos);
  }
}

std::string mark(const std::string& more) {
  std::string line = event(R"("k":"mark","label":"b")" + more, 2);
  line.pop_back();
  return line;
}

std::string nested(int depth) {
  return mark(R"(,"x":)" + std::string(depth, '[') + std::string(depth, ']'));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, TraceReaderFault,
    ::testing::Values(
        Fault{"cut_object", R"({"rec":"ev","lc":2)", "malformed JSON"},
        Fault{"missing_comma", R"({"rec":"note" "text":"x"})", "malformed JSON"},
        Fault{"trailing_bytes", mark("") + "x", "malformed JSON"},
        Fault{"two_objects", mark("") + mark(""), "malformed JSON"},
        Fault{"bad_number", mark(R"(,"x":01)"), "bad number"},
        Fault{"bad_word", mark(R"(,"x":nul)"), "malformed JSON"},
        Fault{"fault_in_unknown_field", mark(R"(,"x":[{"y":[1,,2]}])"), "malformed JSON"},
        Fault{"nan", mark(R"(,"x":NaN)"), "JSON has no NaN"},
        Fault{"minus_infinity", mark(R"(,"x":-Infinity)"), "JSON has no NaN"},
        Fault{"lone_surrogate", mark(R"(,"x":"\ud800")"), "lone surrogate"},
        Fault{"bad_escape", mark(R"(,"x":"\q")"), "bad escape"},
        Fault{"bad_escape_in_key", mark(R"(,"\q":1)"), "bad escape"},
        Fault{"invalid_utf8", mark(",\"x\":\"\xff\""), "invalid UTF-8"},
        Fault{"control_character", mark(",\"x\":\"\x01\""), "control character"},
        Fault{"open_string", R"({"rec":"note","text":"x)", "closing quote"},
        Fault{"deep_nesting", nested(200), "nested deeper"},
        Fault{"very_deep_nesting", nested(1900), "nested deeper"},
        Fault{"long_line", mark(R"(,"x":")" + std::string(5000, 'x') + '"'), "longer than 4096"},
        Fault{"array_line", "[1,2]", "not a JSON object"},
        Fault{"number_line", "17", "not a JSON object"},
        Fault{"no_rec", R"({"lc":2})", "lacks \"rec\""},
        Fault{"rec_is_number", R"({"rec":3})", "\"rec\" is 3"},
        Fault{"no_lc", R"({"rec":"ev","t":1,"r":0,"th":0,"k":"mark","gt":-1,"d":0,"label":"x"})",
              "lacks \"lc\""},
        Fault{"required_by_kind", event(R"("k":"bhs.call","state":{})", 2), "lacks \"method\""},
        Fault{"required_is_null", event(R"("k":"coll.issue","op":null,"cseq":1)", 2),
              "lacks \"op\""},
        Fault{"wrong_type", event(R"("k":"mark","label":7)", 2), "\"label\" is 7, expected a"},
        Fault{"wrong_optional_type", event(R"("k":"engine.call","method":"m","micro":"x")", 2),
              "\"micro\" is \"x\""},
        Fault{"wrong_element", event(R"("k":"zparam.partition","params":["a",3])", 2),
              "expected an array of strings"},
        Fault{"wrong_state",
              event(R"("k":"bhs.call","method":"m","state":{)"
                    R"("backward_active_depth":"one"})",
                    2),
              "\"backward_active_depth\" is \"one\""},
        Fault{"lc_zero", event(R"("k":"mark","label":"x")", 0), "\"lc\" is 0"},
        Fault{"lc_not_increasing", event(R"("k":"mark","label":"x")", 1), "lc 1 after lc 1"},
        Fault{"lc_too_large",
              R"({"rec":"ev","lc":18446744073709551616,"t":1,"r":0,"th":0,"k":"mark","gt":-1,)"
              R"("d":0,"label":"x"})",
              "\"lc\" is 18446744073709551616"},
        Fault{"thread_out_of_range",
              R"({"rec":"ev","lc":2,"t":1,"r":0,"th":4294967296,"k":"mark","gt":-1,"d":0,)"
              R"("label":"x"})",
              "\"th\" is 4294967296"},
        Fault{"second_header", kHeader.substr(0, kHeader.size() - 1), "second header"},
        Fault{"tensor_without_value", R"({"rec":"tensor","role":"grad","name":"w"})",
              "lacks \"value\""},
        Fault{"tensor_word", R"({"rec":"tensor","role":"grad","name":"w","value":["NaN"]})",
              "\"value\" is an array"},
        Fault{"tensor_too_large", R"({"rec":"tensor","role":"g","name":"w","value":[1e999]})",
              "\"value\" is an array"},
        Fault{"graph_edge", R"({"rec":"graph","call":0,"roots":[[0]],"nodes":[]})",
              "expected [node, slot]"},
        Fault{"graph_sequence",
              R"({"rec":"graph","call":0,"roots":[],"nodes":[)"
              R"({"id":0,"name":"n","seq":-2,"next":[]}]})",
              "seq -2"}),
    [](const auto& instance) { return std::string(instance.param.name); });

// Lines that cannot be the first.
TEST(TraceReader, Refuses_what_is_no_trace) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "t.jsonl:1: empty file"},
      {"\n\n", "t.jsonl:3: empty file"},
      {gzip(""), "t.jsonl:1: empty file"},
      {R"({"traceEvents":[]})", "t.jsonl:1: not a hooktrace file: record lacks \"rec\""},
      {"[\n1]\n", "t.jsonl:1: not a hooktrace file: the first line is not a JSON object"},
      {std::string("\x7f"
                   "ELF\x02\0\0\0",
                   8),
       "t.jsonl:1: not a hooktrace file"},
      {event(R"("k":"mark","label":"a")"), "t.jsonl:1: not a hooktrace file: its first record"},
      {R"({"rec":"header","format":"kineto","version":[1,0]})", "format is \"kineto\""},
      {R"({"rec":"header","format":"hooktrace","version":[2,3]})", "version 2.3 is not supported"},
      {R"({"rec":"header","format":"hooktrace","version":[1]})", "\"version\" is an array"},
      {R"({"rec":"header","format":"hooktrace","version":[1,0],"rank":0,"world":1})",
       "header lacks \"clock\""},
      {R"({"rec":"header","format":"hooktrace","version":[1,0],"rank":2,"world":2,)"
       R"("clock":{"unit":"ns","mono0":1,"unix0":2}})",
       "rank 2 of a world of 2"},
  };
  for (const auto& [bytes, says] : cases) {
    const Outcome out = read_bytes(bytes);
    EXPECT_EQ(out.records, 0U);
    EXPECT_NE(out.error.find(says), std::string::npos) << out.error;
  }
}

TEST(TraceReader, Refuses_records_after_the_end) {
  const Outcome out = read_bytes(kHeader + kEnd + event(R"("k":"mark","label":"a")"));
  EXPECT_EQ(out.records, 2U);
  EXPECT_EQ(out.error.rfind("t.jsonl:3: record after the end record", 0), 0U) << out.error;
}

TEST(TraceReader, Accepts_any_minor_version) {
  std::string header = kHeader;
  header.replace(header.find("[1,0]"), 5, "[1,9]");
  EXPECT_EQ(read_bytes(header + kEnd).error, "");
}

TEST(TraceReader, Calls_a_trace_without_its_end_truncated_at_every_cut) {
  const std::string text = kHeader + event(R"("k":"mark","label":"a")", 1) +
                           event(R"("k":"mark","label":"b")", 2) + kEnd;
  for (std::size_t size = kHeader.size(); size < text.size() - 1; ++size) {
    const Outcome out = read_bytes(text.substr(0, size));
    EXPECT_EQ(out.error, "") << size;
    EXPECT_NE(out.truncation.find("truncated: "), std::string::npos) << size;
    const auto lines =
        static_cast<std::size_t>(std::count(text.begin(), text.begin() + size, '\n'));
    EXPECT_GE(out.records, lines) << size;
  }
  EXPECT_EQ(read_bytes(text.substr(0, text.size() - 1)).truncation, "") << "newline is optional";
}

TEST(TraceReader, Delivers_what_a_cut_gzip_file_holds) {
  std::string text = kHeader;
  for (int lc = 1; lc <= 5000; ++lc) {
    text += event(R"("k":"mark","label":"m)" + std::to_string(lc * 7919 % 1000) + '"', lc);
  }
  const std::string packed = gzip(text + kEnd);
  const Outcome half = read_bytes(packed.substr(0, packed.size() / 2));
  EXPECT_GT(half.events.size(), 1000U);
  EXPECT_NE(half.truncation.find("truncated: "), std::string::npos);
  // All data but no trailer: no checksum vouches for the last bytes.
  const Outcome no_trailer = read_bytes(packed.substr(0, packed.size() - 8));
  EXPECT_EQ(no_trailer.events.size(), 5000U);
  EXPECT_NE(no_trailer.truncation.find("gzip"), std::string::npos);

  std::string damaged = packed;
  damaged[damaged.size() - 5] ^= 0x55;  // its checksum
  const Outcome bad = read_bytes(damaged);
  EXPECT_NE(bad.error.find("damaged gzip data"), std::string::npos) << bad.error;
  EXPECT_EQ(bad.events.size(), 5000U);
}

TEST(TraceReader, Names_files_that_cannot_be_read) {
  EXPECT_EQ(read_file("/nonexistent/a.jsonl").error,
            "/nonexistent/a.jsonl: cannot be opened: No such file or directory");
  EXPECT_NE(read_file(bundled("")).error.find("is a directory"), std::string::npos);
  if (::geteuid() == 0) return;  // root may read everything
  const std::string path = scratch_path("secret.jsonl");
  std::ofstream(path) << kHeader;
  ::chmod(path.c_str(), 0);
  EXPECT_NE(read_file(path).error.find("Permission denied"), std::string::npos);
  std::filesystem::remove(path);
}

class EndlessSource final : public ByteSource {
 public:
  explicit EndlessSource(std::size_t& given) : given_(given) {}
  tl::expected<std::size_t, std::string> read(std::span<char> out) override {
    std::fill(out.begin(), out.end(), 'x');
    given_ += out.size();
    return out.size();
  }

 private:
  std::size_t& given_;
};

TEST(LineReader, Takes_little_more_than_the_longest_allowed_line) {
  std::size_t given = 0;
  LineReader lines(std::make_unique<EndlessSource>(given), 1'000'000);
  EXPECT_FALSE(lines.next());
  EXPECT_LE(given, 2'100'000U);
}

// 10 GB of one line must not be held: the reader stops soon after its maximum.
TEST(TraceReader, Gives_up_on_an_endless_line) {
  NameTable names;
  const Outcome out = drain(TraceReader::open("/dev/zero", names));
  EXPECT_NE(out.error.find("line longer than 67108864 bytes"), std::string::npos) << out.error;
}

}  // namespace
}  // namespace zeroproof
