// The trace profile over recorded DeepSpeed runs, with what their authors found as the truth.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "props/replay/run_group.h"
#include "sim/trace/reader.h"

namespace zeroproof {
namespace {

using Json = nlohmann::json;

// What a test may change on the way from the file to the level.
struct Edits {
  std::function<void(HookEvent&)> event;
  std::function<void(TensorRecord&)> tensor;
};

void feed(TraceReader& reader, PropertiesLevel& level, JobFacts& job, const Edits& edits) {
  bool has_end = false;
  for (;;) {
    const auto record = reader.next();
    ASSERT_TRUE(record) << record.error().text;
    if (*record == nullptr) break;
    const RecordBody& body = (*record)->body;
    if (const auto* event = std::get_if<HookEvent>(&body)) {
      HookEvent edited = *event;
      if (edits.event) edits.event(edited);
      level.on_event(edited);
    } else if (const auto* param = std::get_if<ParamRecord>(&body)) {
      level.declare_param(param->name);
    } else if (const auto* group = std::get_if<GroupRecord>(&body)) {
      job.declare(*group);
    } else if (const auto* tensor = std::get_if<TensorRecord>(&body)) {
      TensorRecord edited = *tensor;
      if (edits.tensor) edits.tensor(edited);
      level.add_tensor(edited.role, edited.name, edited.values ? &*edited.values : nullptr);
    }
    has_end = has_end || std::holds_alternative<EndRecord>(body);
  }
  level.finish(has_end);
}

// Adds one bundled trace to `group` and gives its own report.
PropertiesReport replay(const std::string& name, RunGroup& group, const Edits& edits = {}) {
  NameTable names;
  const std::string path =
      ZP_SOURCE_DIR "/tests/traces/deepspeed-edaa7221-cuda/" + name + ".jsonl.gz";
  auto reader = TraceReader::open(path, names);
  EXPECT_TRUE(reader) << reader.error().text;
  if (!reader) return {};
  const HeaderRecord& header = reader->header();
  JobFacts job(header);
  PropertiesLevel level({.program = header.program,
                         .dtype = header.dtype,
                         .rank = header.rank,
                         .world = header.world,
                         .stage = static_cast<std::int32_t>(header.stage.value_or(-1))},
                        names, job);
  feed(*reader, level, job, edits);
  group.add(level, name);
  return level.report();
}

std::string number_of(const Property* property) {
  return std::string(property->number);
}

std::string event_of(const PropertiesReport& report, const std::string& number) {
  for (const Finding& finding : report.falsified)
    if (finding.property->number == number) return finding.event;
  return "";
}

std::set<std::string> numbers_of(const std::vector<Finding>& findings) {
  std::set<std::string> numbers;
  for (const Finding& finding : findings) numbers.insert(number_of(finding.property));
  return numbers;
}

TEST(PropertyTraces, Have_the_findings_their_recorders_saw) {
  std::ifstream file(ZP_SOURCE_DIR "/tests/props/expected_findings.json");
  const Json expected = Json::parse(file);
  RunGroup group;
  std::vector<PropertiesReport> reports;
  for (const auto& entry : expected.items()) reports.push_back(replay(entry.key(), group));
  const auto compared = group.compare();
  std::size_t index = 0;
  for (const auto& entry : expected.items()) {
    SCOPED_TRACE(entry.key());
    PropertiesReport& report = reports[index];
    report.merge(compared[index++].report);
    const auto falsified = entry.value().at("falsified").get<std::map<std::string, std::string>>();
    std::set<std::string> numbers;
    for (const auto& [number, event] : falsified) {
      numbers.insert(number);
      EXPECT_NE(event_of(report, number).find(event), std::string::npos)
          << event_of(report, number);
    }
    EXPECT_EQ(numbers_of(report.falsified), numbers);
    EXPECT_EQ(numbers_of(report.latent), entry.value().at("latent").get<std::set<std::string>>());
    std::set<std::string> held;
    for (const Property* property : report.held) held.insert(number_of(property));
    for (const std::string number : entry.value().value("held", Json::array()))
      EXPECT_TRUE(held.contains(number)) << number;
  }
}

TEST(PropertyTraces, Judge_every_property_once) {
  RunGroup group;
  const PropertiesReport report = replay("mlp__z3_fp32_w2_r0", group);
  std::multiset<std::string> seen;
  for (const Property* property : report.held) seen.insert(number_of(property));
  for (const std::string& number : numbers_of(report.latent)) seen.insert(number);
  for (const NotApplicable& entry : report.not_applicable) {
    seen.insert(number_of(entry.property));
    EXPECT_FALSE(entry.reason.empty());
  }
  EXPECT_EQ(seen.size(), all_properties().size());
  for (const Property& property : all_properties())
    EXPECT_EQ(seen.count(number_of(&property)), 1U) << property.number;
}

// Rank 1 of the stage 3 run, changed on the way, against rank 0 as recorded.
PropertiesReport compare_changed_rank(const Edits& edits) {
  RunGroup group;
  replay("mlp__z3_fp32_w2_r0", group);
  replay("mlp__z3_fp32_w2_r1", group, edits);
  return group.compare().back().report;
}

TEST(PropertyTraces, Find_a_collective_that_only_one_rank_changes) {
  int issued = 0;
  const PropertiesReport report =
      compare_changed_rank({.event =
                                [&](HookEvent& event) {
                                  if (event.kind == EventKind::coll_issue && ++issued == 7)
                                    event.bytes += 4;
                                },
                            .tensor = {}});
  ASSERT_EQ(numbers_of(report.falsified), std::set<std::string>{"P45"});
  EXPECT_NE(report.falsified.front().text.find("number 4 on rank 1 (group g0_1"), std::string::npos)
      << report.falsified.front().text;
}

TEST(PropertyTraces, Find_gathers_in_another_order) {
  const PropertiesReport report =
      compare_changed_rank({.event =
                                [](HookEvent& event) {
                                  if (event.kind == EventKind::zparam_gather_begin)
                                    std::reverse(event.params.begin(), event.params.end());
                                },
                            .tensor = {}});
  EXPECT_EQ(numbers_of(report.falsified), std::set<std::string>{"P67"});
}

TEST(PropertyTraces, Find_a_loss_scale_that_only_one_rank_changes) {
  const auto decide = [](const std::string& label) {
    static const JobFacts no_records;
    NameTable names;
    PropertiesLevel level({.program = "p",
                           .dtype = "fp16",
                           .rank = label == "loss_scale:8" ? 0 : 1,
                           .world = 2,
                           .stage = 2},
                          names, no_records);
    HookEvent event;
    event.kind = EventKind::mark;
    event.lc = 1;
    event.name = names.intern(label);
    level.on_event(event);
    level.finish(true);
    return level;
  };
  RunGroup group;
  group.add(decide("loss_scale:8"), "r0");
  group.add(decide("loss_scale:4"), "r1");
  EXPECT_EQ(numbers_of(group.compare().back().report.falsified), std::set<std::string>{"P57"});
}

PropertiesReport compare_changed_gradient(double factor) {
  RunGroup group;
  replay("mlp__z0_fp32_w2_r0", group);
  replay("mlp__z2_fp32_w2_r0", group,
         {.event = {}, .tensor = [&](TensorRecord& tensor) {
            if (tensor.role == "grad" && tensor.name.ends_with("l2.weight"))
              tensor.values->at(5) *= factor;
          }});
  return group.compare().back().report;
}

TEST(PropertyTraces, Locate_a_wrong_gradient_element) {
  const PropertiesReport report = compare_changed_gradient(1.01);
  ASSERT_EQ(numbers_of(report.falsified), std::set<std::string>{"P26"});
  const std::string& text = report.falsified.front().text;
  EXPECT_NE(text.find("l2.weight differs first at element 5"), std::string::npos) << text;
  EXPECT_TRUE(compare_changed_gradient(1 + 1e-7).falsified.empty());
}

TEST(PropertyTraces, Do_not_compare_what_started_from_other_parameters) {
  RunGroup group;
  replay("mlp__z0_fp32_w2_r0", group);
  replay("mlp__z2_fp32_w2_r0", group, {.event = {}, .tensor = [](TensorRecord& tensor) {
                                         if (tensor.role == "param") tensor.values->front() += 1;
                                         if (tensor.role == "grad") tensor.values->front() += 1;
                                       }});
  const PropertiesReport report = group.compare().back().report;
  EXPECT_TRUE(report.falsified.empty());
  const auto skipped =
      std::find_if(report.not_applicable.begin(), report.not_applicable.end(),
                   [](const NotApplicable& entry) { return entry.property->number == "P26"; });
  ASSERT_NE(skipped, report.not_applicable.end());
  EXPECT_NE(skipped->reason.find("parameters differ"), std::string::npos);
}

}  // namespace
}  // namespace zeroproof
