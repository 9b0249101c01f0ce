#include "props/train/engine_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "engine/config/ds_config.h"
#include "engine/files/small_file.h"
#include "model/nearest_name.h"
#include "props/train/scenario.h"
#include "zeroproof/engine/hooks/policies.h"

namespace zeroproof::train {
namespace {

constexpr std::uint64_t kLargestConfig = 1U << 20;
constexpr std::int64_t kMostRanks = 64;
constexpr std::int64_t kMostSteps = 1000;
constexpr std::int64_t kMostFaults = 8;

constexpr std::array<std::string_view, 3> kNodeOrders = {"faithful", "shared", "each"};
constexpr std::array<std::string_view, 5> kJudges = {"values", "events", "host", "streams", "cuda"};
constexpr std::array<std::string_view, 2> kBackwards = {"engine", "tensor"};
constexpr std::array<std::string_view, 2> kData = {"exact", "real"};
constexpr std::array<std::string_view, 3> kApis = {"full", "none", "no_callback"};
constexpr std::array<std::string_view, 3> kPreemptions = {"blocked", "every-call", "ranks"};
constexpr std::array<std::string_view, 2> kCompute = {"in-step", "late"};

EngineCase simulated() {
  EngineCase engine_case;
  engine_case.cell.sim.emplace();
  return engine_case;
}

// Reads one case; remembers the first thing that is wrong.
class SettingsReader {
 public:
  SettingsReader(const CaseSettings& settings, std::string_view where)
      : settings_(settings), where_(where) {}

  Result<EngineCase> read(const std::string& scenario) {
    if (const auto known = find_scenario(scenario); !known) return tl::unexpected(known.error());
    cell_.scenario = scenario;
    for (const auto& [key, value] : settings_) {
      set(key, value);
      if (!problem_.empty()) return fail(ErrorCode::usage, fmt::format("{}: {}", where_, problem_));
    }
    const bool compares = case_.judge == Judge::values || case_.judge == Judge::streams;
    if (!case_.faults.empty() && (case_.nodes != NodeOrder::faithful || !compares))
      return fail(
          ErrorCode::usage,
          fmt::format("{}: faults need nodes 'faithful' and judge 'values' or 'streams'", where_));
    if (!case_.config_path.empty())
      if (auto taken = take_config(); !taken) return tl::unexpected(taken.error());
    if (case_.judge == Judge::cuda)
      if (auto opened = open_gpus(case_); !opened) return tl::unexpected(opened.error());
    return case_;
  }

 private:
  void set(const std::string& key, const std::string& value) {
    if (key == "stage")
      cell_.stage = static_cast<int>(number(key, value, 0, 3));
    else if (key == "world-size")
      cell_.world_size = static_cast<int>(number(key, value, 1, kMostRanks));
    else if (key == "steps")
      cell_.steps = number(key, value, 1, kMostSteps);
    else if (key == "dtype")
      set_precision(value);
    else if (key == "backward")
      cell_.backward = word<BackwardKind>(key, value, kBackwards);
    else if (key == "data")
      cell_.data = word<DataMode>(key, value, kData);
    else if (key == "policy")
      set_policy(value);
    else if (key == "quirks")
      set_quirks(value);
    else if (key == "autograd-api")
      cell_.api = word<AutogradApi>(key, value, kApis);
    else if (key == "ds-config")
      case_.config_path = value;
    else if (key == "preemption")
      set_preemption(word<int>(key, value, kPreemptions));
    else if (key == "compute")
      cell_.sim->has_late_compute = word<int>(key, value, kCompute) == 1;
    else if (key == "nodes")
      case_.nodes = word<NodeOrder>(key, value, kNodeOrders);
    else if (key == "judge")
      case_.judge = word<Judge>(key, value, kJudges);
    else if (key == "faults")
      set_faults(value);
    else if (key == "faults-max")
      case_.faults_max = number(key, value, 1, kMostFaults);
    else
      problem_ = fmt::format("unknown setting '{}'", key);
  }

  void set_preemption(int preemption) {
    cell_.sim->preempts = preemption == 1;
    cell_.sim->is_of_ranks = preemption == 2;
  }

  std::int64_t number(const std::string& key, const std::string& value, std::int64_t least,
                      std::int64_t most) {
    std::int64_t parsed = 0;
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, parsed);
    const bool is_good = error == std::errc() && stop == end && parsed >= least && parsed <= most;
    if (!is_good) problem_ = fmt::format("{} '{}': give {} to {}", key, value, least, most);
    return parsed;
  }

  template <class Value>
  Value word(const std::string& key, const std::string& value,
             std::span<const std::string_view> words) {
    const auto at = std::ranges::find(words, value);
    if (at == words.end())
      problem_ = fmt::format("unknown {} '{}': {}", key, value, did_you_mean(value, words));
    return static_cast<Value>(at - words.begin());
  }

  void set_precision(const std::string& value) {
    const auto precision = precision_of(value);
    if (precision)
      cell_.precision = *precision;
    else
      problem_ = precision.error().text;
  }

  void set_policy(const std::string& value) {
    const auto info = find_policy(value);
    if (info)
      cell_.policy = (*info)->id;
    else
      problem_ = info.error().text;
  }

  void set_faults(const std::string& value) {
    const auto kinds = sim::parse_fault_kinds(value);
    if (kinds)
      case_.faults = *kinds;
    else
      problem_ = fmt::format(
          "unknown faults '{}': give all, or some of exception, abort, timeout, allocation, "
          "overflow, skipped_step, hook_removal, destroy with commas between them",
          value);
  }

  void set_quirks(const std::string& value) {
    const auto quirks = Quirks::parse(value);
    if (quirks)
      cell_.quirks = *quirks;
    else
      problem_ = quirks.error().text;
  }

  // What the file says about stage and precision holds where no setting says otherwise.
  Result<void> take_config() {
    const auto text = read_small_file(case_.config_path, kLargestConfig);
    if (!text) return tl::unexpected(text.error());
    const auto document = read_ds_config(*text, case_.config_path, UnknownKeys::note);
    if (!document) return tl::unexpected(document.error());
    const int stage = settings_.contains("stage") ? cell_.stage : kDocumentsStage;
    const auto run = run_config_of(*document, cell_.world_size, stage);
    if (!run)
      return fail(run.error().code, fmt::format("{}: {}", case_.config_path, run.error().text));
    const ZeroConfig* const config = &run->config;
    if (!settings_.contains("stage")) cell_.stage = config->stage;
    if (!settings_.contains("dtype")) {
      if (config->bf16.enabled) cell_.precision = Precision::bf16;
      if (config->fp16.enabled) cell_.precision = Precision::fp16;
      if (config->torch_autocast.enabled) cell_.precision = Precision::autocast;
    }
    cell_.config = *config;
    return {};
  }

  const CaseSettings& settings_;
  std::string_view where_;
  EngineCase case_ = simulated();
  TrainCell& cell_ = case_.cell;
  std::string problem_;
};

}  // namespace

Result<void> open_gpus(EngineCase& engine_case) {
  auto gpus = Gpus::open(engine_case.cell.world_size);
  if (!gpus) return tl::unexpected(gpus.error());
  engine_case.cell.gpus = std::move(*gpus);
  engine_case.cell.device = Device::cuda(0);
  return {};
}

Result<EngineCase> case_of(const std::string& scenario, const CaseSettings& settings,
                           std::string_view where) {
  return SettingsReader(settings, where).read(scenario);
}

CaseSettings settings_of(const EngineCase& engine_case) {
  const TrainCell& cell = engine_case.cell;
  const TrainCell usual;
  CaseSettings settings = {{"stage", std::to_string(cell.stage)}};
  const auto add = [&](bool is_unusual, const char* key, std::string_view value) {
    if (is_unusual) settings[key] = value;
  };
  const auto name = [](std::span<const std::string_view> words, auto value) {
    return words[static_cast<std::size_t>(value)];
  };
  const bool has_config = !engine_case.config_path.empty();
  add(cell.world_size != usual.world_size, "world-size", std::to_string(cell.world_size));
  add(cell.steps != usual.steps, "steps", std::to_string(cell.steps));
  add(has_config || cell.precision != usual.precision, "dtype", precision_name(cell.precision));
  add(cell.backward != usual.backward, "backward", backward_name(cell.backward));
  add(cell.data != usual.data, "data", data_name(cell.data));
  add(cell.policy != usual.policy, "policy", cell.policy);
  add(!cell.quirks.is_empty(), "quirks", cell.quirks.text());
  add(cell.api != usual.api, "autograd-api", name(kApis, cell.api));
  add(has_config, "ds-config", engine_case.config_path);
  add(cell.sim && !cell.sim->preempts, "preemption", cell.sim->is_of_ranks ? "ranks" : "blocked");
  add(cell.sim && cell.sim->has_late_compute, "compute", "late");
  add(engine_case.nodes != NodeOrder::faithful, "nodes", name(kNodeOrders, engine_case.nodes));
  add(engine_case.judge != Judge::values, "judge", name(kJudges, engine_case.judge));
  const bool has_faults = !engine_case.faults.empty();
  add(has_faults, "faults", sim::fault_kinds_text(engine_case.faults));
  add(has_faults && engine_case.faults_max != 1, "faults-max",
      std::to_string(engine_case.faults_max));
  return settings;
}

bool is_engine_schedule(const Schedule& schedule) {
  return schedule.settings.contains("stage");
}

}  // namespace zeroproof::train
