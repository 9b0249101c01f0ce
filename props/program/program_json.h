#pragma once

#include <string>
#include <string_view>

#include "props/program/program.h"
#include "zeroproof/model/result.h"

namespace zeroproof::program {

// A program as a document of the schema zeroproof.program/1 (docs/reference/program.md). Members
// with their default value are left out.
std::string program_json(const Program& program);
// The same on one line, without its end.
std::string program_line(const Program& program);

// Reads such a document. `where` is the file's name, for messages: an error names the JSON pointer,
// the value and what may stand there. Whether the program makes sense, Contract::of decides.
Result<Program> parse_program(std::string_view json, std::string_view where);

}  // namespace zeroproof::program
