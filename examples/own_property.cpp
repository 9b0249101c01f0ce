// A property of one's own, judged in every legal order of hooks: a step that no gradient feeds.
#include <cstdio>
#include <map>

#include "zeroproof/model/state_bytes.h"
#include "zeroproof/props/added_property.h"
#include "zeroproof/props/explore.h"

namespace {

using namespace zeroproof;

class StepHasGradient final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.kind == FactKind::work_end) hooks_[fact.engine] += 1;
    if (fact.kind != FactKind::step_begin) return;
    mark_applicable();
    if (hooks_[fact.engine] == 0)
      report(place(*fact.event), engine_name(fact.engine) + " stepped, and no gradient hook fired");
    hooks_[fact.engine] = 0;
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, hooks] : hooks_) append_bytes(bytes, hooks);
  }

 private:
  std::map<EngineId, int> hooks_;  // since the last step
};

const AddedProperty kAdded = AddedProperty::of<StepHasGradient>(
    {"step.has_gradient", "U1", "I2", "a gradient hook has fired since the step before",
     "examples/own_property.cpp", Expectation::always, only(Scope::explore)});

}  // namespace

int main(int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "two_steps.json";
  const auto answer = explore_every_order({.scenario = scenario});
  if (!answer) return std::fprintf(stderr, "%s\n", answer.error().text.c_str()), 2;
  std::size_t falsified = 0;
  for (const Verdict& verdict : answer->verdicts) {
    if (verdict.status != Status::falsified) continue;
    ++falsified;
    std::printf("%.*s: falsified\n", static_cast<int>(verdict.property->id.size()),
                verdict.property->id.data());
    for (const Finding& finding : verdict.findings) std::printf("  %s\n", finding.text.c_str());
  }
  std::printf("%zu properties in %d executions, %zu falsified\n", answer->verdicts.size(),
              static_cast<int>(answer->executions), falsified);
  return falsified == 1 ? 0 : 1;
}
