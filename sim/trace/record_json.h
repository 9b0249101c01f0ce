#pragma once

#include <string>

#include "sim/trace/record.h"
#include "zeroproof/internal/model/names.h"

namespace zeroproof {

// Each appends one line of hooktrace 1.1, newline included. Reading it back gives an equal
// record; strings that are no UTF-8 and, of an event's transform stack, all but its height are
// the exceptions. An unknown record has no content to write: pass its line through instead.

void append_json_line(const HeaderRecord& record, std::string& out);
void append_json_line(const ThreadRecord& record, std::string& out);
void append_json_line(const ParamRecord& record, std::string& out);
void append_json_line(const TensorRecord& record, std::string& out);
void append_json_line(const GroupRecord& record, std::string& out);
void append_json_line(const GraphRecord& record, std::string& out);
void append_json_line(const WrapperRecord& record, std::string& out);
void append_json_line(const OptimizerRecord& record, std::string& out);
void append_json_line(const NumbersRecord& record, std::string& out);
void append_json_line(const NoteRecord& record, std::string& out);
void append_json_line(const EndRecord& record, std::string& out);

// Checks that the event has every field that its kind requires.
void append_json_line(const HookEvent& event, const NameTable& names, std::string& out);

}  // namespace zeroproof
