// The skipped-frame fallback: P81 to P85 (docs/spec/zero.md 5). Its events are calls named
// fallback.*; `index` is the number of a graph, `params` what it is about.
#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "props/monitors.h"
#include "props/parameter_book.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

bool is_call(const Fact& fact, Method method) {
  return fact.method == method && fact.event->kind == EventKind::engine_call;
}

// Which graphs hold which parameters, by what the fallback says.
class Claims {
 public:
  void observe(const Fact& fact) {
    if (is_call(fact, Method::fallback_claim))
      graphs_[{fact.engine, fact.event->index}].insert(fact.event->params.begin(),
                                                       fact.event->params.end());
    if (is_call(fact, Method::fallback_drop)) graphs_.erase({fact.engine, fact.event->index});
    if (is_call(fact, Method::fallback_abandon))
      std::erase_if(graphs_, [&](const auto& one) { return one.first.first == fact.engine; });
    if (fact.method == Method::release_all)
      is_releasing_all_ = fact.event->kind == EventKind::engine_call;
  }

  // Before a step, which changes the values: it partitions all, claimed or not.
  bool is_releasing_all() const { return is_releasing_all_; }

  // -1: none.
  std::int64_t graph_of(NameId param) const {
    for (const auto& [key, params] : graphs_)
      if (params.contains(param)) return key.second;
    return -1;
  }

  bool is_empty() const { return graphs_.empty(); }

  void append(std::string& bytes) const {
    for (const auto& [key, params] : graphs_) {
      append_bytes(bytes, key.second);
      for (const NameId param : params) append_bytes(bytes, param.value);
    }
    append_bytes(bytes, is_releasing_all_);
  }

 private:
  std::map<std::pair<EngineId, std::int64_t>, std::set<NameId>> graphs_;
  bool is_releasing_all_ = false;
};

// P81. A backward that begins finds a claim on what the forwards since the last one gathered:
// without a claim the parameters are freed. A step partitions all, for the values change.
class ClaimedNeverPartitioned final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    claims_.observe(fact);
    if (is_call(fact, Method::fallback_gather) && fact.is_in_forward && fact.user_task < 0)
      gathered_[fact.engine].insert(fact.event->params.begin(), fact.event->params.end());
    if (is_call(fact, Method::fallback_abandon) || is_call(fact, Method::fallback_claim))
      gathered_.erase(fact.engine);
    if (fact.kind == FactKind::prologue_begin) judge_unclaimed(fact);
    if (claims_.is_empty()) return;
    mark_applicable();
    if (fact.event->kind != EventKind::zparam_partition || claims_.is_releasing_all()) return;
    for (const NameId param : fact.event->params) {
      const std::int64_t graph = claims_.graph_of(param);
      if (graph < 0) continue;
      report(place(*fact.event),
             fmt::format("{} was partitioned at lc {} while graph {} claimed it", text(param),
                         fact.event->lc, graph));
    }
  }

 protected:
  void append_memory(std::string& bytes) const override {
    claims_.append(bytes);
    for (const auto& [engine, params] : gathered_)
      for (const NameId param : params) append_bytes(bytes, param.value);
  }

 private:
  void judge_unclaimed(const Fact& fact) {
    const auto gathered = gathered_.find(fact.engine);
    if (gathered == gathered_.end()) return;
    const std::set<NameId> params = std::move(gathered->second);
    gathered_.erase(gathered);
    if (!claims_.is_empty()) return;  // an inference forward gathers without a claim
    for (const NameId param : params) {
      if (fact.parameters->residence(param) != Residence::not_available) continue;
      report(place(*fact.event),
             fmt::format("{} was gathered in a forward of {}, claimed by no graph and gone when "
                         "the backward began at lc {}",
                         text(param), engine_name(fact.engine), fact.event->lc));
      return;
    }
  }

  Claims claims_;
  std::map<EngineId, std::set<NameId>> gathered_;  // in forwards, not claimed yet
};

// P82. Gathering takes a parameter over; then no other engine gives it back. Any engine may
// partition a parameter without an owner (left by a user's context, say).
class OneOwner final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (is_call(fact, Method::fallback_gather))
      for (const NameId param : fact.event->params) {
        mark_applicable();
        owners_[param] = fact.engine;
      }
    if (!is_call(fact, Method::fallback_release)) return;
    for (const NameId param : fact.event->params) {
      const auto owner = owners_.find(param);
      if (owner == owners_.end()) continue;
      if (owner->second != fact.engine)
        report(place(*fact.event),
               fmt::format("{} gave {} back at lc {}, which {} owned", engine_name(fact.engine),
                           text(param), fact.event->lc, engine_name(owner->second)));
      owners_.erase(owner);
    }
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [param, engine] : owners_) append_bytes(bytes, param.value + engine.value);
  }

 private:
  std::map<NameId, EngineId> owners_;
};

// P83.
class GuardsGatherNothing final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.method == Method::fallback_guard) {
      mark_applicable();
      depth_[fact.event->thread] += fact.event->kind == EventKind::engine_call ? 1 : -1;
    }
    const EventKind kind = fact.event->kind;
    if (kind != EventKind::coll_issue && kind != EventKind::zparam_gather_begin) return;
    const auto open = depth_.find(fact.event->thread);
    if (open == depth_.end() || open->second <= 0) return;
    report(place(*fact.event),
           fmt::format("a guard was evaluated with a collective at lc {}", fact.event->lc));
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [thread, depth] : depth_) append_bytes(bytes, thread * 256 + depth);
  }

 private:
  std::map<std::int32_t, std::int32_t> depth_;  // by thread
};

// P84.
class ClaimsEndWithBackward final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.engine.is_none()) return;
    Engine& engine = engines_[fact.engine];
    if (is_call(fact, Method::fallback_abandon)) abandon(fact, engine);
    if (is_call(fact, Method::fallback_claim)) engine.claimed.insert(fact.event->index);
    if (is_call(fact, Method::fallback_start) && engine.claimed.contains(fact.event->index))
      engine.started.insert(fact.event->index);
    if (is_call(fact, Method::fallback_drop)) drop(fact, engine);
    if (fact.kind != FactKind::backward_done || !fact.tally->is_user_backward) return;
    if (!engine.claimed.empty()) mark_applicable();
    if (fact.has_raised || fact.tally->epilogues == 0 || engine.started.empty()) return;
    report(place(*fact.event),
           fmt::format("graph {} of {} kept its claims at lc {} although its backward completed",
                       *engine.started.begin(), engine_name(fact.engine), fact.event->lc));
    engine.started.clear();
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [id, engine] : engines_) {
      append_bytes(bytes, id.value);
      for (const std::int64_t graph : engine.claimed) append_bytes(bytes, graph);
      for (const std::int64_t graph : engine.started) append_bytes(bytes, -graph);
    }
  }

 private:
  struct Engine {
    std::set<std::int64_t> claimed;
    std::set<std::int64_t> started;
  };

  // The user may give everything up between backwards; a backward may not.
  void abandon(const Fact& fact, Engine& engine) {
    const bool is_users = fact.task < 0 && !fact.is_in_backward;
    if (!engine.claimed.empty()) mark_applicable();
    if (!engine.claimed.empty() && !is_users)
      report(place(*fact.event),
             fmt::format("a backward of {} dropped the claims of all graphs at lc {}, graph {} "
                         "among them",
                         engine_name(fact.engine), fact.event->lc, *engine.claimed.rbegin()));
    engine = Engine{};
  }

  void drop(const Fact& fact, Engine& engine) {
    const std::int64_t graph = fact.event->index;
    mark_applicable();
    if (engine.claimed.contains(graph) && !engine.started.contains(graph))
      report(place(*fact.event),
             fmt::format("the claims of graph {} of {} were dropped at lc {} although no backward "
                         "had reached it",
                         graph, engine_name(fact.engine), fact.event->lc));
    engine.claimed.erase(graph);
    engine.started.erase(graph);
  }

  std::map<EngineId, Engine> engines_;
};

// P85, of what events show: both holds end before the one partition. That a modifier rank's
// update survives it is a matter of numbers. A step partitions all, for the values change.
class PartitionedOnceAfterBoth final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    claims_.observe(fact);
    if (is_call(fact, Method::fallback_drop) || is_call(fact, Method::fallback_abandon)) settle();
    if (fact.method == Method::gathered_parameters) see_context(fact);
    if (is_call(fact, Method::fallback_claim)) note_both();
    if (fact.event->kind == EventKind::zparam_partition && !claims_.is_releasing_all())
      for (const NameId param : fact.event->params) see_partition(fact, param);
    if (fact.kind == FactKind::forward_begin && fact.user_task < 0) judge_left(fact);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    claims_.append(bytes);
    for (const auto& [param, depth] : in_context_) append_bytes(bytes, param.value + depth);
    for (const NameId param : both_) append_bytes(bytes, param.value);
    for (const NameId param : due_) append_bytes(bytes, -param.value);
  }

 private:
  void see_context(const Fact& fact) {
    if (fact.event->kind == EventKind::engine_call) {
      contexts_[fact.engine].push_back(fact.event->params);
      for (const NameId param : fact.event->params) in_context_[param] += 1;
      return note_both();
    }
    auto& open = contexts_[fact.engine];
    if (open.empty()) return;
    for (const NameId param : open.back())
      if (--in_context_[param] <= 0) in_context_.erase(param);
    open.pop_back();
    settle();
  }

  void note_both() {
    for (const auto& [param, depth] : in_context_)
      if (claims_.graph_of(param) >= 0 && both_.insert(param).second) mark_applicable();
  }

  // Moves parameters that are no longer held to those that are due.
  void settle() {
    std::erase_if(both_, [&](NameId param) {
      if (in_context_.contains(param) || claims_.graph_of(param) >= 0) return false;
      due_.insert(param);
      return true;
    });
  }

  // The context's own partition at its exit comes inside its bracket.
  void see_partition(const Fact& fact, NameId param) {
    if (due_.erase(param) > 0) return;
    if (!both_.contains(param)) return;
    const std::int64_t graph = claims_.graph_of(param);
    if (graph < 0) {
      both_.erase(param);
      return;
    }
    report(place(*fact.event),
           fmt::format("{} was partitioned at lc {}, at the end of a user context, while graph {} "
                       "claimed it",
                       text(param), fact.event->lc, graph));
  }

  void judge_left(const Fact& fact) {
    for (const NameId param : due_) {
      const ParameterBook::Parameter* known = fact.parameters->find(param);
      if (known == nullptr || known->is_persistent || known->residence != Residence::available)
        continue;
      report(place(*fact.event),
             fmt::format("{} was still gathered at lc {}, after its user context and its claims "
                         "had ended",
                         text(param), fact.event->lc));
    }
    due_.clear();
  }

  Claims claims_;
  std::map<EngineId, std::vector<std::vector<NameId>>> contexts_;
  std::map<NameId, std::int32_t> in_context_;
  std::set<NameId> both_;  // under a context and a claim
  std::set<NameId> due_;   // no longer under either
};

}  // namespace

std::unique_ptr<Monitor> make_claimed_never_partitioned(const Monitor::Context& context) {
  return std::make_unique<ClaimedNeverPartitioned>(context);
}
std::unique_ptr<Monitor> make_one_owner(const Monitor::Context& context) {
  return std::make_unique<OneOwner>(context);
}
std::unique_ptr<Monitor> make_guards_gather_nothing(const Monitor::Context& context) {
  return std::make_unique<GuardsGatherNothing>(context);
}
std::unique_ptr<Monitor> make_claims_end_with_backward(const Monitor::Context& context) {
  return std::make_unique<ClaimsEndWithBackward>(context);
}
std::unique_ptr<Monitor> make_partitioned_once_after_both(const Monitor::Context& context) {
  return std::make_unique<PartitionedOnceAfterBoth>(context);
}

}  // namespace zeroproof
