#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "model/check.h"
#include "sim/trace/event_fields.h"
#include "sim/trace/json_text.h"
#include "sim/trace/reader.h"
#include "sim/trace/record_json.h"
#include "sim/trace/writer.h"
#include "tests/scratch_path.h"

namespace zeroproof {
namespace {

namespace fs = std::filesystem;
using F = EventField;

// ---- random records --------------------------------------------------------------------------

// Text with everything JSON must escape; valid UTF-8, since other bytes cannot survive.
std::string any_text() {
  static const std::vector<std::string> kPieces = {
      "a", "b.weight", "\"", "\\", "\n", "\x01", "\x7f", "ö", "𝄞", "/", "\xe2\x80\xa8"};
  std::string out;
  for (const auto& piece :
       *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kPieces)))
    out += piece;
  return out;
}

// Optional text members do not distinguish empty from absent.
std::string some_text() {
  return "x" + any_text();
}

double any_double() {
  using Limits = std::numeric_limits<double>;
  return *rc::gen::oneOf(rc::gen::arbitrary<double>(),
                         rc::gen::element(0.0, -0.0, 0.1, 1e300, 5e-324, 3.0, Limits::max(),
                                          Limits::infinity(), -Limits::infinity()));
}

template <class T>
T any(T low, T high) {
  return *rc::gen::inRange<T>(low, high);
}

bool maybe() {
  return *rc::gen::arbitrary<bool>();
}

std::int64_t any_count() {
  return maybe() ? any<std::int64_t>(0, 1LL << 60) : any<std::int64_t>(0, 9);
}

std::vector<std::int64_t> any_shape() {
  return *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 99));
}

HeaderRecord any_header() {
  HeaderRecord out;
  out.version = {1, any<std::int64_t>(0, 9)};
  out.world = any(1, 9);
  out.rank = any(0, out.world);
  out.clock = {any_text(), any_count(), any_count()};
  out.program = any_text();
  out.description = any_text();
  out.dtype = any_text();
  out.policy = any_text();
  out.mode = any_text();
  if (maybe()) out.seed = any_count();
  if (maybe()) out.stage = any<std::int64_t>(0, 4);
  if (maybe()) out.is_match = maybe();
  for (int i = any(0, 3); i > 0; --i) {
    out.expect.push_back(any_text());
    out.notes.push_back(any_text());
    out.checks.push_back({any_text(), maybe(), any_text()});
    out.producer.emplace_back(any_text(), maybe() ? std::optional(any_text()) : std::nullopt);
  }
  return out;
}

std::vector<std::optional<GraphEdge>> any_edges() {
  std::vector<std::optional<GraphEdge>> out(any<std::size_t>(0, 4));
  for (auto& edge : out) {
    if (maybe()) edge = GraphEdge{NodeId{any<std::int64_t>(0, 50)}, any(0, 3)};
  }
  return out;
}

GraphRecord any_graph() {
  GraphSnapshot out;
  out.call = any_count();
  out.roots = any_edges();
  out.accumulate = maybe();
  out.is_opaque = maybe();
  if (maybe()) {
    out.inputs.emplace(any<std::size_t>(0, 3));
    for (auto& input : *out.inputs) {
      if (maybe()) input = NodeId{any_count()};
    }
  }
  for (int i = any(0, 4); i > 0; --i) {
    GraphNode& node = out.nodes.emplace_back();
    node.id = NodeId{any_count()};
    node.name = any_text();
    node.next = any_edges();
    node.param = any_text();
    if (maybe()) node.sequence_nr = static_cast<std::uint64_t>(any_count());
  }
  return {out};
}

TensorRecord any_tensor() {
  TensorRecord out;
  out.role = any_text();
  out.name = any_text();
  out.dtype = *rc::gen::element<std::string>("float64", "int64", "");
  if (maybe()) out.shape = any_shape();
  if (maybe()) {
    out.values.emplace(any<std::size_t>(0, 5));
    for (double& value : *out.values) value = any_double();
  }
  return out;
}

BackwardState any_manager() {
  BackwardState out;
  out.remaining_hooks = any(-9, 9);
  out.post_hooks = any(0, 9);
  out.active_depth = any(-9, 9);
  out.is_backward_seen_this_step = maybe();
  out.ran_epilogue_this_backward = maybe();
  out.hooks_fired = any(0, 1 << 30);
  out.max_expected_hooks = any(0, 9);
  out.is_callback_queued = maybe();
  if (maybe()) out.callback_graph_task.value = any_count();
  return out;
}

// An event of any kind with what that kind requires and some of what it allows.
HookEvent any_event(NameTable& names, std::uint64_t lc) {
  HookEvent out;
  out.kind = static_cast<EventKind>(any(0, static_cast<int>(EventKind::mark) + 1));
  const EventShape& shape = event_shape(out.kind);
  const auto has = [&shape](F field) {
    return (shape.required & bit(field)) != 0 || ((shape.optional & bit(field)) != 0 && maybe());
  };
  const auto name = [&] { return names.intern(any_text()); };
  out.lc = lc;
  out.time_ns = any_count();
  out.rank = any(0, 4);
  out.thread = any(0, 4);
  out.depth = any(0, 4);
  out.transforms = any(0, 3);
  if (maybe()) out.graph_task.value = any_count();
  if (maybe()) out.engine.value = any(0, 3);
  if (shape.name != F::none && has(shape.name)) out.name = name();
  if (has(F::param)) out.param = name();
  if (has(F::group)) out.group = name();
  if (has(F::message)) out.message = name();
  if (has(F::exc)) out.exception = names.intern(maybe() ? some_text() : "true");
  if (has(F::params)) out.params = {name(), name()};
  if (has(F::call)) out.call = any_count();
  if (has(F::parent)) out.parent_call = any_count();
  if (has(F::micro)) out.micro_step = any_count();
  if (has(F::gstep)) out.global_step = any_count();
  if (has(F::node)) out.node = any_count();
  if (shape.index != F::none && has(shape.index)) out.index = any_count();
  if (has(F::numel) || has(F::live_numel)) out.numel = any_count();
  if (has(F::bytes)) out.bytes = any_count();
  out.is_forward = has(F::forward);
  out.is_async = has(F::async_op);
  out.is_enabled = has(F::enabled) && maybe();
  out.is_recompute = has(F::recompute);
  out.is_early_stop = has(F::early_stop);
  out.is_grad_none = has(F::none_grad) || has(F::grad_none);
  out.is_persistent = has(F::persist);
  if (has(F::active)) out.active_modules = any(0, 9);
  if (has(F::state)) out.manager = any_manager();
  if (has(F::args)) out.argument = any_count();
  if (has(F::ret)) out.returned = maybe();
  if (has(F::peer)) out.peer = any(0, 9);
  if (has(F::root)) out.root = any(0, 9);
  if (has(F::optimizer)) out.optimizer = any(0, 9);
  if (has(F::grads)) out.grads = any(0, 99);
  out.is_closure = has(F::closure);
  out.is_uncaught = has(F::uncaught);
  return out;
}

// ---- read(write(x)) == x ---------------------------------------------------------------------

std::string header_line() {
  std::string out;
  append_json_line(HeaderRecord{}, out);
  return out;
}

// What a reader makes of `line` after a header.
Record read_back(const std::string& line, NameTable& names) {
  const std::string bytes = header_line() + line;
  auto reader = TraceReader::from_bytes(bytes, "t", names);
  RC_ASSERT(reader.has_value() && reader->next().has_value());
  const auto record = reader->next();
  if (!record) RC_FAIL(record.error().text);
  RC_ASSERT(*record != nullptr);
  Record copy = **record;
  copy.line = {};
  return copy;
}

std::vector<std::string> any_words() {
  return *rc::gen::container<std::vector<std::string>>(rc::gen::exec(any_text));
}

WrapperRecord any_wrapper() {
  WrapperRecord out{.model = any_count(), .kind = any_text(), .class_name = any_text()};
  out.group = any_text();
  out.comm_hook = any_text();
  out.reason = any_text();
  out.ignored = any_words();
  out.size = any_count();
  if (maybe()) out.trainable = any_count();
  if (maybe()) out.frozen = any_count();
  out.is_understood = maybe();
  out.has_static_graph = maybe();
  out.finds_unused = maybe();
  return out;
}

OptimizerRecord any_optimizer() {
  OptimizerRecord out{.id = any_count(), .class_name = any_text(), .params = any_words()};
  out.unknown = any_count();
  out.frozen = any_count();
  if (maybe()) out.engine = any_count();
  return out;
}

NumbersRecord any_numbers() {
  NumbersRecord out{.step = any_count(), .is_after_step = maybe(), .optimizer = any(0, 9)};
  out.params = {any_text(), any_text()};
  if (maybe()) out.grad_hashes = {any_text(), std::nullopt};
  if (maybe()) out.param_hashes = {std::nullopt, any_text()};
  if (maybe()) out.grad_norms = {0.1, std::nullopt};
  if (maybe()) out.param_norms = {std::nullopt, 1e300};
  out.bad = any_words();
  return out;
}

template <class T>
void survives(const T& record) {
  std::string line;
  append_json_line(record, line);
  RC_ASSERT(nlohmann::json::accept(line));
  NameTable names;
  const Record back = read_back(line, names);
  RC_ASSERT(std::holds_alternative<T>(back.body));
  RC_ASSERT(std::get<T>(back.body) == record);
}

RC_GTEST_PROP(TraceWriter, Records_survive_writing_and_reading, ()) {
  const auto count = [] { return static_cast<std::uint64_t>(any_count()); };
  switch (any(0, 9)) {
    case 0:
      return survives(ThreadRecord{any(0, 99), any_text(), maybe()});
    case 1:
      return survives(ParamRecord{any_count(), any_text(), any_shape(), any_text(), maybe()});
    case 2:
      return survives(any_tensor());
    case 3: {
      GroupRecord group{any_text(), std::nullopt, any_text(), any_text()};
      if (maybe()) group.ranks = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 99));
      return survives(group);
    }
    case 4:
      return survives(NoteRecord{any_text(), any_text(), any_words()});
    case 5:
      return survives(any_wrapper());
    case 6:
      return survives(any_optimizer());
    case 7:
      return survives(any_numbers());
    default:
      return survives(EndRecord{count(), count()});
  }
}

RC_GTEST_PROP(TraceWriter, Headers_survive_writing_and_reading, ()) {
  const HeaderRecord header = any_header();
  std::string line;
  append_json_line(header, line);
  NameTable names;
  auto reader = TraceReader::from_bytes(line, "t", names);
  if (!reader) RC_FAIL(reader.error().text);
  RC_ASSERT(reader->header() == header);
}

RC_GTEST_PROP(TraceWriter, Graphs_survive_writing_and_reading, ()) {
  std::string line;
  append_json_line(any_graph(), line);
  NameTable names;
  std::string again;
  append_json_line(std::get<GraphRecord>(read_back(line, names).body), again);
  RC_ASSERT(again == line);
}

RC_GTEST_PROP(TraceWriter, Events_survive_writing_and_reading, ()) {
  NameTable names;
  const HookEvent event =
      any_event(names, static_cast<std::uint64_t>(any<std::int64_t>(1, 1 << 30)));
  std::string line;
  append_json_line(event, names, line);
  RC_ASSERT(nlohmann::json::accept(line));
  RC_ASSERT(*read_back(line, names).event() == event);
}

// simdjson 3.0 misreads numbers of this length.
TEST(TraceWriter, Long_decimals_survive_reading) {
  NameTable names;
  const Record back =
      read_back(R"({"rec":"tensor","role":"grad","name":"w","value":[865454012345678848.0,)"
                R"(0.12345678901234567890123,123456789012345678901234567890]})"
                "\n",
                names);
  EXPECT_THAT(*std::get<TensorRecord>(back.body).values,
              ::testing::ElementsAre(865454012345678848.0, 0.12345678901234567890123,
                                     123456789012345678901234567890.0));
}

RC_GTEST_PROP(TraceWriter, Doubles_are_read_back_bit_for_bit, ()) {
  const double value = any_double();
  if (!std::isfinite(value)) return;
  std::string text;
  append_json_number(value, maybe(), text);
  const double back = nlohmann::json::parse("[" + text + "]")[0].get<double>();
  RC_ASSERT(std::signbit(back) == std::signbit(value));
  RC_ASSERT(back == value);
}

TEST(TraceWriter, Writes_nan_as_the_string_of_the_format) {
  TensorRecord tensor;
  tensor.values = {std::numeric_limits<double>::quiet_NaN()};
  std::string line;
  append_json_line(tensor, line);
  EXPECT_NE(line.find(R"("value":["nan"])"), std::string::npos) << line;
  NameTable names;
  const Record back = read_back(line, names);
  EXPECT_TRUE(std::isnan(std::get<TensorRecord>(back.body).values->at(0)));
}

TEST(TraceWriter, Replaces_bytes_that_are_no_utf8) {
  for (const char* bytes : {"\xff", "\xc0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xed\xa0\x80",
                            "\xf4\x90\x80\x80", "\xe2\x80"}) {
    std::string text;
    append_json_string(bytes, text);
    EXPECT_TRUE(nlohmann::json::accept(text));
    EXPECT_NE(text.find("\xEF\xBF\xBD"), std::string::npos);
  }
}

TEST(TraceWriter, Names_the_gathered_elements_as_the_format_does) {
  HookEvent event;
  event.kind = EventKind::zparam_partition;
  event.lc = 1;
  event.numel = 7;
  std::string line;
  append_json_line(event, NameTable(), line);
  EXPECT_EQ(nlohmann::json::parse(line).at("live_numel"), 7) << line;
}

TEST(TraceWriter, Refuses_an_event_without_what_its_kind_requires) {
  HookEvent event;
  event.kind = EventKind::coll_issue;
  std::string line;
  EXPECT_THROW(append_json_line(event, NameTable(), line), CheckFailed);
}

// ---- files -----------------------------------------------------------------------------------

std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Folder {
  fs::path path = scratch_path("trace_writer");
  Folder() {
    fs::remove_all(path);
    fs::create_directory(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(path)) out.push_back(entry.path().filename());
    return out;
  }
};

void copy_trace(const fs::path& from, const fs::path& to) {
  NameTable names;
  auto reader = TraceReader::open(from, names);
  ASSERT_TRUE(reader) << reader.error().text;
  auto writer = TraceWriter::create(to);
  ASSERT_TRUE(writer) << writer.error().text;
  while (true) {
    const auto record = reader->next();
    ASSERT_TRUE(record) << record.error().text;
    if (*record == nullptr) break;
    ASSERT_TRUE(writer->pass(**record));
  }
  ASSERT_TRUE(writer->finish());
}

TEST(TraceWriter, Passes_lines_through_byte_for_byte_in_either_container) {
  const Folder folder;
  const fs::path source =
      ZP_SOURCE_DIR "/tests/traces/deepspeed-edaa7221-cuda/func_vmap_grad__z2_fp32_w1_r0.jsonl.gz";
  copy_trace(source, folder.path / "a.jsonl");
  copy_trace(folder.path / "a.jsonl", folder.path / "b.jsonl.gz");
  copy_trace(folder.path / "b.jsonl.gz", folder.path / "c.jsonl");
  copy_trace(folder.path / "c.jsonl", folder.path / "d.jsonl.gz");
  EXPECT_GT(slurp(folder.path / "a.jsonl").size(), 40'000U);
  EXPECT_EQ(slurp(folder.path / "a.jsonl"), slurp(folder.path / "c.jsonl"));
  EXPECT_EQ(slurp(folder.path / "b.jsonl.gz"), slurp(folder.path / "d.jsonl.gz"));
  EXPECT_LT(slurp(folder.path / "b.jsonl.gz").size(), 20'000U);
}

TEST(TraceWriter, Adds_the_end_record_with_its_counts) {
  const Folder folder;
  const fs::path path = folder.path / "a.jsonl";
  NameTable names;
  HookEvent event;
  event.kind = EventKind::mark;
  event.lc = 1;
  event.name = names.intern("m");
  auto writer = TraceWriter::create(path);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->add(HeaderRecord{}) && writer->add(ThreadRecord{0, "main", true}));
  ASSERT_TRUE(writer->add(event, names));
  EXPECT_FALSE(fs::exists(path)) << "the file appears only when it is complete";
  ASSERT_TRUE(writer->finish());
  const std::string text = slurp(path);
  EXPECT_TRUE(text.ends_with("{\"rec\":\"end\",\"events\":1,\"records\":2}\n")) << text;
  EXPECT_THAT(folder.names(), ::testing::ElementsAre("a.jsonl"));
}

TEST(TraceWriter, Leaves_the_old_file_when_it_is_not_finished) {
  const Folder folder;
  const fs::path path = folder.path / "a.jsonl";
  std::ofstream(path) << "old";
  {
    auto writer = TraceWriter::create(path);
    ASSERT_TRUE(writer && writer->add(HeaderRecord{}));
  }
  EXPECT_EQ(slurp(path), "old");
  EXPECT_THAT(folder.names(), ::testing::ElementsAre("a.jsonl"));
}

TEST(TraceWriter, Names_the_path_that_cannot_be_written) {
  const auto writer = TraceWriter::create("/nonexistent/a.jsonl");
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().text.rfind("/nonexistent/a.jsonl: cannot be written: ", 0), 0U);
}

}  // namespace
}  // namespace zeroproof
