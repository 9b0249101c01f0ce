// Our engine against recorded runs of DeepSpeed: the same under upstream's policy, and right under
// the exact one where upstream is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "model/cpu_ops.h"
#include "model/transforms/transforms.h"
#include "props/conform/deepspeed_conform.h"
#include "props/replay/trace_paths.h"
#include "props/report/conform_report.h"
#include "zeroproof/model/functions.h"

namespace zeroproof {
namespace {

constexpr const char* kFolder = ZP_SOURCE_DIR "/tests/traces/deepspeed-edaa7221-cuda";
constexpr double kFloat32Tolerance = 1e-5;

using Recordings = std::vector<DeepspeedRecording>;

std::set<std::vector<std::string>> runs_in(const std::string& folder) {
  std::set<std::vector<std::string>> runs;
  const auto paths = trace_paths(folder);
  EXPECT_TRUE(paths);
  for (const std::string& path : *paths) {
    const auto ranks = rank_paths(path);
    EXPECT_TRUE(ranks) << ranks.error().text;
    if (ranks) runs.insert(*ranks);
  }
  return runs;
}

Recordings read(const std::vector<std::string>& paths) {
  Recordings ranks;
  for (const std::string& path : paths) {
    auto recorded = read_deepspeed_recording(path);
    EXPECT_TRUE(recorded) << recorded.error().text;
    ranks.push_back(std::move(*recorded));
  }
  return ranks;
}

// Of releases, one folder a release.
constexpr const char* kReleases = ZP_SOURCE_DIR "/tests/data/conform";

// Both ranks of a run in float32.
Recordings read(const std::string& scenario, int stage) {
  const std::string run =
      std::string(kFolder) + "/" + scenario + "__z" + std::to_string(stage) + "_fp32_w2_r";
  return read({run + "0.jsonl.gz", run + "1.jsonl.gz"});
}

// --- the upstream policy -----------------------------------------------------------------------

struct BundledRelease {
  Release release;  // 0.0.0: a commit without one
  std::size_t runs;
  std::size_t scenarios;  // 23 have a port
};

constexpr std::array<BundledRelease, 4> kBundledReleases = {{
    {{0, 0, 0}, 140, 17},
    {{0, 18, 3}, 8, 5},
    {{0, 18, 9}, 13, 10},
    {{0, 19, 8}, 56, 23},
}};

struct Bundled {
  Recordings ranks;
  ConformOutcome outcome;
};

bool is_settled(const ConformOutcome& outcome) {
  return outcome.status == ConformStatus::agreed || outcome.status == ConformStatus::explained;
}

const std::vector<Bundled>& bundled() {
  static const std::vector<Bundled> kAll = [] {
    std::vector<Bundled> all;
    for (const char* folder : {kFolder, kReleases})
      for (const auto& paths : runs_in(folder)) {
        all.push_back({read(paths), {}});
        all.back().outcome = conform_deepspeed(all.back().ranks);
      }
    return all;
  }();
  return kAll;
}

// The bundled runs of a release; 0.0.0: of a commit without one.
std::vector<const Bundled*> bundled_of(Release release) {
  std::vector<const Bundled*> runs;
  for (const Bundled& run : bundled())
    if (run.ranks.at(0).release == release) runs.push_back(&run);
  return runs;
}

std::set<std::string> programs_of(const std::vector<const Bundled*>& runs) {
  std::set<std::string> programs;
  for (const Bundled* run : runs) programs.insert(run->ranks.at(0).header.program);
  return programs;
}

TEST(EngineConform, Agrees_with_every_bundled_run_of_DeepSpeed_or_says_why_not) {
  for (const Bundled& run : bundled()) {
    EXPECT_TRUE(is_settled(run.outcome)) << run.outcome.program << ": " << run.outcome.detail;
    EXPECT_LT(0U, run.outcome.tokens);
  }
  for (const auto& [release, count, scenarios] : kBundledReleases) {
    EXPECT_EQ(count, bundled_of(release).size()) << release.text();
    EXPECT_EQ(scenarios, programs_of(bundled_of(release)).size()) << release.text();
  }
}

TEST(EngineConform, Runs_each_recording_under_the_policy_of_its_release) {
  const std::map<Release, std::string> policies = {
      {{0, 0, 0}, "deepspeed-0.18.7"},  {{0, 18, 3}, "deepspeed-0.18.3"},
      {{0, 18, 6}, "deepspeed-0.18.5"}, {{0, 19, 5}, "deepspeed-0.18.7"},
      {{0, 19, 8}, "deepspeed-0.19.6"}, {{0, 25, 0}, "deepspeed-0.19.6"},
  };
  DeepspeedRecording recorded;
  for (const auto& [release, policy] : policies) {
    recorded.release = release;
    EXPECT_EQ(policy, recorded_behaviour(recorded).policy) << release.text();
  }
}

// The table of deepspeed_differences.json says from which release on engine.backward queues its
// own callback.
TEST(EngineConform, Queues_the_callback_of_the_tracker_from_0_19_6_on) {
  std::size_t with_callback = 0;
  for (const Bundled* run : bundled_of({0, 19, 8})) {
    const auto is_tracker = [](const std::string& token) {
      return token.find("_EngineBackwardGraphTracker") != std::string::npos;
    };
    Recordings ranks = run->ranks;
    const bool is_agreed = run->outcome.status == ConformStatus::agreed;
    if (!is_agreed || std::ranges::none_of(ranks.at(0).tokens, is_tracker)) continue;
    ++with_callback;
    for (DeepspeedRecording& rank : ranks) rank.release = {0, 19, 5};
    EXPECT_EQ(ConformStatus::order_mismatch, conform_deepspeed(ranks).status)
        << run->outcome.program;
  }
  EXPECT_LT(20U, with_callback);
}

// A run of 0.18.9 whose clipping, or whose linear, were those of a later release.
TEST(EngineConform, Has_the_defaults_of_the_recorded_release) {
  struct Change {
    const char* run;
    Release before;  // the last release that behaves as recorded
    Release since;
    ConformStatus otherwise;
  };
  const std::vector<Change> changes = {
      {"non_scalar__z1", {0, 19, 2}, {0, 19, 3}, ConformStatus::value_mismatch},
      {"mlp__z3", {0, 19, 2}, {0, 19, 4}, ConformStatus::order_mismatch},
  };
  for (const auto& [run, before, since, otherwise] : changes) {
    const std::string folder = std::string(kReleases) + "/deepspeed-0.18.9-cpu/";
    Recordings ranks = read({folder + run + "_fp32_w1_r0.jsonl.gz"});
    ranks.at(0).release = before;
    EXPECT_TRUE(is_settled(conform_deepspeed(ranks))) << run;
    ranks.at(0).release = since;
    EXPECT_EQ(otherwise, conform_deepspeed(ranks).status) << run;
  }
}

TEST(EngineConform, Explains_no_run_that_agrees) {
  std::map<const KnownDifference*, int> uses;
  for (const Bundled& run : bundled()) {
    const KnownDifference* known = find_known_difference(run.ranks.at(0));
    if (!known) continue;
    ++uses[known];
    EXPECT_EQ(ConformStatus::explained, run.outcome.status) << run.outcome.program;
  }
  for (const KnownDifference& known : known_differences()) {
    EXPECT_LT(0, uses[&known]) << known.reason;
    EXPECT_FALSE(known.reason.empty());
  }
}

// Upstream releases what a set holds: in the traces its order differs between ranks of one run.
TEST(EngineConform, Accepts_any_order_of_releases_where_upstream_has_none) {
  std::set<std::string> races;
  for (const Bundled& run : bundled())
    if (run.outcome.is_race) races.insert(run.ranks.at(0).header.program);
  const std::set<std::string> expected = {"frozen_ckpt_nonreentrant", "frozen_ckpt_reentrant",
                                          "leaf_module"};
  EXPECT_EQ(expected, races);
}

TEST(EngineConform, Sees_each_kind_of_difference) {
  const Recordings ranks = read("mlp", 1);
  ASSERT_EQ(ConformStatus::agreed, conform_deepspeed(ranks).status);

  Recordings swapped = ranks;
  std::swap(swapped[1].tokens.at(4), swapped[1].tokens.at(5));
  EXPECT_EQ(ConformStatus::order_mismatch, conform_deepspeed(swapped).status);

  Recordings larger = ranks;
  larger[1].collectives.at(0).bytes += 4;
  EXPECT_EQ(ConformStatus::collective_mismatch, conform_deepspeed(larger).status);

  Recordings off = ranks;
  for (TensorRecord& tensor : off[1].tensors)
    if (tensor.role == "grad") tensor.values->at(0) += 1e-4;
  EXPECT_EQ(ConformStatus::value_mismatch, conform_deepspeed(off).status);

  Recordings missing = ranks;
  missing[0].tensors.push_back({"grad", "it0:l3.weight", Shape{1}, "float32", {{1.0}}});
  EXPECT_EQ(ConformStatus::value_mismatch, conform_deepspeed(missing).status);
}

TEST(EngineConform, Without_quirks_the_engine_is_not_what_was_recorded) {
  const auto status_of = [](const char* scenario, int stage, const EngineBehaviour& behaviour) {
    return conform_deepspeed(read(scenario, stage), behaviour).status;
  };
  const EngineBehaviour without = {.quirks = {}};
  EXPECT_EQ(ConformStatus::value_mismatch, status_of("two_losses_retain", 1, without));
  EXPECT_EQ(ConformStatus::order_mismatch, status_of("two_losses_retain", 3, without));
  EXPECT_EQ(ConformStatus::order_mismatch, status_of("exception_recovery", 2, without));
}

TEST(EngineConform, Needs_the_traces_of_all_ranks) {
  const auto paths = rank_paths(std::string(kFolder) + "/mlp__z1_fp32_w2_r1.jsonl.gz");
  ASSERT_TRUE(paths);
  ASSERT_EQ(2U, paths->size());
  EXPECT_TRUE(paths->at(0).ends_with("mlp__z1_fp32_w2_r0.jsonl.gz"));
  const auto outcome = conform_deepspeed({paths->at(0) + ".gone", paths->at(1)});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(ErrorCode::unreadable, outcome.error().code);
}

// --- the exact policy --------------------------------------------------------------------------

// What the scenario computes, by plain autograd on the recorded numbers of one rank.
class Baseline {
 public:
  Baseline(const DeepspeedRecording& recorded, DeepspeedModel kind)
      : recorded_(recorded), module_(make_deepspeed_model(kind, {.parameter = parameters()})) {}

  Autograd& autograd() { return autograd_; }
  TensorList operator()(const TensorList& inputs) { return (*module_)(autograd_, inputs); }
  Tensor input(std::size_t nth) const {
    const TensorRecord& record = *recorded_.find("input", nth);
    return Tensor::of(*record.values, *record.shape, DType::float32);
  }
  void clear_gradients() const {
    for (const nn::NamedParameter& parameter : module_->named_parameters())
      parameter.tensor.set_grad({});
  }
  std::map<std::string, std::vector<double>> gradients() const {
    std::map<std::string, std::vector<double>> all;
    for (const nn::NamedParameter& parameter : module_->named_parameters())
      if (parameter.tensor.grad().is_defined())
        all[parameter.name] = parameter.tensor.grad().values();
    return all;
  }

 private:
  std::function<Tensor(const std::string&)> parameters() const {
    return [this](const std::string& name) {
      for (std::size_t i = 0; const TensorRecord* record = recorded_.find("param", i); ++i) {
        if (record->name != name) continue;
        const Tensor made = Tensor::of(*record->values, *record->shape, DType::float32);
        made.set_requires_grad(true);
        return made;
      }
      return Tensor();
    };
  }

  const DeepspeedRecording& recorded_;
  CpuOps ops_;
  Autograd autograd_{ops_};
  std::shared_ptr<nn::Module> module_;
};

void expect_close(const std::vector<double>& want, const std::vector<double>& got,
                  const std::string& name) {
  ASSERT_EQ(want.size(), got.size()) << name;
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(want[i], got[i], kFloat32Tolerance) << name << " " << i;
}

// `differentiate` runs forward and backward of one rank.
void expect_mean_gradients(const Recordings& recorded, DeepspeedModel kind,
                           const std::function<void(Baseline&)>& differentiate,
                           const Recordings& ours) {
  std::map<std::string, std::vector<double>> mean;
  for (const DeepspeedRecording& rank : recorded) {
    Baseline baseline(rank, kind);
    differentiate(baseline);
    for (const auto& [name, values] : baseline.gradients()) {
      std::vector<double>& sum = mean[name];
      sum.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        sum[i] += values[i] / static_cast<double>(recorded.size());
    }
  }
  EXPECT_FALSE(mean.empty());
  for (const DeepspeedRecording& rank : ours) {
    std::size_t compared = 0;
    for (std::size_t i = 0; const TensorRecord* grad = rank.find("grad", i); ++i) {
      const auto want = mean.find(grad->name.substr(grad->name.find(':') + 1));
      if (want == mean.end()) {
        const bool is_zero = !grad->values || std::ranges::all_of(*grad->values, [](double value) {
          return value == 0.0;
        });
        EXPECT_TRUE(is_zero) << grad->name;
        continue;
      }
      ASSERT_TRUE(grad->values) << grad->name;
      expect_close(want->second, *grad->values, grad->name);
      ++compared;
    }
    EXPECT_EQ(mean.size(), compared);
  }
}

// The first ranks of a run of two.
Recordings read_ranks(const std::string& scenario, int stage, int world) {
  Recordings ranks = read(scenario, stage);
  ranks.resize(static_cast<std::size_t>(world));
  return ranks;
}

// The recorded run of stage 1 went to its end and so has all inputs.
Recordings run_exactly(Recordings& recorded, int stage) {
  for (DeepspeedRecording& rank : recorded) rank.header.stage = stage;
  return run_as_recorded(recorded, {.policy = "exact", .quirks = {}});
}

void expect_no_error(const Recordings& ours, const std::string& expected = {}) {
  for (const DeepspeedRecording& rank : ours) {
    for (const std::string& token : rank.tokens)
      if (token.starts_with("exc:")) {
        EXPECT_EQ(expected, token);
      }
    EXPECT_EQ("m:step_end", rank.tokens.back());
  }
}

template <class Body>
void for_stages_and_worlds(const Body& body) {
  for (const int stage : {0, 1, 2, 3})
    for (const int world : {1, 2}) {
      SCOPED_TRACE("stage " + std::to_string(stage) + " world " + std::to_string(world));
      body(stage, world);
    }
}

TEST(EngineExact, Two_losses_through_one_graph_give_the_sum_of_their_gradients) {
  for_stages_and_worlds([](int stage, int world) {
    Recordings recorded = read_ranks("two_losses_retain", 1, world);
    const Recordings ours = run_exactly(recorded, stage);
    expect_no_error(ours);
    expect_mean_gradients(
        recorded, DeepspeedModel::two_losses,
        [](Baseline& baseline) {
          const TensorList losses = baseline({baseline.input(0)});
          baseline.autograd().backward({losses.at(0), losses.at(1)}, {}, {});
        },
        ours);
  });
}

TEST(EngineExact, An_undefined_gradient_is_none) {
  for_stages_and_worlds([](int stage, int world) {
    Recordings recorded = read_ranks("undefined_grad", 1, world);
    const Recordings ours = run_exactly(recorded, stage);
    expect_no_error(ours);
    expect_mean_gradients(
        recorded, DeepspeedModel::undefined_grad,
        [](Baseline& baseline) {
          baseline.autograd().backward(baseline({baseline.input(0)}).at(0));
        },
        ours);
  });
}

TEST(EngineExact, Training_goes_on_after_an_exception_in_backward) {
  for_stages_and_worlds([](int stage, int world) {
    Recordings recorded = read_ranks("exception_recovery", 1, world);
    const Recordings ours = run_exactly(recorded, stage);
    expect_no_error(ours, "exc:ValueError");
    expect_mean_gradients(
        recorded, DeepspeedModel::raising,
        [](Baseline& baseline) {
          Autograd& ag = baseline.autograd();
          const Tensor failing = baseline({baseline.input(0)}).at(0);
          EXPECT_THROW(ag.backward(failing), train::Injected);
          baseline.clear_gradients();
          ag.backward(baseline({baseline.input(1)}).at(0));
        },
        ours);
  });
}

using Transform = TensorList (*)(Autograd& ag, const func::Function& forward, const Tensor& x);

// The transform of a bare model, and the ordinary step that follows.
void expect_transform(const std::string& scenario, const std::string& recorded_as, Transform make) {
  for_stages_and_worlds([&](int stage, int world) {
    Recordings recorded = read_ranks(recorded_as, 2, world);
    for (DeepspeedRecording& rank : recorded) rank.header.program = scenario;
    const Recordings ours = run_exactly(recorded, stage);
    expect_no_error(ours);
    for (std::size_t rank = 0; rank < ours.size(); ++rank) {
      Baseline baseline(recorded[rank], DeepspeedModel::mlp);
      const auto forward = [&](const TensorList& args) { return baseline(args); };
      const TensorList want = make(baseline.autograd(), forward, baseline.input(0));
      for (std::size_t i = 0; i < want.size(); ++i) {
        const TensorRecord* got = ours[rank].find("transform", i);
        ASSERT_NE(nullptr, got);
        expect_close(want[i].values(), *got->values, scenario);
      }
    }
    expect_mean_gradients(
        recorded, DeepspeedModel::mlp,
        [](Baseline& baseline) {
          baseline.autograd().backward(baseline({baseline.input(1)}).at(0));
        },
        ours);
  });
}

TEST(EngineExact, Grad_through_the_engine_is_that_of_the_bare_model) {
  expect_transform("func_grad", "func_grad",
                   [](Autograd& ag, const func::Function& forward, const Tensor& x) {
                     return func::grad(ag, forward)({x});
                   });
}

TEST(EngineExact, Grad_and_value_through_the_engine_are_those_of_the_bare_model) {
  expect_transform("func_grad_and_value", "func_grad_and_value",
                   [](Autograd& ag, const func::Function& forward, const Tensor& x) {
                     const auto made = func::grad_and_value(ag, forward, {x});
                     return TensorList{made.grads.at(0), made.value};
                   });
}

TEST(EngineExact, Jacrev_through_the_engine_is_that_of_the_bare_model) {
  expect_transform("func_jacrev", "func_grad",
                   [](Autograd& ag, const func::Function& forward, const Tensor& x) {
                     return func::jacrev(ag, forward)({x});
                   });
}

TEST(EngineExact, Vmapped_grad_through_the_engine_is_that_of_the_bare_model) {
  expect_transform("func_vmap_grad", "func_vmap_grad",
                   [](Autograd& ag, const func::Function& forward, const Tensor& x) {
                     return func::vmap(ag, func::grad(ag, forward))({x});
                   });
}

}  // namespace
}  // namespace zeroproof
