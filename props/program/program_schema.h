#pragma once

#include <string>

namespace zeroproof::program {

// The JSON schema (2020-12) of zeroproof.program/1, made of the same tables that the reader and the
// writer use. props/program/program.schema.json is a copy of it.
std::string program_schema();

}  // namespace zeroproof::program
