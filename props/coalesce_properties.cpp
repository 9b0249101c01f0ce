// A coalesced block reduces once, at its end: P52, P53 (docs/spec/zero.md 2.13).
#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "props/monitors.h"
#include "zeroproof/model/state_bytes.h"

namespace zeroproof {
namespace {

// P52. No parameter is reduced while the body runs, and each is reduced once after it.
class CoalesceReducesOnce final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    if (fact.method == Method::coalesce) {
      if (fact.event->kind == EventKind::engine_call)
        blocks_[fact.engine] = Block{};
      else
        blocks_.erase(fact.engine);
    }
    const auto open = blocks_.find(fact.engine);
    if (open == blocks_.end()) return;
    Block& block = open->second;
    if (fact.kind == FactKind::forward_begin || fact.kind == FactKind::work_begin) {
      mark_applicable();
      if (block.flush.lc != 0)
        report(block.flush, fmt::format("a bucket of {} was reduced at lc {}, before the coalesced "
                                        "block went on at lc {}",
                                        engine_name(fact.engine), block.flush.lc, fact.event->lc));
      block.flush.lc = 0;
    }
    if (fact.kind == FactKind::other && fact.event->kind == EventKind::bucket_flush)
      see_flush(fact, block);
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [engine, block] : blocks_) {
      append_bytes(bytes, engine.value);
      append_bytes(bytes, block.flush.lc != 0);
      for (const NameId param : block.flushed) append_bytes(bytes, param.value);
    }
  }

 private:
  struct Block {
    Place flush;  // the first since the body last did something
    std::set<NameId> flushed;
  };

  void see_flush(const Fact& fact, Block& block) {
    mark_applicable();
    if (!fact.is_quiet)
      report(place(*fact.event),
             fmt::format("a backward of {} in a coalesced block reduced a bucket at lc {}",
                         engine_name(fact.engine), fact.event->lc));
    else if (block.flush.lc == 0)
      block.flush = place(*fact.event);
    for (const NameId param : fact.event->params)
      if (!block.flushed.insert(param).second)
        report(place(*fact.event),
               fmt::format("{} was reduced a second time in one coalesced block at lc {}",
                           text(param), fact.event->lc));
  }

  std::map<EngineId, Block> blocks_;
};

// P53. `mark gradient_accumulation_boundary:true|false|auto` follows the engine's override.
class CoalesceFlushesAtBoundary final : public Monitor {
 public:
  using Monitor::Monitor;

  void observe(const Fact& fact) override {
    Engine& engine = engines_[fact.engine];
    constexpr std::string_view kWord = "gradient_accumulation_boundary:";
    if (fact.event->kind == EventKind::mark && text(fact.event->name).starts_with(kWord))
      engine.boundary = text(fact.event->name).substr(kWord.size());
    if (fact.method == Method::coalesce) see_block(fact, engine);
    if (!engine.at_entry) return;
    if (fact.kind == FactKind::other && fact.event->kind == EventKind::bucket_flush &&
        fact.is_quiet && engine.boundary != "true")
      report(place(*fact.event),
             fmt::format("a coalesced block of {} was flushed at lc {} with "
                         "the boundary {}",
                         engine_name(fact.engine), fact.event->lc, engine.boundary));
    if (fact.method == Method::partition_grads && fact.event->index > 0)
      report(place(*fact.event),
             fmt::format("the flush of a coalesced block of {} added to micro-step {} at lc {}",
                         engine_name(fact.engine), fact.event->index, fact.event->lc));
  }

 protected:
  void append_memory(std::string& bytes) const override {
    for (const auto& [id, engine] : engines_) {
      append_bytes(bytes, id.value);
      bytes += engine.boundary;
      bytes += engine.at_entry.value_or("-");
    }
  }

 private:
  struct Engine {
    std::string boundary = "auto";
    std::optional<std::string> at_entry;  // inside a block
  };

  void see_block(const Fact& fact, Engine& engine) {
    if (fact.event->kind == EventKind::engine_call) {
      engine.at_entry = engine.boundary;
      return;
    }
    if (!engine.at_entry) return;
    mark_applicable();
    if (engine.boundary != *engine.at_entry)
      report(
          place(*fact.event),
          fmt::format("the coalesced block of {} that ended at lc {} left the boundary {}; "
                      "before it was {}",
                      engine_name(fact.engine), fact.event->lc, engine.boundary, *engine.at_entry));
    engine.at_entry.reset();
  }

  std::map<EngineId, Engine> engines_;
};

}  // namespace

std::unique_ptr<Monitor> make_coalesce_reduces_once(const Monitor::Context& context) {
  return std::make_unique<CoalesceReducesOnce>(context);
}
std::unique_ptr<Monitor> make_coalesce_at_boundary(const Monitor::Context& context) {
  return std::make_unique<CoalesceFlushesAtBoundary>(context);
}

}  // namespace zeroproof
