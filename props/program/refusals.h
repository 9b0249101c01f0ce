#pragma once

#include <map>
#include <string>

#include "props/program/contract.h"
#include "props/program/program.h"

namespace zeroproof::program {

// The statements of a program that the engine must refuse, by place: "body/3/block/0" is the first
// statement of the block that is the fourth one, "" the name of an error that has none. Statements
// in the bodies of hooks have the place "body/2/forward/hook".
std::map<std::string, std::string> refusals_of(const Program& program, const Contract& contract);

// The same as a member of a JSON object after others: ,"refusals":{"body/3":"step_inside_no_sync"}.
// Empty where a program has none, or no contract.
std::string refusals_member(const Program& program);

}  // namespace zeroproof::program
