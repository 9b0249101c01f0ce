#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "props/program/contract.h"
#include "props/program/program.h"
#include "zeroproof/model/result.h"

namespace zeroproof::program {

// What a subject, an engine that runs programs, can do: a document of the schema
// zeroproof.capabilities/1 (docs/reference/subject.md). A statement, a module or another value than
// the default of a member is possible where the document lists it. Cheap to copy.
class Capabilities {
 public:
  // `where` is the file's name, for messages. Errors name the JSON pointer and the nearest name.
  static Result<Capabilities> parse(std::string_view json, std::string_view where);

  // The first thing in a part that the subject cannot do, as "forward.spike"; none: it can do all.
  std::optional<std::string> lack(const World& world) const;
  std::optional<std::string> lack(const Data& data) const;
  std::optional<std::string> lack(const ZeroConfig& config) const;
  std::optional<std::string> lack(const EngineSpec& engine) const;
  std::optional<std::string> lack(const Model& model) const;
  std::optional<std::string> lack(const Statement& statement) const;
  // Of the whole: its refusals, too, by its contract. ZP_CHECK: it has one.
  std::optional<std::string> lack(const Program& program) const;

  // Whether programs may have statements that the engine must refuse: any, and with this error.
  bool has_refusals() const;
  bool can_refuse(const Expectation& expectation) const;
  // How many engines a program may have.
  int engines() const;
  // A number of ranks that the subject has.
  int some_ranks() const;

 private:
  struct Table;
  explicit Capabilities(std::shared_ptr<const Table> table) : table_(std::move(table)) {}
  std::shared_ptr<const Table> table_;
};

}  // namespace zeroproof::program
