#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "props/foreign/dump_format.h"
#include "props/foreign/rank_dump.h"
#include "zeroproof/model/result.h"

namespace zeroproof {

// Reads a dump. Errors are one line `file: what is wrong; what to do`, code unreadable. Memory:
// what the dump says about collectives and nodes, and one element of its list; everything else is
// dropped while reading. JSON that stops early is no error: `is_truncated` is set. Pickles are
// never executed (see pickle.h). `words`: shared by the dumps of a run, or null for one of its own.
Result<RankDump> read_rank_dump(const std::string& path,
                                std::shared_ptr<DumpWords> words = nullptr);

// The same over bytes; `name` stands for the path.
Result<RankDump> read_rank_dump_bytes(std::string_view bytes, const std::string& name);

}  // namespace zeroproof
