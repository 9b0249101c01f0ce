#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "props/foreign/rank_dump.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// Whether the content is a flight-recorder dump (JSON or pickle) or a Kineto trace, plain or gzip,
// by its first bytes and never by its name; nullopt: something else, such as a hooktrace. A
// pipe or device can still be read afterwards.
std::optional<DumpFormat> dump_format_of_file(const std::string& path);
std::optional<DumpFormat> dump_format_of(std::string_view first_bytes);

// The rank in a file name: "nccl_trace_rank_3", "dump_3.pickle"; -1 when there is none.
std::int32_t rank_in_name(std::string_view path);

// An error, code unreadable, where the file is a dump: for verbs that read hooktraces only. It
// names the format and the verb that reads it.
Result<void> refuse_dump(const std::string& path);

}  // namespace zeroproof
