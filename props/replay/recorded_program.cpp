#include "props/replay/recorded_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "props/program/contract.h"
#include "props/replay/recorded_job.h"
#include "props/replay/recorded_model.h"

namespace zeroproof {
namespace {

using recorded::Act;
using recorded::Entry;
using recorded::Job;

constexpr std::int32_t kRanksMax = 4;
constexpr const char* kNoForward =
    "it has no forward of a module with parameters; record with --detail engine or more";
constexpr const char* kEngineNames = "abcdefgh";

template <class Number>
std::optional<Number> setting(const Job& job, const std::string& name) {
  const auto found = job.settings.find(name);
  if (found == job.settings.end()) return std::nullopt;
  Number number{};
  const std::string& text = found->second;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

std::int64_t elements_of(const Job& job) {
  std::int64_t sum = 0;
  for (const ParamRecord& param : job.params) {
    std::int64_t elements = 1;
    for (const std::int64_t size : param.shape) elements *= size;
    sum += elements;
  }
  return std::max<std::int64_t>(sum, 1);
}

// Buckets keep their number: they shrink as the weights do.
std::int64_t shrunk(std::int64_t bucket, const Job& job) {
  constexpr std::int64_t kElementsOfNode = 4;
  const double ratio = static_cast<double>(kElementsOfNode * std::ssize(job.params)) /
                       static_cast<double>(elements_of(job));
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>(bucket) * std::min(ratio, 1.0)));
}

ZeroConfig config_of(const Job& job) {
  ZeroConfig config{.stage = static_cast<int>(job.header.stage.value_or(0))};
  const std::string& dtype = job.header.dtype;
  config.fp16.enabled = dtype == "fp16" || dtype == "float16";
  config.bf16.enabled = dtype == "bf16" || dtype == "bfloat16";
  if (const auto steps = setting<std::int64_t>(job, "gradient_accumulation_steps"))
    config.gradient_accumulation_steps = *steps;
  if (const auto bucket = setting<std::int64_t>(job, "reduce_bucket_size"))
    config.reduce_bucket_size = shrunk(*bucket, job);
  if (const auto clipping = setting<double>(job, "gradient_clipping"))
    config.gradient_clipping = *clipping;
  config.managed_gradient_accumulation =
      setting<int>(job, "managed_gradient_accumulation").value_or(1) != 0;
  return config;
}

std::string value_name(std::size_t forward) {
  return fmt::format("g{}", forward + 1);
}

tl::unexpected<Error> no_program(const std::string& path, const std::string& why) {
  return fail(ErrorCode::usage, fmt::format("{}: no program can be made of it: {}", path, why));
}

// Which forwards each backward differentiates: of each engine whose parameters get a gradient, the
// open forward; of several the one of its place among their sequence numbers, or the oldest.
class GraphFinder {
 public:
  explicit GraphFinder(const Job& job) : job_(job) {}

  using Forwards = std::vector<std::size_t>;

  void open(std::size_t forward, EngineId engine) { open_[engine].push_back(forward); }

  // Of a graph that was kept, the same again; empty: there is no forward.
  Forwards consume(std::size_t at) {
    const recorded::Backward& backward = job_.backwards[job_.entries[at].index];
    const auto known = backward.root ? by_root_.find(*backward.root) : by_root_.end();
    if (known != by_root_.end()) return known->second;
    Forwards found;
    for (auto& [engine, forwards] : open_) {
      const auto fitting = first_fitting(forwards, at, backward);
      if (fitting == forwards.end()) continue;
      found.push_back(*fitting);
      forwards.erase(fitting);
    }
    if (found.empty()) return kept_;
    if (backward.root) by_root_[*backward.root] = found;
    kept_ = backward.keeps_graph ? found : Forwards();
    return found;
  }

 private:
  bool is_reached(std::size_t forward, const recorded::Backward& backward) const {
    return backward.modules.empty() ||
           std::ranges::any_of(job_.forwards[forward].calls, [&](const recorded::ModuleCall& call) {
             return backward.modules.contains(call.module);
           });
  }

  Forwards::iterator first_fitting(Forwards& forwards, std::size_t at,
                                   const recorded::Backward& backward) const {
    const auto fits = [&](std::size_t forward) { return is_reached(forward, backward); };
    const auto first = std::ranges::find_if(forwards, fits);
    if (first == forwards.end() || !backward.root) return first;
    const auto left = static_cast<std::size_t>(std::distance(first, forwards.end()));
    return first + static_cast<std::ptrdiff_t>(place(at, *backward.root, left));
  }

  // Of the root among those of this backward and of the next ones, `of` of them at most.
  std::size_t place(std::size_t at, std::uint64_t root, std::size_t of) const {
    std::set<std::uint64_t> roots;
    for (std::size_t i = at; i < job_.entries.size() && roots.size() < of; ++i) {
      if (job_.entries[i].act != Act::backward) continue;
      const auto& other = job_.backwards[job_.entries[i].index].root;
      if (other && !by_root_.contains(*other)) roots.insert(*other);
    }
    return static_cast<std::size_t>(std::distance(roots.begin(), roots.find(root)));
  }

  const Job& job_;
  std::map<EngineId, Forwards> open_;
  std::map<std::uint64_t, Forwards> by_root_;
  Forwards kept_;
};

class ProgramMaker {
 public:
  explicit ProgramMaker(Job job) : job_(std::move(job)) {}

  Result<RecordedProgram> make(const std::string& path) {
    name_engines();
    if (engines_.empty()) return no_program(path, kNoForward);
    made_.program.world.ranks = std::clamp(job_.header.world, 1, kRanksMax);
    made_.program.config = config_of(job_);
    for (const auto& [id, name] : engines_) {
      models_[id] = recorded::model_of(job_, id, "model_" + name, id == engines_.begin()->first);
      made_.program.models.push_back(models_[id].model);
      made_.program.engines.push_back({.name = name, .model = "model_" + name});
    }
    bodies_.push_back({});
    for (std::size_t i = 0; i < job_.entries.size(); ++i) add(i);
    while (bodies_.size() > 1) leave();
    made_.program.body = std::move(bodies_.front().body);
    for (const auto& [what, times] : job_.left_out) made_.left_out[what] += times;
    if (made_.program.body.empty()) return no_program(path, kNoForward);
    if (const auto contract = program::Contract::of(made_.program); !contract)
      return no_program(path, contract.error().text);
    return std::move(made_);
  }

 private:
  struct OpenBody {
    program::Block block;
    program::Body body;
  };

  void name_engines() {
    for (const Entry& entry : job_.entries)
      if (entry.act == Act::forward && !engines_.contains(entry.engine) && engines_.size() < 8)
        engines_.emplace(entry.engine, std::string(1, kEngineNames[engines_.size()]));
  }

  const std::string& engine_of(const Entry& entry) const {
    const auto found = engines_.find(entry.engine);
    return found == engines_.end() ? engines_.begin()->second : found->second;
  }

  void add(std::size_t at) {
    const Entry& entry = job_.entries[at];
    switch (entry.act) {
      case Act::forward:
        return add_forward(entry);
      case Act::backward:
        return add_backward(at);
      case Act::scale:
        scaled_by_ = engine_of(entry);
        return;
      case Act::step:
        return put(program::Step{engine_of(entry)});
      case Act::zero_grad:
        return put(program::ZeroGrad{engine_of(entry)});
      case Act::enter:
        return enter(entry);
      case Act::leave:
        if (bodies_.size() > 1) leave();
        return;
    }
  }

  void enter(const Entry& entry) {
    using Kind = program::Block::Kind;
    const Kind kind = entry.is_no_sync ? Kind::no_sync : Kind::coalesce;
    bodies_.push_back({.block = {.kind = kind, .engine = engine_of(entry)}, .body = {}});
  }

  void leave() {
    OpenBody done = std::move(bodies_.back());
    bodies_.pop_back();
    done.block.body = std::move(done.body);
    put(std::move(done.block));
  }

  void add_forward(const Entry& entry) {
    program::Forward forward{.engine = engine_of(entry), .as = value_name(entry.index)};
    const recorded::RecordedModel& model = models_.at(entry.engine);
    if (!model.runs_any(job_.forwards[entry.index])) {
      ++made_.left_out["a forward that runs no module with parameters"];
      return;
    }
    for (const std::string& module : model.skipped(job_.forwards[entry.index]))
      forward.skips.push_back({.module = module});
    graphs_.open(entry.index, entry.engine);
    put(std::move(forward));
  }

  void add_backward(std::size_t at) {
    const Entry& entry = job_.entries[at];
    const recorded::Backward& recorded = job_.backwards[entry.index];
    const GraphFinder::Forwards forwards = graphs_.consume(at);
    if (forwards.empty()) {
      ++made_.left_out["a backward of a graph without a forward"];
      return;
    }
    if (recorded.raised) {  // the job went another way from there on
      ++made_.left_out["a backward that raised"];
      return;
    }
    program::Backward backward{.value = value_of(forwards, entry.index),
                               .retain_graph = recorded.keeps_graph};
    if (recorded.is_of_engine) backward.engine = engine_of(entry);
    if (const auto scaler = std::exchange(scaled_by_, {}); scaler && !recorded.is_of_engine) {
      put(program::Scale{.engine = *scaler, .value = backward.value, .as = "s" + backward.value});
      backward.value = "s" + backward.value;
    }
    if (!recorded.is_in_no_sync) return put(std::move(backward));
    program::Block block{.kind = program::Block::Kind::no_sync, .engine = engines_.begin()->second};
    if (is_last_forward(forwards.front())) {
      block.body.push_back(std::move(bodies_.back().body.back()));
      bodies_.back().body.pop_back();
    }
    block.body.push_back({std::move(backward)});
    put(std::move(block));
  }

  // A loss of several engines is the sum of theirs.
  std::string value_of(const GraphFinder::Forwards& forwards, std::size_t backward) {
    if (forwards.size() == 1) return value_name(forwards.front());
    program::Sum sum{.values = {}, .as = fmt::format("sum{}", backward + 1)};
    for (const std::size_t forward : forwards) sum.values.push_back(value_name(forward));
    std::string name = sum.as;
    put(std::move(sum));
    return name;
  }

  // no_sync is around the forward, too.
  bool is_last_forward(std::size_t index) const {
    const program::Body& body = bodies_.back().body;
    if (body.empty()) return false;
    const auto* forward = std::get_if<program::Forward>(&body.back().kind);
    return forward && forward->as == value_name(index);
  }

  template <class Kind>
  void put(Kind kind) {
    bodies_.back().body.push_back({std::move(kind)});
  }

  const Job job_;
  GraphFinder graphs_{job_};
  std::map<EngineId, std::string> engines_;
  std::map<EngineId, recorded::RecordedModel> models_;
  std::vector<OpenBody> bodies_;          // the program's, and those of open contexts
  std::optional<std::string> scaled_by_;  // the loss of the next backward by hand
  RecordedProgram made_;
};

}  // namespace

Result<RecordedProgram> program_of_recording(const std::string& path, std::int64_t steps_max) {
  auto job = recorded::read_job(path, steps_max);
  if (!job) return tl::unexpected(job.error());
  return ProgramMaker(std::move(*job)).make(path);
}

}  // namespace zeroproof
