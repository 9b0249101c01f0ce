#pragma once

#include <string>

#include "props/program/contract.h"
#include "props/program/program.h"

namespace zeroproof::program {

// A program as Python-like text, a statement a line: what reports show. Only what differs from its
// default is there. With its contract, a refused statement has a comment that names the error.
std::string program_text(const Program& program, const Contract* contract = nullptr);

}  // namespace zeroproof::program
