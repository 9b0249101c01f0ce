#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "props/registry.h"
#include "props/replay/job_facts.h"
#include "props/replay/rank_digest.h"
#include "sim/trace/record.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"
#include "zeroproof/props/property.h"

namespace zeroproof {

// What the properties level reads of a header. The recorder's own checks are no input.
struct RunFacts {
  std::string program;
  std::string dtype;
  std::int32_t rank = 0;
  std::int32_t world = 1;
  std::int32_t stage = -1;       // -1: the header has none
  bool is_of_deepspeed = false;  // recorded from DeepSpeed itself
};

// A property that was not judged.
struct NotApplicable {
  const Property* property = nullptr;  // static
  std::string reason;
};

// What the properties say about one trace, or about several together.
struct PropertiesReport {
  std::vector<const Property*> held;
  std::vector<Finding> falsified;
  std::vector<Finding> latent;
  std::vector<NotApplicable> not_applicable;

  bool is_falsified() const { return !falsified.empty(); }
  bool is_falsified(std::string_view number) const;
  void add(const Verdict& verdict);

  // Takes over what a comparison found: falsified wins over held, held over not_applicable.
  void merge(const PropertiesReport& other);
};

// The trace profile over one file. Feed it the records in order. Not thread-safe. Memory is
// bounded by what is open, plus a digest for RunGroup whose caps rank_digest.h states.
class PropertiesLevel final : public EventSink {
 public:
  // `names` holds the names of the events, `job` what the records say: also what the recorder could
  // not observe, so that properties which need it are not_applicable. Both must outlive the level.
  PropertiesLevel(RunFacts facts, const NameTable& names, const JobFacts& job);

  void declare_param(std::string_view name) { run_.declare_param(name); }
  // `values` null: there is no such tensor.
  void add_tensor(std::string_view role, std::string_view name, const std::vector<double>* values);
  void on_event(const HookEvent& event) override;

  // The trace is over; `is_complete`: with its end record. Call once, then `report`.
  void finish(bool is_complete);

  // Properties that need other files are not_applicable here: see RunGroup (run_group.h).
  PropertiesReport report() const;

  const RunFacts& facts() const { return facts_; }
  const RankDigest& digest() const { return digest_; }
  RankDigest& digest() { return digest_; }  // for records that only a comparison reads

 private:
  std::string reason_without_verdict(const Property& property) const;
  static void soften_depth(PropertiesReport& report);

  RunFacts facts_;
  const NameTable* names_;
  const JobFacts* job_;
  bool is_fsdp2_ = false;  // its units call themselves engines; ZeRO's properties are not theirs
  PropertyRun run_;
  RankDigest digest_;
};

}  // namespace zeroproof
