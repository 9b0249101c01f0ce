#include "props/report/run_trace.h"

#include "sim/trace/writer.h"

namespace zeroproof {
namespace {

std::string run_setting(const Schedule& schedule, const char* key) {
  const auto found = schedule.settings.find(key);
  return found == schedule.settings.end() ? std::string() : found->second;
}

HeaderRecord header_of(const Schedule& schedule, const Scenario& scenario) {
  HeaderRecord header;
  header.clock.source = "virtual";
  header.producer = {{"tool", "zeroproof explore"}, {"device", "cpu"}};
  header.program = scenario.id;
  header.description = scenario.title;
  header.policy = run_setting(schedule, "policy");
  header.mode = run_setting(schedule, "mode");
  header.seed = static_cast<std::int64_t>(schedule.seed);
  header.notes = {schedule_text(schedule)};
  return header;
}

Result<void> write_params(const ProtocolProgram& program, TraceWriter& writer) {
  std::int64_t next = 0;
  for (const ProtocolEngineSpec& engine : program.engines) {
    for (const std::string& param : engine.params) {
      ParamRecord record{.id = next++, .name = param, .shape = {1}, .dtype = "float64"};
      if (auto added = writer.add(record); !added) return added;
    }
  }
  return {};
}

}  // namespace

Result<void> write_run_trace(const Schedule& schedule, const Scenario& scenario,
                             const RecordedRun& run, const std::string& path) {
  auto writer = TraceWriter::create(path);
  if (!writer) return tl::unexpected(writer.error());
  if (auto added = writer->add(header_of(schedule, scenario)); !added) return added;
  if (auto added = writer->add(ThreadRecord{0, "MainThread", true}); !added) return added;
  if (auto added = write_params(scenario.program, *writer); !added) return added;
  for (const HookEvent& event : run.events) {
    if (auto added = writer->add(event, run.names); !added) return added;
  }
  return writer->finish();
}

}  // namespace zeroproof
