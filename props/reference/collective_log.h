#pragma once

#include <optional>
#include <string>
#include <vector>

#include "props/reference/flat_layout.h"
#include "props/reference/part.h"

namespace zeroproof::reference {

// How a bucket that is reduced travels: which collectives, how many and of how many bytes.
// docs/spec/zero/gradients.md 2.15, 2.17 and 2.18 (b), engine.md 2.7.
class CollectiveLog final : public Part {
 public:
  explicit CollectiveLog(const Surroundings& around);

  void on_event(const HookEvent& event) override;

 private:
  struct Sent {
    std::string operation;
    std::int64_t bytes = 0;
  };
  // A reduction that is under way: what it takes and what it has sent.
  struct Reduction {
    std::vector<std::size_t> parameters;
    std::int64_t elements = 0;
    DType dtype = DType::float32;
    std::vector<Sent> sent;
  };
  // What the configuration makes of a reduction.
  struct Form {
    std::string operation;
    std::int64_t pieces = 0;
    std::int64_t bytes = 0;  // of all pieces
  };

  void see_collective(const HookEvent& event);
  void begin(const HookEvent& event);
  void end(const HookEvent& event);
  void judge(const HookEvent& event, const Reduction& reduction, const Form& form);
  Form form_of(const Reduction& reduction) const;
  Form partitioned_form(const Reduction& reduction) const;
  Form flat_form(const Reduction& reduction) const;
  Form whole_form() const;
  bool is_in_place(const Reduction& reduction) const;

  std::vector<FlatLayout> layouts_;  // of groups
  std::int64_t capacity_;
  std::optional<Reduction> open_;
};

}  // namespace zeroproof::reference
