#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "props/program/program.h"
#include "zeroproof/engine/engine_error.h"
#include "zeroproof/model/result.h"

namespace zeroproof::program {

// What has to come of one statement where it stands.
struct Expectation {
  // The named error that it must be refused with; none: it is allowed.
  std::optional<EngineErrorId> refusal = std::nullopt;
  // It is refused with an error that has no name (a Result, or a UsageError).
  bool is_refused_otherwise = false;

  bool is_refused() const { return refusal.has_value() || is_refused_otherwise; }
  friend bool operator==(const Expectation&, const Expectation&) = default;
};

// The contract of a whole program: the typestate walked over its statements in the order in which
// they run, bodies of hooks where their backward runs. Refers to the statements of the program it
// was made for, which must outlive it and stay where it is.
class Contract {
 public:
  // An error names the statement, what it refers to and why that makes no sense: the program is
  // none. Code usage.
  static Result<Contract> of(const Program& program);

  // ZP_CHECK: a statement of the program.
  const Expectation& of(const Statement& statement) const;

 private:
  friend class Typestate;  // props/program/typestate.h
  std::map<const Statement*, Expectation> expectations_;
};

}  // namespace zeroproof::program
