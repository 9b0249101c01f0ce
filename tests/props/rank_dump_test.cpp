// Flight-recorder dumps and Kineto traces: real ones of PyTorch 2.11 over gloo (tests/data/dumps),
// and dumps that no program should ever write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>

#include "props/foreign/dump_paths.h"
#include "props/foreign/flight_match.h"
#include "props/foreign/pickle.h"
#include "tests/fuzz/dump_input.h"
#include "tests/read_file.h"

namespace zeroproof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kDumps = ZP_SOURCE_DIR "/tests/data/dumps/";

RankDump dump_of(const std::string& name) {
  auto dump = read_rank_dump(kDumps + name);
  EXPECT_TRUE(dump.has_value()) << dump.error().text;
  return dump.value_or(RankDump{});
}

DumpReport compared(const std::string& run, const std::string& extension) {
  return compare_dumps(
      {dump_of(run + "_rank_0" + extension), dump_of(run + "_rank_1" + extension)});
}

TEST(RankDump, Of_json_and_pickle_say_the_same) {
  for (const std::string run : {"fr_ok", "fr_missing", "fr_type"}) {
    for (const char* rank : {"_rank_0", "_rank_1"}) {
      const RankDump json = dump_of(run + rank + ".json");
      const RankDump pickle = dump_of(run + rank + ".pickle");
      EXPECT_EQ(DumpFormat::flight_recorder_json, json.format);
      EXPECT_EQ(DumpFormat::flight_recorder_pickle, pickle.format);
      ASSERT_EQ(json.collectives.size(), pickle.collectives.size());
      EXPECT_EQ(json.rank, pickle.rank);
      EXPECT_EQ(json.version, pickle.version);
      for (std::size_t at = 0; at < json.collectives.size(); ++at) {
        const CollectiveShape& mine = *json.collectives[at].shape;
        const CollectiveShape& theirs = *pickle.collectives[at].shape;
        EXPECT_EQ(mine.op, theirs.op);
        EXPECT_EQ(json.collectives[at].number, pickle.collectives[at].number);
        EXPECT_EQ(mine.input_sizes, theirs.input_sizes);
        EXPECT_EQ(mine.input_dtypes, theirs.input_dtypes);
      }
    }
  }
}

TEST(RankDump, Of_agreeing_ranks_is_fully_matched) {
  const DumpReport report = compared("fr_ok", ".pickle");
  EXPECT_THAT(report.diagnosis, IsEmpty());
  EXPECT_EQ(4U, report.verdicts.at("FULLY_MATCHED"));
}

TEST(RankDump, Names_the_rank_that_did_not_join) {
  for (const char* extension : {".json", ".pickle"}) {
    const DumpReport report = compared("fr_missing", extension);
    ASSERT_EQ(1U, report.diagnosis.size());
    const Diagnosis& found = report.diagnosis.front();
    EXPECT_EQ("collective.missing", found.kind);
    EXPECT_THAT(found.ranks, ElementsAre(1));
    EXPECT_EQ("all_reduce number 4 of group 0", found.collective);
    EXPECT_THAT(found.last_common->text, HasSubstr("number 3"));
    ASSERT_EQ(1U, found.waits.size());
    EXPECT_EQ(0, found.waits[0].rank);
    EXPECT_THAT(found.waits[0].for_ranks, ElementsAre(1));
  }
}

TEST(RankDump, Names_the_verdict_of_ranks_that_call_different_things) {
  const DumpReport report = compared("fr_type", ".pickle");
  ASSERT_EQ(1U, report.diagnosis.size());
  EXPECT_EQ("flight.COLLECTIVE_TYPE_MISMATCH", report.diagnosis[0].kind);
  EXPECT_THAT(report.diagnosis[0].what, HasSubstr("all_reduce against broadcast"));
}

TEST(RankDump, Reads_collectives_and_node_order_of_kineto) {
  const RankDump dump = dump_of("kineto_ok_rank_0.json.gz");
  EXPECT_EQ(DumpFormat::kineto, dump.format);
  EXPECT_EQ(0, dump.rank);
  EXPECT_EQ(2, dump.world);
  ASSERT_EQ(3U, dump.collectives.size());
  EXPECT_EQ("all_reduce", dump.collectives[0].shape->op);
  EXPECT_THAT(dump.collectives[0].shape->input_sizes, ElementsAre(ElementsAre(4, 4)));
  ASSERT_FALSE(dump.nodes.empty());
  EXPECT_EQ("MeanBackward0", dump.nodes.front().name);
  EXPECT_EQ("AccumulateGrad", dump.nodes.back().name);
  EXPECT_THAT(compared("kineto_ok", ".json.gz").diagnosis, IsEmpty());
}

// Equal collectives without numbers: one left out looks like a window that ends earlier.
TEST(RankDump, Of_kineto_notes_a_window_with_fewer_collectives) {
  const DumpReport report = compared("kineto_skip", ".json.gz");
  ASSERT_EQ(1U, report.diagnosis.size());
  EXPECT_EQ("dump.window_cut", report.diagnosis[0].kind);
  EXPECT_EQ(Gravity::note, report.diagnosis[0].gravity);
  EXPECT_THAT(report.diagnosis[0].ranks, ElementsAre(1));
}

DumpWords& test_words() {
  static DumpWords words;
  return words;
}

CollectiveShape shape_of(std::string op, TensorSizes in, TensorSizes out) {
  return {.op = std::move(op),
          .group = "0",
          .input_sizes = std::move(in),
          .output_sizes = std::move(out),
          .input_dtypes = {"Float"},
          .output_dtypes = {"Float"}};
}

DumpedCollective collective(CollectiveShape shape) {
  const bool is_message = shape.op == "send" || shape.op == "recv";
  return {.shape = test_words().shape(std::move(shape)),
          .number = 1,
          .state = OpState::completed,
          .is_point_to_point = is_message};
}

DumpedCollective collective(std::string op, TensorSizes in, TensorSizes out) {
  return collective(shape_of(std::move(op), std::move(in), std::move(out)));
}

TEST(FlightMatch, Knows_the_six_verdicts) {
  using V = FlightVerdict;
  const DumpedCollective one = collective("all_reduce", {{4}}, {{4}});
  const auto verdict = [](const DumpedCollective& a, const DumpedCollective& b) {
    return match_collectives(a, b, 2).verdict;
  };
  EXPECT_EQ(V::fully_matched, verdict(one, one));
  EXPECT_EQ(V::collective_type_mismatch, verdict(one, collective("broadcast", {{4}}, {{4}})));
  EXPECT_EQ(V::size_or_syntax_mismatch, verdict(one, collective("all_reduce", {{8}}, {{8}})));
  DumpedCollective other = one;
  other.state = OpState::scheduled;
  EXPECT_EQ(V::collective_state_mismatch, verdict(one, other));
  CollectiveShape doubles = shape_of("all_reduce", {{4}}, {{4}});
  doubles.input_dtypes = doubles.output_dtypes = {"Double"};
  EXPECT_EQ(V::collective_dtype_mismatch, verdict(one, collective(doubles)));
  const DumpedCollective all = collective("all_to_all", {{4}}, {{4}});
  EXPECT_EQ(V::undecided, verdict(all, collective("all_to_all", {{8}}, {{2}})));
  const DumpedCollective gather = collective("_all_gather_base", {{4}}, {{8}});
  EXPECT_EQ(V::fully_matched, match_collectives(gather, gather, 2).verdict);
  EXPECT_EQ(V::size_or_syntax_mismatch, match_collectives(gather, gather, 3).verdict);
  DumpedCollective send = collective("send", {{4}}, {});
  DumpedCollective receive = collective("recv", {}, {{4}});
  DumpedCollective longer = collective("recv", {}, {{5}});
  for (DumpedCollective* end : {&send, &receive, &longer}) {
    end->from_rank = 0;
    end->to_rank = 1;
  }
  EXPECT_EQ(V::fully_matched, verdict(send, receive));
  EXPECT_EQ(V::size_or_syntax_mismatch, verdict(send, longer));
  receive.from_rank = -1;  // recv_any_source
  EXPECT_EQ(V::fully_matched, verdict(send, receive));
  receive.from_rank = 2;
  EXPECT_EQ(V::size_or_syntax_mismatch, verdict(send, receive));
}

// One rank of n collectives leaves one out: the rank and the place are named, wherever it is.
RC_GTEST_PROP(FlightMatch, Finds_a_left_out_collective, ()) {
  const int count = *rc::gen::inRange(2, 12);
  const int left_out = *rc::gen::inRange(0, count);
  const bool has_sizes = *rc::gen::arbitrary<bool>();
  std::vector<RankDump> dumps(2);
  for (int rank = 0; rank < 2; ++rank) {
    dumps[static_cast<std::size_t>(rank)].rank = rank;
    dumps[static_cast<std::size_t>(rank)].path = "dump_rank_" + std::to_string(rank);
    std::int64_t number = 0;
    for (int at = 0; at < count; ++at) {
      if (rank == 1 && at == left_out) continue;
      const std::int64_t size = has_sizes ? at + 1 : 4;
      DumpedCollective one = collective("all_reduce", {{size}}, {{size}});
      one.number = ++number;
      if (number == count) one.state = OpState::started;  // the other rank never comes
      dumps[static_cast<std::size_t>(rank)].collectives.push_back(one);
    }
  }
  const DumpReport report = compare_dumps(std::move(dumps));
  RC_ASSERT(report.is_falsified());
  const Diagnosis& found = report.diagnosis.front();
  RC_ASSERT(std::find(found.ranks.begin(), found.ranks.end(), 1) != found.ranks.end());
  const bool is_located = has_sizes && left_out + 1 < count;
  if (is_located) RC_ASSERT(found.what.find("rank 1 left out") != std::string::npos);
}

TEST(Pickle, Refuses_what_would_run_code) {
  const std::string_view system(
      "\x80\x02"
      "cos\nsystem\nq\x00X\x02\x00\x00\x00ls\x85R.",
      26);
  const auto read = read_pickle(system);
  ASSERT_FALSE(read.has_value());
  EXPECT_THAT(read.error(), HasSubstr("GLOBAL"));
  for (const char opcode : {'R', 'i', 'o', 'b', '\x81', '\x92', '\x93', 'c', 'P', 'Q'}) {
    const std::string bytes = std::string("\x80\x04N", 3) + opcode + ".";
    EXPECT_FALSE(read_pickle(bytes).has_value()) << static_cast<int>(opcode);
  }
}

// What a pickle of so many of these opcodes takes for each of its bytes.
std::size_t memory_a_byte(const std::string& opcodes) {
  constexpr std::size_t kBytes = 1'000'000;
  std::string bytes("\x80\x04](", 4);
  while (bytes.size() < kBytes) bytes += opcodes;
  bytes += "e.";
  const auto read = read_pickle(bytes);
  EXPECT_TRUE(read) << read.error();
  if (!read) return 0;
  return (read->values.capacity() * sizeof(PickleValue) +
          read->pool.capacity() * sizeof(std::uint32_t)) /
         bytes.size();
}

TEST(Pickle, Takes_little_memory_for_each_byte) {
  for (const char* opcodes : {"N", "\x88", "K\1", "]", "}", ")", "N\x85", "]Na", "N\x85\x85"})
    EXPECT_GE(48U, memory_a_byte(opcodes)) << opcodes;
}

TEST(Pickle, May_contain_itself) {
  const std::string_view bytes(
      "\x80\x02}q\x00X\x07\x00\x00\x00"
      "entries]q\x01h\x01"
      "as.",
      24);
  const auto dump = read_rank_dump_bytes(bytes, "dump_0.pickle");
  ASSERT_FALSE(dump.has_value());
  EXPECT_EQ(ErrorCode::unreadable, dump.error().code);
  EXPECT_THAT(dump.error().text, HasSubstr("dump_0.pickle: "));
}

// Any byte of a real dump changed or cut off: a dump or one clear line, and never a crash.
RC_GTEST_PROP(RankDump, Survives_damage, ()) {
  const std::vector<std::string> names = {"fr_ok_rank_0.pickle", "fr_type_rank_1.pickle",
                                          "fr_missing_rank_0.json", "kineto_ok_rank_0.json.gz"};
  std::string bytes = read_file(kDumps + *rc::gen::elementOf(names));
  const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
  if (*rc::gen::arbitrary<bool>())
    bytes.resize(at);
  else
    bytes[at] = static_cast<char>(*rc::gen::inRange(0, 256));
  read_any_dump(bytes);
}

TEST(RankDump, Survives_the_inputs_of_the_fuzzer) {
  for (const auto& entry :
       std::filesystem::directory_iterator(ZP_SOURCE_DIR "/tests/fuzz/dump_regressions"))
    read_any_dump(read_file(entry.path().string()));
}

TEST(RankDump, Is_told_by_its_content) {
  EXPECT_EQ(std::nullopt,
            dump_format_of("{\"rec\":\"header\",\"format\":\"hooktrace\"}\n\"entries\""));
  EXPECT_EQ(DumpFormat::kineto, dump_format_of("{\"schemaVersion\":1,\"traceEvents\":["));
  EXPECT_EQ(DumpFormat::flight_recorder_json, dump_format_of(" {\"entries\":["));
  EXPECT_EQ(std::nullopt, dump_format_of("{\"summary\":1}"));
  EXPECT_EQ(std::nullopt, dump_format_of(""));
  EXPECT_EQ(3, rank_in_name("/tmp/nccl_trace_rank_3"));
  EXPECT_EQ(12, rank_in_name("run/rank12.json.gz"));
  EXPECT_EQ(4, rank_in_name("dump_4.pickle"));
  EXPECT_EQ(-1, rank_in_name("dump.pickle"));
  EXPECT_EQ(-1, rank_in_name("/dev/fd/63"));
  EXPECT_EQ(16U, dump_paths(kDumps).size());
}

}  // namespace
}  // namespace zeroproof
