// What dumps of other formats say together: real ones over gloo and small ones of known kinds
// (tests/data/dump_cases), and dumps that are written here, a few entries each.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "props/foreign/dump_compare.h"
#include "props/foreign/dump_paths.h"
#include "props/foreign/dump_reader.h"

namespace zeroproof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DumpReport report_of(std::vector<std::string> paths) {
  std::vector<RankDump> dumps;
  for (const std::string& path : paths) {
    auto dump = read_rank_dump(path);
    EXPECT_TRUE(dump.has_value()) << dump.error().text;
    if (dump) dumps.push_back(std::move(*dump));
  }
  return compare_dumps(std::move(dumps));
}

std::string kinds_of(const DumpReport& report) {
  std::string kinds;
  for (const Diagnosis& one : report.diagnosis) kinds += (kinds.empty() ? "" : " ") + one.kind;
  return kinds;
}

struct FolderCase {
  std::string folder;
  std::string kinds;  // of the diagnosis, in order
  bool is_falsified = false;
};

class DumpFolder : public ::testing::TestWithParam<FolderCase> {};

TEST_P(DumpFolder, Has_this_verdict) {
  const FolderCase& expected = GetParam();
  const std::string folder = ZP_SOURCE_DIR "/tests/data/dump_cases/" + expected.folder;
  const DumpReport report = report_of(dump_paths(folder));
  EXPECT_FALSE(report.dumps.empty()) << folder;
  EXPECT_EQ(expected.kinds, kinds_of(report)) << folder;
  EXPECT_EQ(expected.is_falsified, report.is_falsified()) << folder;
}

INSTANTIATE_TEST_SUITE_P(
    Bundled, DumpFolder,
    ::testing::Values(
        FolderCase{"B01_kineto_all_to_all", ""}, FolderCase{"B01b_kineto_all_to_allv", ""},
        FolderCase{"B02_kineto_send_recv", ""},
        FolderCase{"B03_kineto_two_groups", "dump.groups_unknown"},
        FolderCase{"B05_kineto_two_cycles", "flight.COLLECTIVE_TYPE_MISMATCH", true},
        FolderCase{"B06_kineto_head_over_64k", ""}, FolderCase{"B07_fr_p2p_ring", ""},
        FolderCase{"B08_fr_one_rank_p2p", ""},
        FolderCase{"B11_fr_rank_file_missing", "collective.stuck_together rank.no_file", true},
        FolderCase{"B12_fr_all_stuck", "collective.stuck_together", true},
        FolderCase{"gloo_kineto_a2a", ""}, FolderCase{"gloo_kineto_p2p", ""},
        FolderCase{"gloo_kineto_noshape", ""}, FolderCase{"gloo_kineto_cut", "dump.window_cut"},
        FolderCase{"gloo_kineto_late", "dump.window_cut"},
        FolderCase{"gloo_kineto_groups", "dump.groups_unknown"},
        FolderCase{"gloo_kineto_ddp", "dump.groups_unknown"},
        FolderCase{"gloo_kineto_cycles",
                   "dump.groups_unknown dump.groups_unknown dump.groups_unknown"},
        FolderCase{"gloo_fr_healthy", ""},
        FolderCase{"gloo_fr_hang_missing", "collective.missing", true},
        FolderCase{"gloo_fr_hang_type", "flight.COLLECTIVE_TYPE_MISMATCH", true},
        FolderCase{"gloo_fr_hang_sub", "dump.members_unknown"}, FolderCase{"nccl_fr_ring", ""}),
    [](const auto& one) { return one.param.folder; });

// One entry of a flight recorder, as NCCL writes it.
struct Entry {
  std::string name = "all_reduce";
  int number = 1;
  std::string state = "completed";
  std::string group = "0";
  std::string sizes = "[[4]]";
  std::string received = {};  // output sizes where they are others
  int record = 0;
  bool is_marked =
      true;  // as point to point, where it is; PyTorch 2.11 does not mark a batch's end
};

std::string entry_json(const Entry& one) {
  const bool is_message =
      one.name.starts_with("send") || one.name.starts_with("recv") || one.name == "coalesced p2p";
  const std::string name = one.name == "coalesced p2p" ? "coalesced" : one.name;
  return fmt::format(
      R"({{"record_id":{},"pg_id":{},"process_group":["{}","{}"],"{}":{},"{}":7,)"
      R"("profiling_name":"nccl:{}","input_sizes":{},"output_sizes":{},"state":"{}",)"
      R"("is_p2p":{},"retired":{}}})",
      one.record, one.group, one.group, one.group == "0" ? "default_pg" : "EXPERT",
      is_message ? "p2p_seq_id" : "collective_seq_id", one.number,
      is_message ? "collective_seq_id" : "p2p_seq_id", name, one.sizes,
      one.received.empty() ? one.sizes : one.received, one.state, is_message && one.is_marked,
      one.state == "completed");
}

constexpr const char* kWorldOfTwo = R"({"0":{"name":"0","desc":"default_pg","ranks":"[0, 1]"}})";

struct FlightDump {
  int rank = 0;
  std::vector<Entry> entries;
  std::string groups = kWorldOfTwo;
  std::string status = "{}";
};

RankDump read_flight(const FlightDump& wanted) {
  std::string entries;
  for (const Entry& one : wanted.entries) entries += (entries.empty() ? "" : ",") + entry_json(one);
  const std::string text =
      fmt::format(R"({{"version":"2.10","pg_config":{},"pg_status":{},"entries":[{}]}})",
                  wanted.groups, wanted.status, entries);
  auto dump = read_rank_dump_bytes(text, fmt::format("trace_rank_{}", wanted.rank));
  EXPECT_TRUE(dump.has_value()) << dump.error().text;
  return std::move(dump).value_or(RankDump{});
}

DumpReport compare_flight(const std::vector<FlightDump>& wanted) {
  std::vector<RankDump> dumps;
  for (const FlightDump& one : wanted) dumps.push_back(read_flight(one));
  return compare_dumps(std::move(dumps));
}

TEST(FlightHang, Completed_sends_need_no_receive) {
  const DumpReport report =
      compare_flight({{.rank = 0,
                       .entries = {{.name = "send 0->1", .number = 5, .record = 5},
                                   {.name = "send 0->1", .number = 6, .record = 6}}},
                      {.rank = 1, .entries = {{.number = 9, .record = 40}}}});
  EXPECT_EQ("", kinds_of(report));
}

TEST(FlightHang, Names_the_absent_peer_of_a_message_with_global_ranks_and_the_group) {
  const std::string groups =
      R"({"0":{"ranks":"[0, 1, 4, 5]"},"3":{"desc":"EXPERT","ranks":"[4, 5]"}})";
  const DumpReport report = compare_flight(
      {{.rank = 4,
        .entries = {{.name = "recv 0<-1", .state = "started", .group = "3"}},
        .groups = groups},
       {.rank = 5, .entries = {{.name = "all_reduce", .group = "3"}}, .groups = groups}});
  ASSERT_FALSE(report.diagnosis.empty());
  const Diagnosis& found = report.diagnosis.front();
  EXPECT_EQ("collective.missing", found.kind);
  EXPECT_THAT(found.ranks, ElementsAre(5));
  EXPECT_THAT(found.what, HasSubstr("rank 5 has not posted the send for a recv 5->4"));
  EXPECT_THAT(found.what, HasSubstr("group 3 (EXPERT): rank 4 waits"));
}

// NCCL gives the state of a batch to its last entry only.
TEST(FlightHang, A_batch_is_as_complete_as_its_last_entry) {
  for (const bool is_marked : {true, false}) {
    const DumpReport report = compare_flight(
        {{.rank = 0,
          .entries = {{.name = "send 0->1", .state = "scheduled"},
                      {.name = "coalesced p2p", .sizes = "[]", .is_marked = is_marked}}},
         {.rank = 1, .entries = {{.number = 1}, {.number = 2}}}});
    EXPECT_EQ("", kinds_of(report)) << is_marked;
  }
}

TEST(FlightHang, Ranks_may_use_one_name_for_groups_of_other_members) {
  const auto dump = [](int rank, const std::string& members, int count) {
    FlightDump one{.rank = rank, .entries = {}};
    one.groups = fmt::format(R"({{"7":{{"ranks":"{}"}}}})", members);
    for (int at = 1; at <= count; ++at)
      one.entries.push_back({.number = at, .state = "started", .group = "7"});
    for (Entry& entry : one.entries) entry.state = "completed";
    return one;
  };
  EXPECT_EQ("", kinds_of(compare_flight({dump(0, "[0, 1]", 2), dump(1, "[0, 1]", 2),
                                         dump(2, "[2, 3]", 5), dump(3, "[2, 3]", 5)})));
}

TEST(FlightHang, A_nameless_group_says_nothing_about_members) {
  const auto dump = [](int rank, const std::string& group) {
    FlightDump one{.rank = rank, .entries = {{.group = group}}};
    one.groups = R"({"":{"name":"","desc":"","ranks":"[0, 1]"}})";
    return one;
  };
  EXPECT_EQ("", kinds_of(compare_flight({dump(0, "5"), dump(1, "6"), dump(2, "5"), dump(3, "6")})));
}

TEST(FlightHang, Ring_buffers_may_start_at_different_numbers) {
  std::vector<FlightDump> dumps = {{.rank = 0}, {.rank = 1}};
  for (int number = 3; number <= 9; ++number) dumps[0].entries.push_back({.number = number});
  for (int number = 6; number <= 9; ++number) dumps[1].entries.push_back({.number = number});
  const DumpReport report = compare_flight(dumps);
  EXPECT_EQ("", kinds_of(report));
  EXPECT_EQ(4U, report.verdicts.at("FULLY_MATCHED"));
}

TEST(FlightHang, What_completed_somewhere_is_missing_nowhere) {
  EXPECT_EQ("", kinds_of(compare_flight(
                    {{.rank = 0, .entries = {{}, {.number = 2}}}, {.rank = 1, .entries = {{}}}})));
}

TEST(FlightHang, Dumps_of_active_operations_tell_nothing_by_absence) {
  const DumpReport report = compare_flight(
      {{.rank = 0, .entries = {{.number = 5, .state = "started"}}}, {.rank = 1, .entries = {}}});
  EXPECT_FALSE(report.is_falsified()) << kinds_of(report);
  EXPECT_EQ("collective.not_complete", kinds_of(report));
}

TEST(FlightHang, Dumps_of_active_messages_tell_nothing_by_absence) {
  const DumpReport report = compare_flight(
      {{.rank = 0, .entries = {{.name = "recv 0<-1", .number = 9, .state = "started"}}},
       {.rank = 1, .entries = {{.name = "recv 1<-0", .number = 9, .state = "started"}}}});
  EXPECT_EQ("collective.not_complete collective.not_complete", kinds_of(report));
}

TEST(FlightHang, A_gap_between_ranks_is_a_rank_without_a_file) {
  const DumpReport report = compare_flight({{.rank = 0, .entries = {{}, {}}, .groups = "{}"},
                                            {.rank = 3, .entries = {{}, {}}, .groups = "{}"}});
  ASSERT_EQ("rank.no_file", kinds_of(report));
  EXPECT_THAT(report.diagnosis[0].ranks, ElementsAre(1, 2));
}

TEST(FlightHang, Names_the_rank_whose_device_trails_its_peers) {
  const auto dump = [](int rank, int completed) {
    FlightDump one{.rank = rank, .entries = {}};
    one.groups = R"({"0":{"desc":"default_pg","ranks":"[0, 1, 2]"}})";
    one.status =
        fmt::format(R"({{"0":{{"last_enqueued_collective":8,"last_started_collective":{0},)"
                    R"("last_completed_collective":{0}}}}})",
                    completed);
    for (int number = 5; number <= 8; ++number)
      one.entries.push_back(
          {.number = number, .state = number <= completed ? "completed" : "scheduled"});
    return one;
  };
  const DumpReport report = compare_flight({dump(0, 7), dump(1, 5), dump(2, 7)});
  EXPECT_EQ("device.stalled", kinds_of(report));
  EXPECT_TRUE(report.is_falsified());
  EXPECT_THAT(report.diagnosis[0].ranks, ElementsAre(1));
  EXPECT_THAT(report.diagnosis[0].what, HasSubstr("completed number 5 of group 0"));
  EXPECT_THAT(report.diagnosis[0].what, HasSubstr("ranks 0, 2 wait in a later one"));
}

TEST(FlightHang, One_dump_says_what_completed) {
  FlightDump one{.rank = 0, .entries = {}};
  one.status = R"({"0":{"last_enqueued_collective":"8","last_completed_collective":"3"}})";
  for (int number = 4; number <= 8; ++number)
    one.entries.push_back({.number = number, .state = "scheduled"});
  const DumpReport report = compare_flight({one});
  ASSERT_EQ("collective.not_complete", kinds_of(report));
  EXPECT_FALSE(report.is_falsified());
  EXPECT_THAT(report.diagnosis[0].what, HasSubstr("5 collectives of group 0 are scheduled"));
  EXPECT_THAT(report.diagnosis[0].what, HasSubstr("completed number 3 and enqueued 8"));
}

// Rank 2 never comes to the world's collective; ranks 0 and 1 are late in their own group only
// because rank 1 waits for rank 2.
TEST(FlightHang, Tells_a_cause_and_not_its_consequence) {
  const std::string groups = R"({"0":{"ranks":"[0, 1, 2]"},"4":{"ranks":"[0, 1]"}})";
  const DumpReport report = compare_flight(
      {{.rank = 0, .entries = {{.number = 3, .state = "started", .group = "4"}}, .groups = groups},
       {.rank = 1,
        .entries = {{.number = 1}, {.number = 2, .state = "started"}, {.number = 2, .group = "4"}},
        .groups = groups},
       {.rank = 2, .entries = {{.number = 1}}, .groups = groups}});
  int defects = 0;
  for (const Diagnosis& one : report.diagnosis) defects += one.gravity == Gravity::defect ? 1 : 0;
  ASSERT_FALSE(report.diagnosis.empty());
  EXPECT_EQ("collective.missing", report.diagnosis[0].kind) << kinds_of(report);
  EXPECT_EQ(1, defects) << kinds_of(report);
}

// Rank 1 waits in a group whose other rank has no file, so that rank 0 waits for it elsewhere.
TEST(FlightHang, Accuses_no_rank_that_waits_alone_in_another_group) {
  const std::string groups = R"({"0":{"ranks":"[0, 1]"},"4":{"ranks":"[1, 2]"}})";
  const DumpReport report = compare_flight(
      {{.rank = 0, .entries = {{}, {.number = 2, .state = "started"}}, .groups = groups},
       {.rank = 1, .entries = {{}, {.state = "started", .group = "4"}}, .groups = groups}});
  EXPECT_THAT(kinds_of(report), HasSubstr("collective.held_up"));
  EXPECT_FALSE(report.is_falsified()) << kinds_of(report);
}

TEST(FlightHang, Sums_of_an_uneven_all_to_all_must_agree) {
  const auto dump = [](int rank, const std::string& sent, const std::string& received) {
    FlightDump one{.rank = rank, .entries = {}};
    one.entries.push_back({.name = "all_to_all", .sizes = sent, .received = received});
    return one;
  };
  EXPECT_EQ("", kinds_of(compare_flight({dump(0, "[[5]]", "[[7]]"), dump(1, "[[7]]", "[[5]]")})));
  const DumpReport report = compare_flight({dump(0, "[[5]]", "[[7]]"), dump(1, "[[7]]", "[[6]]")});
  EXPECT_EQ("flight.SIZE_OR_SYNTAX_MISMATCH", kinds_of(report));
}

TEST(FlightHang, A_majority_says_who_is_odd) {
  const std::string groups = R"({"0":{"ranks":"[0, 1, 2]"}})";
  const DumpReport report =
      compare_flight({{.rank = 0, .entries = {{}}, .groups = groups},
                      {.rank = 1, .entries = {{.name = "broadcast"}}, .groups = groups},
                      {.rank = 2, .entries = {{}}, .groups = groups}});
  ASSERT_EQ("flight.COLLECTIVE_TYPE_MISMATCH", kinds_of(report));
  EXPECT_THAT(report.diagnosis[0].ranks, ElementsAre(1));
}

// A thousand ranks without one: it is named in few words.
TEST(FlightHang, Of_many_ranks_is_short) {
  std::string members = "[";
  for (int rank = 0; rank < 1024; ++rank) members += fmt::format("{}{}", rank ? ", " : "", rank);
  const std::string groups = fmt::format(R"({{"0":{{"ranks":"{}]"}}}})", members);
  std::vector<FlightDump> dumps;
  for (int rank = 0; rank < 1024; ++rank) {
    FlightDump one{.rank = rank, .entries = {}, .groups = groups};
    for (int number = 1; number <= 20; ++number) one.entries.push_back({.number = number});
    if (rank != 17) one.entries.push_back({.number = 21, .state = "started"});
    dumps.push_back(std::move(one));
  }
  const DumpReport report = compare_flight(dumps);
  ASSERT_EQ(1U, report.diagnosis.size());
  EXPECT_THAT(report.diagnosis[0].ranks, ElementsAre(17));
  EXPECT_THAT(report.diagnosis[0].what, HasSubstr("1023 wait there for it"));
  EXPECT_LT(report.diagnosis[0].what.size(), 200U);
  EXPECT_LT(report.diagnosis[0].order.size() + report.diagnosis[0].waits.size(), 12U);
}

std::string slice(const std::string& name, int start, const std::string& arguments) {
  return fmt::format(R"({{"ph":"X","name":"{}","ts":{},"dur":1,"args":{{{}}}}})", name, start,
                     arguments);
}

std::string comms(const std::string& op, int start, int elements, int number) {
  return slice("record_param_comms", start,
               fmt::format(R"("Collective name":"{}","In msg nelems":{},"Out msg nelems":{},)"
                           R"("Process Group Name":"0","Process Group Ranks":"[0, 1]","Seq":{})",
                           op, elements, elements, number));
}

RankDump read_kineto(int rank, const std::vector<std::string>& slices,
                     const std::string& end = "]}") {
  std::string text = fmt::format(
      R"({{"schemaVersion":1,"distributedInfo":{{"rank":{},"world_size":2}},"traceEvents":[)",
      rank);
  for (std::size_t at = 0; at < slices.size(); ++at) text += (at > 0 ? "," : "") + slices[at];
  auto dump = read_rank_dump_bytes(text + end, fmt::format("trace_rank_{}.json", rank));
  EXPECT_TRUE(dump.has_value()) << dump.error().text;
  return std::move(dump).value_or(RankDump{});
}

TEST(Kineto, Windows_are_joined_by_the_number_of_c10d) {
  EXPECT_EQ("dump.window_cut",
            kinds_of(compare_dumps(
                {read_kineto(0, {comms("allreduce", 1, 4, 11), comms("allreduce", 2, 8, 12),
                                 comms("allreduce", 3, 4, 13)}),
                 read_kineto(1, {comms("allreduce", 1, 8, 12), comms("allreduce", 2, 4, 13)})})));
  EXPECT_EQ("flight.SIZE_OR_SYNTAX_MISMATCH",
            kinds_of(compare_dumps({read_kineto(0, {comms("allreduce", 1, 4, 11)}),
                                    read_kineto(1, {comms("allreduce", 1, 8, 11)})})));
}

TEST(Kineto, That_stops_early_is_read_up_to_there) {
  const std::string whole = comms("allreduce", 1, 4, 11);
  const RankDump cut = read_kineto(0, {whole, comms("allreduce", 2, 8, 12)}, ",{\"ph\":\"X\",\"na");
  EXPECT_TRUE(cut.is_truncated);
  EXPECT_EQ(2U, cut.collectives.size());
  const DumpReport report = compare_dumps({cut, read_kineto(1, {whole})});
  ASSERT_EQ(1U, report.faults.size());
  EXPECT_THAT(report.faults[0].text, HasSubstr("truncated"));
  EXPECT_EQ(1U, report.verdicts.at("FULLY_MATCHED"));
}

TEST(Kineto, Without_arguments_is_read_by_the_annotations_of_the_library) {
  std::vector<std::string> slices = {slice("record_param_comms", 1, ""),
                                     slice("c10d::allreduce_", 2, "")};
  for (int at = 0; at < 3; ++at)
    slices.push_back(slice("nccl:all_to_all", 10 + at, R"("Input Dims":[[8]])"));
  slices.push_back(slice("nccl:all_reduce", 20, R"("Input Dims":[[8]])"));
  EXPECT_EQ(4U, read_kineto(0, slices).collectives.size());
  EXPECT_EQ("dump.collectives_unread",
            kinds_of(compare_dumps({read_kineto(0, {slice("record_param_comms", 1, "")})})));
}

// Without pg_config the calls may be of several groups: a difference is no proof.
TEST(Kineto, Without_groups_has_no_defect) {
  const DumpReport report =
      compare_dumps({read_kineto(0, {slice("c10d::allreduce_", 1, R"("Input Dims":[[[4]]])")}),
                     read_kineto(1, {slice("c10d::broadcast_", 1, R"("Input Dims":[[[4]]])")})});
  EXPECT_EQ("flight.COLLECTIVE_TYPE_MISMATCH dump.groups_unknown", kinds_of(report));
  EXPECT_FALSE(report.is_falsified());
}

TEST(RankNumber, That_cannot_be_is_refused_with_its_name_and_value) {
  const std::string kineto =
      R"({"distributedInfo":{"rank":99999999999,"world_size":2},"traceEvents":[]})";
  const auto dump = read_rank_dump_bytes(kineto, "k.json");
  ASSERT_FALSE(dump.has_value());
  EXPECT_THAT(dump.error().text, HasSubstr("rank 99999999999"));
  const auto message = read_rank_dump_bytes(
      R"({"entries":[{"profiling_name":"nccl:send 0->4294967297","p2p_seq_id":1}]})", "f.json");
  ASSERT_FALSE(message.has_value());
  EXPECT_THAT(message.error().text, HasSubstr("4294967297"));
}

}  // namespace
}  // namespace zeroproof
