#pragma once

#include <string>
#include <vector>

#include "props/reference/part.h"

namespace zeroproof::reference {

// What a model step sends: agreements about overflow and norm, then the updated values of stages 1
// and 2. docs/spec/zero/gradients.md 2.19.
class StepLog final : public Part {
 public:
  using Part::Part;

  void on_event(const HookEvent& event) override;

 private:
  struct Gather {
    std::string operation;
    std::int64_t bytes = 0;
    friend bool operator==(const Gather&, const Gather&) = default;
  };

  void see_collective(const HookEvent& event);
  void judge(const HookEvent& event, bool is_applied);
  int agreements_max() const;
  bool gathers_in_parts() const;
  std::vector<Gather> gathers() const;

  int agreements_ = 0;
  std::vector<Gather> gathered_;
};

}  // namespace zeroproof::reference
