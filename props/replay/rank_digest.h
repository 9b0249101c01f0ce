#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/event.h"
#include "model/names.h"
#include "props/replay/sequence_digest.h"

namespace zeroproof {

// How the backwards since the last optimizer step relate to its forwards; the property that a
// wrong gradient falsifies.
struct GradientWindow {
  std::int32_t forwards = 0;
  std::int32_t backwards = 0;
  bool has_later_forward = false;  // a forward after the first backward
  bool has_later_step = false;     // a step between them that was no boundary

  // "P26" … "P30".
  std::string_view property_number() const;
};

// What is kept of one rank's trace for comparison with other files. Gradients are kept up to
// kValuesMax numbers, and only those formed before the first optimizer step: afterwards the
// parameters need not be equal (the inner optimizers of stage 0 and 1-3 count differently).
class RankDigest {
 public:
  static constexpr std::size_t kValuesMax = std::size_t{1} << 20;

  struct Gradient {
    std::string name;
    std::optional<std::vector<double>> values;
    std::string_view property_number;
    std::uint64_t lc = 0;  // of the last event before it
  };

  void declare_group(std::string_view name, const std::vector<std::int32_t>& ranks);
  void add_tensor(std::string_view role, std::string_view name, const std::vector<double>* values);
  void on_event(const HookEvent& event, const NameTable& names);
  void finish(bool is_complete) { is_complete_ = is_complete; }

  // False for a trace that ends early: what it has is compared, that it ends is not.
  bool is_complete() const { return is_complete_; }
  bool is_truncated_by_cap() const { return is_over_cap_; }
  std::uint64_t parameters_hash() const { return parameters_hash_; }
  const std::vector<Gradient>& gradients() const { return gradients_; }
  const SequenceDigest& gathers() const { return gathers_; }
  // Overflows, loss scales and updates, as marks tell them.
  const SequenceDigest& decisions() const { return decisions_; }
  // By the ranks of the groups that issued them: "0,1".
  const std::map<std::string, SequenceDigest>& collectives() const { return collectives_; }

 private:
  void follow_window(const HookEvent& event, std::string_view name);
  std::string_view property_number() const;

  std::map<std::string, std::string, std::less<>> group_ranks_;
  std::map<std::string, SequenceDigest> collectives_;
  SequenceDigest gathers_;
  SequenceDigest decisions_;
  std::vector<Gradient> gradients_;
  std::size_t values_kept_ = 0;
  std::uint64_t parameters_hash_ = 0;
  std::map<EngineId, GradientWindow> windows_;
  std::uint64_t last_lc_ = 0;
  bool has_stepped_ = false;
  bool is_over_cap_ = false;
  bool is_complete_ = false;
};

}  // namespace zeroproof
