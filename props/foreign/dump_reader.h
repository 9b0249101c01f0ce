#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/result.h"
#include "props/foreign/rank_dump.h"

namespace zeroproof {

// Whether the content is a flight-recorder dump (JSON or pickle) or a Kineto trace, plain or gzip,
// told by its first bytes and never by its name; nullopt: something else, such as a hooktrace.
std::optional<DumpFormat> dump_format_of_file(const std::string& path);
std::optional<DumpFormat> dump_format_of(std::string_view first_bytes);

// Reads a dump. Errors are one line `file: what is wrong; what to do`, code unreadable. Memory:
// what the dump says about collectives and nodes; other events are dropped while reading. Pickles
// are never executed (see pickle.h).
Result<RankDump> read_rank_dump(const std::string& path);

// The same over bytes; `name` stands for the path.
Result<RankDump> read_rank_dump_bytes(std::string_view bytes, const std::string& name);

// The rank that a file name tells: "nccl_trace_rank_3", "dump_3.pickle"; -1 when none.
std::int32_t rank_in_name(std::string_view path);

}  // namespace zeroproof
