#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "props/program/grammar.h"
#include "props/program/program.h"
#include "props/program/source.h"
#include "props/program/subject_grammar.h"
#include "props/subject/case_id.h"
#include "zeroproof/model/result.h"

namespace zeroproof::subject {

// A program that was drawn for a subject.
struct DrawnCase {
  CaseId id;
  program::Program program;
  std::vector<const program::Production*> productions;  // static; in their order
  program::Choices choices;
  std::optional<std::string> lacking;  // what the subject cannot do
};

// The programs that are drawn for one subject. Cheap to copy.
class SubjectCases {
 public:
  // Of a subject that can do everything.
  SubjectCases() = default;
  // By a document of zeroproof.capabilities/1; `where` is for messages.
  static Result<SubjectCases> of(std::string_view capabilities, std::string_view where);

  DrawnCase draw(program::Source source) const;
  // What the subject cannot do of a program.
  std::optional<std::string> lack(const program::Program& program) const;
  // The same for the same subject.
  DrawnCase at(CaseId id) const;

  // Of the document: "0123456789abcdef"; "all" where there is none.
  const std::string& fingerprint() const { return fingerprint_; }
  // What a case is drawn again from, for the same subject: "zpg1:SEED:NUMBER:FINGERPRINT",
  // with ".CANDIDATE" after the number of any candidate but the first.
  std::string token_of(CaseId id) const;

 private:
  std::optional<program::SubjectGrammar> grammar_;
  std::string fingerprint_ = "all";
};

}  // namespace zeroproof::subject
