#pragma once

#include <string>
#include <vector>

#include "props/program/grammar.h"
#include "props/program/policy.h"
#include "props/program/program.h"
#include "props/program/source.h"
#include "props/program/subject_grammar.h"

namespace zeroproof::program {

// A program whose contract makes sense, from world to data; the schedule's choices may follow in
// the same source. Where every choice is 0, one rank trains one layer for one window.
Program draw_program(Source& source);

// The same, and which productions are in it.
struct DrawnProgram {
  Program program;
  std::vector<const Production*> productions;  // in their order
};
// With a subject, as far as possible of what it can do; Capabilities::lack says what is not.
DrawnProgram draw_with_productions(Source& source, const SubjectGrammar* subject = nullptr);
// With a policy that was not drawn.
DrawnProgram draw_with_policy(Source& source, const Policy& policy);

// Its parts, in their order. World, configuration and engines:
Program draw_head(Source& source, const Policy& policy);
// A model of a program whose world, configuration and engines are complete.
Model draw_model(Source& source, const Policy& policy, const Program& program, std::string name);
// What the engines of a program do, whose head is complete; and the productions that did it.
std::vector<const Production*> draw_body(Source& source, const Policy& policy, Program& program);

}  // namespace zeroproof::program
